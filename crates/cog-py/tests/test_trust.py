"""Modules of the working directory, which may have come with a cloned repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import INPUT, Scripted, agent

from cognitive import CognitiveRuntime, Result


def run(module: str | Path) -> tuple[Result, Scripted]:
    """Runs a module that may call the tool `add`."""

    def add(a: int) -> int:
        """Adds one."""
        return a + 1

    model = Scripted()
    runtime = CognitiveRuntime(providers={"mine": model}, provider="mine", tools=[add])
    return runtime.execute(module, INPUT), model


def codes(result: Result) -> list[str]:
    return [warning["code"] for warning in result.warnings]


def clone() -> Path:
    """Writes a module where it is found by name in the working directory."""
    modules = Path.cwd() / "cognitive" / "modules"
    modules.mkdir(parents=True)
    return agent(modules)


def test_name_gets_tools_only_with_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    module = clone()
    result, model = run("agent")
    assert result.ok and codes(result) == ["W4017"]
    assert "cog trust " in result.warnings[0]["message"]
    assert not model.requests[0].tools
    for path in [module, "./cognitive/modules/agent"]:
        result, model = run(path)
        assert codes(result) == [] and [offered["name"] for offered in model.requests[0].tools] == ["add"]
    monkeypatch.setenv("COG_TRUST", "1")
    assert codes(run("agent")[0]) == []
