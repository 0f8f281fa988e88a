"""Everything that the package does, in one program. It calls no model: answers are samples, or of a provider below.

    python tour.py
"""

from __future__ import annotations

import asyncio
import datetime
import json
import pickle
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypedDict

from pydantic import BaseModel

from cognitive import (
    ChunkStream,
    CognitiveError,
    CognitiveRuntime,
    DataError,
    ErrorInfo,
    Module,
    ModelRequest,
    Provider,
    Reply,
    Report,
    Result,
    RunOptions,
    ToolCall,
    ToolError,
    task,
    tool,
)


class Code(BaseModel):
    """An input, checked by Pydantic."""

    code: str
    language: str | None = "python"


@dataclass
class Issue:
    title: str
    risk: Literal["none", "low", "medium", "high"]
    line: int | None = None


@dataclass
class Review:
    verdict: Literal["approve", "change", "reject"]
    rationale: str
    issues: list[Issue] = field(default_factory=list[Issue])


class Verdict(TypedDict):
    verdict: str


class CheckedReview(BaseModel):
    verdict: str
    issues: list[Issue]


@tool(timeout=5)
def forecast(city: Literal["Bern", "Oslo"], days: int = 1) -> dict[str, float]:
    """Returns the temperature of each day, in °C."""
    if days < 1:
        raise ToolError("InvalidDays", "Ask for at least one day.", {"found": days})
    return {f"{city} {day}": 21.5 for day in range(days)}


@tool
async def season(month: int) -> str:
    """Returns the season of a month."""
    return ["winter", "spring", "summer", "autumn"][month % 12 // 3]


@task(tools=["forecast", "season"])
def dress(city: str) -> list[str]:
    """Say what to wear in the city, after you have looked at the weather."""
    raise AssertionError("the function is never called")


class Adviser(Provider):
    """Calls each tool, and answers in parts."""

    model = "adviser-1"

    def stream(self, request: ModelRequest) -> Iterator[str | Reply]:
        results = [json.loads(message["content"]) for message in request.messages if message["role"] == "tool"]
        arguments: list[dict[str, Any]] = [{"city": "Bern", "days": 0}, {"city": "Bern", "days": 2}, {"month": 11}]
        if len(results) < len(arguments):
            name = request.tools[len(results) // 2]["name"]
            yield Reply(tool_calls=[ToolCall(name=name, arguments=arguments[len(results)])])
            return
        answer = {"result": ["a jacket"], "rationale": f"It is {results[2]['result']}."}
        meta = {"confidence": 0.9, "risk": "none", "explain": "The tools know it."}
        yield json.dumps({"ok": True, "meta": meta, "data": answer})
        yield Reply(input_tokens=100, output_tokens=20)


def modules(runtime: CognitiveRuntime) -> Module:
    """Loads a module, and checks its files."""
    module: Module = runtime.load("code-reviewer")
    assert module.tier == "decision" and module.directory is None and module.warnings == []
    required: list[str] = (module.input_schema or {})["required"]
    assert required == ["code"] and module.data_schema is not None
    report: Report = runtime.validate(module, level="v2.2")
    assert report.valid, report.diagnostics
    print(f"{module.name} {module.version} ({module.format}): {module.responsibility}")
    return module


def inputs(runtime: CognitiveRuntime, module: Module) -> None:
    """Every form of an input."""
    options: RunOptions = {"timeout": 30.0, "max_attempts": 2, "strict": None}
    for value in ("eval(input())", {"code": "eval(input())"}, Code(code="eval(input())")):
        runtime.execute(module, value, **options).raise_for_error()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "planner"
        path.mkdir()
        (path / "module.yaml").write_text("name: planner\nversion: 1.0.0\nresponsibility: Plan a day\ntier: exploration\n")
        (path / "prompt.md").write_text("Plan $ARGUMENTS.\n")
        (path / "schema.json").write_text('{"input": {"type": "object"}, "data": {"type": "object"}}')
        day: dict[str, Any] = {"day": datetime.date(2026, 11, 23), "budget": Decimal("19.99"), "tasks": ("a", "b")}
        runtime.execute(path, day).raise_for_error()
    try:
        runtime.execute(module, {"code": object()})
    except TypeError as error:
        print(error)


def results(runtime: CognitiveRuntime, module: Module) -> None:
    """A result, and the objects that it becomes."""
    result: Result = runtime.execute(module, {"code": "eval(input())"}).raise_for_error()
    assert result.ok and result.error is None and result.partial_data is None
    confidence: float | None = result.meta["confidence"]
    print(f"{result.data['verdict']}, confidence {confidence}, {len(result.warnings)} warnings")

    review: Review = result.as_type(Review)
    checked: CheckedReview = result.as_type(CheckedReview)
    verdict: Verdict = result.as_type(Verdict)
    assert review.verdict == checked.verdict == verdict["verdict"]
    assert review.issues == checked.issues
    optional = result.as_type(Review | None)
    assert optional == review
    try:
        result.as_type(list[Issue])
    except DataError as mismatch:
        print(f"{mismatch.path}: {mismatch.reason}"[:60])

    stored: Result = pickle.loads(pickle.dumps(result))
    assert stored.to_dict() == Result(result.to_json(indent=True)).to_dict()


def errors(runtime: CognitiveRuntime, module: Module) -> None:
    """A failed run as a result and as an exception."""
    error: ErrorInfo | None = runtime.execute(module, {"code": 1}).error
    assert error is not None
    print(f"{error.code}: {error.message} ({error.recoverable=}, {error.suggestion=}, {error.details=})")
    try:
        runtime.execute("code-reviewr", {"code": "x"}).raise_for_error()
    except CognitiveError as failed:
        assert failed.code == failed.error.code == failed.envelope["error"]["code"]
        print(failed.message, failed.suggestion, failed.recoverable, failed.details, failed.result.ok)


def streams(runtime: CognitiveRuntime, module: Module) -> None:
    """The chunks of a run, as they arrive."""
    with runtime.execute_stream(module, {"code": "exit()"}, chunk_type="delta") as stream:
        for chunk in stream:
            if "chunk" in chunk:
                print(f"{chunk['chunk']['seq']:>3} {chunk['chunk'].get('field')}")
    assert stream.result is not None and stream.data == stream.result.data
    closed: ChunkStream = runtime.execute_stream(module, {"code": "exit()"})
    next(closed)
    closed.close()
    assert list(closed) == []


async def concurrently(runtime: CognitiveRuntime, module: Module) -> None:
    """Runs and streams on an event loop."""
    runs = [runtime.execute_async(module, {"code": f"print({number})"}) for number in range(10)]
    assert all(result.ok for result in await asyncio.gather(*runs))
    async with runtime.execute_stream(module, {"code": "exit()"}) as stream:
        count = len([chunk async for chunk in stream])
    print(f"{len(runs)} runs and {count} chunks")


def functions(runtime: CognitiveRuntime) -> None:
    """A module, a provider and tools in Python, used together, and what they send."""
    own = dress.with_options(runtime=runtime)
    assert forecast("Oslo") == {"Oslo 0": 21.5} and runtime.validate(own, level="v2.2").valid
    rendered: dict[str, Any] = runtime.render(own, {"city": "Bern"})
    assert [message["role"] for message in rendered["messages"]] == ["system", "user"]
    result: Result[list[str] | None] = own.run("Bern")
    clothes: list[str] = result.raise_for_error().data
    failed = [str(error) for error in result.exceptions]
    print(f"{clothes} of {result.meta['model']}; the model corrected: {failed}")
    assert runtime.verify(result, module=own).valid and own(city="Oslo") == clothes
    assert [of_city.data for of_city in own.map([{"city": "Bern"}, {"city": "Oslo"}])] == [clothes, clothes]
    verdict = runtime.verify({"ok": True, "data": {}}, kind="envelope")
    assert not verdict.valid and verdict.violations


def main() -> None:
    runtime = CognitiveRuntime(provider="offline", streaming=True, multimodal=True, timeout=60, modules=[Path.cwd()])
    print(runtime)
    module = modules(runtime)
    inputs(runtime, module)
    results(runtime, module)
    errors(runtime, module)
    streams(runtime, module)
    asyncio.run(concurrently(runtime, module))
    functions(CognitiveRuntime(providers={"adviser": Adviser()}, provider="adviser", tools=[forecast, season]))


if __name__ == "__main__":
    main()
