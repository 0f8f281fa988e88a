"""A tool, a provider and a task written in Python, used together: ``python examples/agent.py``.

The provider is a script, so that the example needs no key. In its place, any model that calls tools works:
``CognitiveRuntime(provider="openai", tools=[forecast])``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Literal

from cognitive import CognitiveRuntime, ModelRequest, Provider, Reply, ToolCall, ToolError, task, tool

CITIES = {"Bern": 21.5, "Oslo": 12.0}


@tool
async def forecast(city: Annotated[str, "In English."], unit: Literal["celsius", "fahrenheit"] = "celsius") -> float:
    """Returns the temperature of tomorrow in a city."""
    if city not in CITIES:
        raise ToolError("UnknownCity", f"Use one of {', '.join(CITIES)}.")
    return CITIES[city] if unit == "celsius" else CITIES[city] * 1.8 + 32


@dataclass
class Advice:
    clothes: list[str]
    temperature: float


@task(tools=["forecast"])
def dress(city: str) -> Advice:
    """Recommend clothes for tomorrow. Ask for the forecast first."""
    raise NotImplementedError


class Scripted(Provider):
    """Asks for the forecast, at first of a city that does not exist, and then answers with the last one."""

    model = "scripted-1"

    def complete(self, request: ModelRequest) -> str | Reply:
        results = [json.loads(message["content"]) for message in request.messages if message["role"] == "tool"]
        if not results:
            return call("Berne")
        if results[-1]["status"] == "error":
            return call("Bern")
        data = {"clothes": ["a jacket"], "temperature": results[-1]["result"], "rationale": results[-1]["status"]}
        meta = {"confidence": 0.9, "risk": "low", "explain": "Mild."}
        return json.dumps({"ok": True, "meta": meta, "data": data})


def call(city: str) -> Reply:
    return Reply(tool_calls=[ToolCall(name="forecast", arguments={"city": city})])


def main() -> None:
    runtime = CognitiveRuntime(providers={"scripted": Scripted()}, provider="scripted", tools=[forecast])
    result = dress.with_options(runtime=runtime).run(city="Bern")
    print(result.raise_for_error().data)
    for error in result.exceptions:
        print(f"the model corrected: {error}")


if __name__ == "__main__":
    main()
