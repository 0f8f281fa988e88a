"""What is freed: objects that own a runtime, and the local variables of functions that failed."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest
from scripted import INPUT, Scripted, agent

from cognitive import CognitiveRuntime, ModelRequest, Provider, Result, tool


class Owner:
    """Has a runtime with its own method as a tool."""

    def __init__(self, **options: Any) -> None:
        self.runtime = CognitiveRuntime(providers={"mine": Scripted()}, tools=[self.look_up], **options)

    def look_up(self, key: str) -> str:
        """Looks up."""
        return key


class OwnProvider(Provider):
    """Has a runtime that calls it."""

    model = "own-1"

    def __init__(self) -> None:
        self.runtime = CognitiveRuntime(providers={"mine": self})

    def complete(self, request: ModelRequest) -> str:
        raise ValueError("no")


class Keeper:
    """Has a tool that keeps it, and the result of a run that failed."""

    def __init__(self) -> None:
        self.tool = tool(self.look_up)
        self.runtime = CognitiveRuntime(providers={"mine": Scripted("no JSON")}, tools=[self.tool])
        self.result: Result = self.runtime.run("code-reviewer", {"code": "x"}, retries=0)

    def look_up(self, key: str) -> str:
        """Looks up."""
        return key


@pytest.mark.parametrize("kind", [Owner, OwnProvider, Keeper])
def test_object_that_owns_its_runtime_is_freed(kind: Any) -> None:
    references = [weakref.ref(kind()) for _ in range(5)]
    gc.collect()
    assert [reference() for reference in references] == [None] * 5


def test_runtime_that_is_used_is_kept(tmp_path: Path) -> None:
    runtime = Owner().runtime
    gc.collect()
    assert runtime.run(agent(tmp_path), INPUT).ok


class Large:
    pass


class Failing(Provider):
    model = "failing-1"
    seen: weakref.ref[Large]

    def complete(self, request: ModelRequest) -> str:
        large = Large()
        self.seen = weakref.ref(large)
        try:
            raise ValueError("first")
        except ValueError as error:
            raise RuntimeError("second") from error


def test_result_keeps_no_local_variables() -> None:
    model = Failing()
    result = CognitiveRuntime(providers={"mine": model}).run("code-reviewer", {"code": "x"})
    (error,) = result.exceptions
    assert isinstance(error, RuntimeError) and isinstance(error.__cause__, ValueError)
    assert error.__traceback__ is not None  # where it was raised
    gc.collect()
    assert model.seen() is None
