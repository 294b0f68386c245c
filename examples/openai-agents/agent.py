"""An agent of the OpenAI Agents SDK whose tools are Toolhost's.

    python agent.py WORKSPACE "what to do"

Toolhost runs beside it as an MCP server: each call passes its gate, runs in its fence and is written down.
"""

import asyncio
import os
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai import AsyncOpenAI

INSTRUCTIONS = "You work in one workspace, with tools only. Read before you change. Say in the end what you did."
# A turn is one answer of the model with the calls it asks for.
TURNS_MAX = 8


def toolhost(workspace: str) -> MCPServerStdio:
    """The server: the profile says which tools the agent has, and what its commands may do."""
    return MCPServerStdio(
        name="toolhost",
        params={
            "command": os.environ.get("TOOLHOST", "toolhost"),
            "args": ["mcp", "--root", workspace, "--profile", "developer", "--persona", "openai-agents"],
            # Where the operator keeps state and configuration; the model's key stays here.
            "env": {name: value for name, value in os.environ.items() if name.startswith("TOOLHOST_")},
        },
        client_session_timeout_seconds=120,
        cache_tools_list=True,
    )


async def main(workspace: str, goal: str) -> None:
    # Traces would go to OpenAI; the audit stays on this machine.
    set_tracing_disabled(True)
    # Reads OPENAI_BASE_URL and OPENAI_API_KEY.
    model = OpenAIChatCompletionsModel(os.environ.get("OPENAI_MODEL", "gpt-5.1"), AsyncOpenAI())
    async with toolhost(workspace) as tools:
        agent = Agent(name="developer", instructions=INSTRUCTIONS, model=model, mcp_servers=[tools])
        result = await Runner.run(agent, goal, max_turns=TURNS_MAX)
        print(result.final_output)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit('usage: python agent.py WORKSPACE "what to do"')
    asyncio.run(main(sys.argv[1], sys.argv[2]))
