"""Modules of the working directory, which may have come with a cloned repository."""

from __future__ import annotations

import logging
import warnings
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
    paths: list[str | Path] = [module, "./cognitive/modules/agent"]
    for path in paths:
        result, model = run(path)
        assert codes(result) == [] and [offered["name"] for offered in model.requests[0].tools] == ["add"]
    monkeypatch.setenv("COG_TRUST", "1")
    assert codes(run("agent")[0]) == []


def test_other_module_of_a_known_name_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    clone().rename("cognitive/modules/code-reviewer")
    manifest = Path("cognitive/modules/code-reviewer/module.yaml")
    manifest.write_text(manifest.read_text().replace("name: agent", "name: code-reviewer"))
    with caplog.at_level(logging.WARNING, logger="cognitive"):
        run("code-reviewer")
    assert any("not the built-in one" in record.message for record in caplog.records)


def test_project_file_that_costs_more_is_a_warning() -> None:
    Path("cog.toml").write_text('effort = "max"\n')
    with pytest.warns(UserWarning, match=r"cog\.toml sets effort = max"):
        CognitiveRuntime(provider="offline")
    Path("cog.toml").write_text("strict = true\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CognitiveRuntime(provider="offline")
