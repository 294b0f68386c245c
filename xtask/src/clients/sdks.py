"""Python's clients and agent frameworks: each reads the file `a.txt` by a tool of the server. `NAME PORT PROGRAM ARGUMENTS...`."""

import asyncio
import sys

NAME, PORT, PROGRAM, *ARGUMENTS = sys.argv[1:]
MODEL_URL = f"http://127.0.0.1:{PORT}/v1"
ASK = "read a.txt"


async def mcp():
    """The protocol's own SDK, without a model."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async with stdio_client(StdioServerParameters(command=PROGRAM, args=ARGUMENTS)) as (reading, writing):
        async with ClientSession(reading, writing) as session:
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            assert "file_read" in tools, tools
            return str(await session.call_tool("file_read", {"path": "a.txt"}))


async def fastmcp():
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    async with Client(StdioTransport(PROGRAM, ARGUMENTS)) as client:
        tools = [tool.name for tool in await client.list_tools()]
        assert "file_read" in tools, tools
        return str(await client.call_tool("file_read", {"path": "a.txt"}))


async def pydantic_ai():
    from pydantic_ai import Agent
    from fastmcp.client.transports import StdioTransport
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("mock", provider=OpenAIProvider(base_url=MODEL_URL, api_key="x"))
    agent = Agent(model, toolsets=[MCPToolset(StdioTransport(PROGRAM, ARGUMENTS))])
    async with agent:
        return (await agent.run(ASK)).output


async def openai_agents():
    from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerStdio
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    async with MCPServerStdio(params={"command": PROGRAM, "args": ARGUMENTS}) as server:
        model = OpenAIResponsesModel("mock", AsyncOpenAI(base_url=MODEL_URL, api_key="x"))
        agent = Agent(name="reader", model=model, mcp_servers=[server])
        return (await Runner.run(agent, ASK)).final_output


CLIENTS = {"mcp": mcp, "fastmcp": fastmcp, "pydantic-ai": pydantic_ai, "openai-agents": openai_agents}
print(asyncio.run(CLIENTS[NAME]()))
