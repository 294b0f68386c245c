"""Python's clients and agent frameworks: each reads the file `a.txt` by a tool of the server. `NAME PORT PROGRAM ARGUMENTS...`, or
`NAME PORT URL TOKEN` for a server over HTTP."""

import asyncio
import sys

NAME, PORT, PROGRAM, *ARGUMENTS = sys.argv[1:]
MODEL_URL = f"http://127.0.0.1:{PORT}/v1"
ASK = "read a.txt"
OVER_HTTP = PROGRAM.startswith("http://")
HEADERS = {"Authorization": f"Bearer {ARGUMENTS[0]}"} if OVER_HTTP else {}


def transport():
    """As fastmcp has it."""
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    return StreamableHttpTransport(PROGRAM, headers=HEADERS) if OVER_HTTP else StdioTransport(PROGRAM, ARGUMENTS)


async def mcp():
    """The protocol's own SDK, without a model."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client

    if OVER_HTTP:
        import httpx2

        streams = streamable_http_client(PROGRAM, http_client=httpx2.AsyncClient(headers=HEADERS))
    else:
        streams = stdio_client(StdioServerParameters(command=PROGRAM, args=ARGUMENTS))
    async with streams as (reading, writing, *_):
        async with ClientSession(reading, writing) as session:
            await session.initialize()
            tools = [tool.name for tool in (await session.list_tools()).tools]
            assert "file_read" in tools, tools
            return str(await session.call_tool("file_read", {"path": "a.txt"}))


async def fastmcp():
    from fastmcp import Client

    async with Client(transport()) as client:
        tools = [tool.name for tool in await client.list_tools()]
        assert "file_read" in tools, tools
        return str(await client.call_tool("file_read", {"path": "a.txt"}))


async def pydantic_ai():
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("mock", provider=OpenAIProvider(base_url=MODEL_URL, api_key="x"))
    agent = Agent(model, toolsets=[MCPToolset(transport())])
    async with agent:
        return (await agent.run(ASK)).output


async def openai_agents():
    from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
    from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    if OVER_HTTP:
        started = MCPServerStreamableHttp(params={"url": PROGRAM, "headers": HEADERS})
    else:
        started = MCPServerStdio(params={"command": PROGRAM, "args": ARGUMENTS})
    async with started as server:
        model = OpenAIResponsesModel("mock", AsyncOpenAI(base_url=MODEL_URL, api_key="x"))
        agent = Agent(name="reader", model=model, mcp_servers=[server])
        return (await Runner.run(agent, ASK)).final_output


CLIENTS = {"mcp": mcp, "fastmcp": fastmcp, "pydantic-ai": pydantic_ai, "openai-agents": openai_agents}
print(asyncio.run(CLIENTS[NAME]()))
