"""What a step costs in other loops: NAME URL STEPS. Prints one JSON object, as the example `loop_cost` does."""

import asyncio
import json
import sys
import time

NAME, URL, STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3])
KEY = "of-nobody"


def file_read(path: str) -> str:
    """Reads a file.

    Args:
        path: Where it is.
    """
    return "a short file\n"


async def openai_agents() -> None:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("mock", AsyncOpenAI(base_url=URL, api_key=KEY))
    agent = Agent(name="reader", instructions="Read.", model=model, tools=[function_tool(file_read)])
    result = Runner.run_streamed(agent, "read", max_turns=STEPS + 2)
    async for _ in result.stream_events():
        pass


async def pydantic_ai() -> None:
    from pydantic_ai import Agent, UsageLimits
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("mock", provider=OpenAIProvider(base_url=URL, api_key=KEY))
    agent = Agent(model, instructions="Read.", tools=[file_read])

    async def quietly(_ctx, events):
        async for _ in events:
            pass

    limits = UsageLimits(request_limit=STEPS + 2)
    await agent.run("read", usage_limits=limits, event_stream_handler=quietly)


async def main() -> None:
    loop = {"openai-agents": openai_agents, "pydantic-ai": pydantic_ai}[NAME]
    began = time.perf_counter()
    await loop()
    print(json.dumps({"msPerStep": (time.perf_counter() - began) * 1000 / STEPS}))


asyncio.run(main())
