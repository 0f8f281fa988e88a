"""Tools that are Python functions."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from scripted import ANSWER, INPUT, Scripted, agent, calls

from cognitive import CognitiveError, CognitiveRuntime, Result, Tool, ToolError, tool

Variable = contextvars.ContextVar("Variable", default="nothing")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    return agent(tmp_path)


def runtime(model: Scripted, *tools: Callable[..., Any], **options: Any) -> CognitiveRuntime:
    return CognitiveRuntime(providers={"mine": model}, provider="mine", tools=tools, **options)


def run(module: Path, *tools: Callable[..., Any], requested: Any = None) -> tuple[Result, list[dict[str, Any]]]:
    """Runs a model that calls the first tool once."""
    name = getattr(tools[0], "name", None) or tools[0].__name__
    model = Scripted(calls((name, requested or {})), ANSWER)
    result = runtime(model, *tools).execute(module, INPUT)
    return result, model.results()


def test_function_becomes_a_tool(module: Path) -> None:
    def add(a: int, b: int = 2) -> int:
        """Adds two numbers."""
        return a + b

    model = Scripted(calls(("add", {"a": 1})), ANSWER)
    result = runtime(model, add).execute(module, INPUT)
    assert result.ok and result.exceptions == []
    assert model.results() == [{"status": "success", "result": 3}]
    assert [offered["name"] for offered in model.requests[0].tools] == ["add"]
    assert model.requests[0].tools[0]["description"] == "Adds two numbers."
    assert model.requests[0].tools[0]["parameters"]["required"] == ["a"]
    assert model.requests[0].tool_choice == "auto"


@dataclass
class Place:
    city: str
    kind: Literal["town", "village"] = "town"


def test_arguments_have_the_types_of_the_parameters(module: Path) -> None:
    seen: list[Any] = []

    def visit(place: Place, factor: float, tags: set[str]) -> dict[str, Any]:
        """Visits a place."""
        seen.extend([place, factor, tags])
        return {"visited": True}

    arguments = {"place": {"city": "Bern"}, "factor": 2, "tags": ["a", "a"]}
    _, results = run(module, visit, requested=arguments)
    assert results == [{"status": "success", "visited": True}]
    assert seen == [Place("Bern"), 2.0, {"a"}] and isinstance(seen[1], float)


def test_arguments_that_violate_the_schema_do_not_reach_the_function(module: Path) -> None:
    def add(a: int) -> int:
        """Adds."""
        raise AssertionError

    result, results = run(module, add, requested={"a": "x"})
    assert results[0]["code"] == "E1001" and result.exceptions == []


@pytest.mark.parametrize("value", [None, "text", 1.5, [1, {"a": None}], Place("Bern")])
def test_result_is_any_json(module: Path, value: Any) -> None:
    def give() -> Any:
        """Gives."""
        return value

    _, results = run(module, give)
    expected = {"city": "Bern", "kind": "town"} if isinstance(value, Place) else {"result": value}
    assert results == [{"status": "success", **expected}]


def test_result_without_a_form_in_json_is_an_error(module: Path, caplog: pytest.LogCaptureFixture) -> None:
    def give() -> Any:
        """Gives."""
        return {"when": object()}

    result, results = run(module, give)
    assert results[0]["error_type"] == "TypeError" and "result.when" in results[0]["message"]
    assert isinstance(result.exceptions[0], TypeError)


def test_exception_is_an_error_for_the_model_and_readable_for_the_programmer(
    module: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def divide(by: int) -> float:
        """Divides 1."""
        return 1 / by

    with caplog.at_level(logging.ERROR, logger="cognitive"):
        result, results = run(module, divide, requested={"by": 0})
    assert result.ok, "the model answered nevertheless"
    error = {"status": "error", "error_type": "ZeroDivisionError", "message": "division by zero"}
    assert results == [error]
    assert "return 1 / by" in caplog.text and "'divide'" in caplog.text
    raised = result.exceptions[0]
    assert isinstance(raised, ZeroDivisionError) and raised.__traceback__ is not None


def test_error_for_the_model_is_not_logged(module: Path, caplog: pytest.LogCaptureFixture) -> None:
    def find(day: str) -> str:
        """Finds."""
        raise ToolError("InvalidDateRange", "Use a day of this year.", {"year": 2026})

    result, results = run(module, find, requested={"day": "1999-01-01"})
    expected = {"error_type": "InvalidDateRange", "message": "Use a day of this year.", "details": {"year": 2026}}
    assert results == [{"status": "error", **expected}]
    assert caplog.text == "" and isinstance(result.exceptions[0], ToolError)


def test_keys_are_masked_in_the_errors_of_tools(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-operator")

    def unexpected() -> None:
        """Fails."""
        raise ValueError("Authorization: Bearer sk-secret-of-the-operator")

    def expected() -> None:
        """Fails."""
        raise ToolError("Refused", "sk-secret-of-the-operator", {"sent": ["sk-secret-of-the-operator"]})

    for function in (unexpected, expected):
        result, results = run(module, function)
        assert "sk-secret" not in str(results) + result.to_json(), results
        assert results[0]["status"] == "error" and "Bearer" in str(results) or results[0]["details"]["sent"]


def test_details_that_json_cannot_represent_are_left_out(module: Path, caplog: pytest.LogCaptureFixture) -> None:
    def search() -> None:
        """Searches."""
        raise ToolError("InvalidRange", "The range is empty.", {"dates": {1, "a"}})

    result, results = run(module, search)
    assert (results[0]["error_type"], results[0]["message"]) == ("InvalidRange", "The range is empty.")
    assert "details" not in results[0]
    assert [type(error) for error in result.exceptions] == [ToolError, TypeError]
    assert "details of an error of the tool \"search\": TypeError: details.dates: JSON has no form for set" in caplog.text


def test_interpreter_ends_during_a_tool(module: Path) -> None:
    program = (
        "import sys, threading\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from scripted import ANSWER, INPUT, Scripted, calls\n"
        "from cognitive import CognitiveRuntime\n"
        "started = threading.Event()\n"
        "def work() -> None:\n"
        "    'Works.'\n"
        "    started.set()\n"
        "    while True:\n"
        "        sum(range(1000))\n"
        "model = Scripted(calls(*[('work', {})] * 4), ANSWER)\n"
        "runtime = CognitiveRuntime(providers={'mine': model}, provider='mine', tools=[work])\n"
        f"run = lambda: runtime.execute({str(module)!r}, INPUT)\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "started.wait()\n"
    )
    for _ in range(3):
        child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        assert (child.returncode, child.stderr) == (0, "")


def test_asynchronous_tool_runs_in_the_loop_of_the_caller(module: Path) -> None:
    seen: list[Any] = []

    async def where() -> str:
        """Says where it runs."""
        await asyncio.sleep(0)
        seen.append((asyncio.get_running_loop(), Variable.get()))
        return "here"

    async def main() -> None:
        Variable.set("caller")
        model = Scripted(calls(("where", {}), ("where", {})), ANSWER)
        assert (await runtime(model, where).execute_async(module, INPUT)).ok
        assert [result["result"] for result in model.results()] == ["here", "here"]
        assert seen == [(asyncio.get_running_loop(), "caller")] * 2
        stream = runtime(Scripted(calls(("where", {})), ANSWER), where).execute_stream(module, INPUT)
        assert [chunk async for chunk in stream][-1]["final"]
        assert seen[2] == (asyncio.get_running_loop(), "caller")

    asyncio.run(main())


def test_asynchronous_tool_runs_without_a_loop_of_the_caller(module: Path) -> None:
    loops: list[Any] = []

    async def where() -> str:
        """Says where it runs."""
        loops.append(asyncio.get_running_loop())
        return Variable.get()

    token = Variable.set("caller")
    for _ in range(2):
        _, results = run(module, where)
        assert results == [{"status": "success", "result": "caller"}]
    model = Scripted(calls(("where", {})), ANSWER)
    assert list(runtime(model, where).execute_stream(module, INPUT))[-1]["final"]
    Variable.reset(token)
    assert loops[0] is loops[1] is loops[2], "connections of the tool stay usable"


def test_synchronous_tool_runs_in_a_thread_with_the_context(module: Path) -> None:
    def where() -> list[Any]:
        """Says where it runs."""
        return [threading.current_thread() is threading.main_thread(), Variable.get()]

    token = Variable.set("caller")
    _, results = run(module, where)
    Variable.reset(token)
    assert results == [{"status": "success", "result": [False, "caller"]}]


def test_blocked_tool_blocks_no_other_run(module: Path) -> None:
    release = threading.Event()

    def block() -> str:
        """Blocks."""
        assert release.wait(60)
        return "released"

    model = Scripted(calls(("block", {})), ANSWER)
    blocked = runtime(model, block)
    thread = threading.Thread(target=lambda: blocked.execute(module, INPUT))
    thread.start()
    assert runtime(Scripted()).execute(module, INPUT).ok
    release.set()
    thread.join()
    assert model.results() == [{"status": "success", "result": "released"}]


def test_tool_over_its_time_limit_is_an_error(module: Path) -> None:
    cancelled = threading.Event()

    @tool(timeout=0.05)
    async def sleep() -> None:
        """Sleeps."""
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    _, results = run(module, sleep)
    assert results[0]["code"] == "E2002"
    assert cancelled.wait(30)


def test_tool_that_runs_the_runtime_again(module: Path) -> None:
    inner = Scripted(calls(("number", {})), ANSWER)

    async def number() -> int:
        """Returns a number."""
        return 7

    def sync_helper() -> Any:
        """Runs a module."""
        return runtime(inner, number).execute(module, INPUT).data

    async def async_helper() -> Any:
        """Runs a module, and blocks its event loop."""
        return runtime(inner, number).execute(module, INPUT).data

    async def awaiting_helper() -> Any:
        """Runs a module, and awaits it."""
        return (await runtime(inner, number).execute_async(module, INPUT)).data

    for helper in (sync_helper, async_helper, awaiting_helper):
        inner.requests.clear()
        _, results = run(module, helper)
        assert results[0]["text"] == "done", helper.__name__
        assert inner.results() == [{"status": "success", "result": 7}]


def test_endless_recursion_of_runs_ends(module: Path) -> None:
    def again() -> Any:
        """Runs the same module again."""
        nested = runtime(Scripted(calls(("again", {})), ANSWER), again).execute(module, INPUT)
        return {"nested": [str(error) for error in nested.exceptions]}

    result, results = run(module, again)
    assert result.ok and results[0]["status"] == "success"


def test_keyboard_interrupt_of_a_tool_ends_the_run(module: Path) -> None:
    def stop() -> None:
        """Stops."""
        raise KeyboardInterrupt("enough")

    async def stop_later() -> None:
        """Stops."""
        raise SystemExit(3)

    model = Scripted(calls(("stop", {})), ANSWER)
    with pytest.raises(KeyboardInterrupt, match="enough"):
        runtime(model, stop).execute(module, INPUT)
    assert len(model.requests) == 1, "the model was not called again"
    model = Scripted(calls(("stop", {})), ANSWER)
    with pytest.raises(KeyboardInterrupt):
        list(runtime(model, stop).execute_stream(module, INPUT))
    model = Scripted(calls(("stop_later", {})), ANSWER)
    with pytest.raises(SystemExit):
        runtime(model, stop_later).execute(module, INPUT)
    _, results = run(module, seven)
    assert results == [{"status": "success", "result": 7}], "the event loop of the package still runs"


async def seven() -> int:
    """Returns a number."""
    return 7


def test_cancelled_run_cancels_its_tools(module: Path) -> None:
    events: list[str] = []

    async def main() -> None:
        started = asyncio.Event()

        async def wait() -> None:
            """Waits."""
            started.set()
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                events.append("cancelled")
                raise

        model = Scripted(calls(("wait", {})), ANSWER)
        task = asyncio.create_task(runtime(model, wait).execute_async(module, INPUT))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while not events:
            await asyncio.sleep(0.01)

    asyncio.run(main())
    assert events == ["cancelled"]


def test_tool_whose_loop_was_closed_is_an_error(module: Path) -> None:
    reached, go = threading.Event(), threading.Event()

    class Slow(Scripted):
        def complete(self, request: Any) -> Any:
            if not self.requests:
                reached.set()
                assert go.wait(60)
            return super().complete(request)

    async def late() -> None:
        """Is called too late."""

    model = Slow(calls(("late", {})), ANSWER)
    loop = asyncio.new_event_loop()
    task = loop.create_task(runtime(model, late).execute_async(module, INPUT))
    loop.run_until_complete(asyncio.sleep(0))
    assert reached.wait(30)
    loop.close()
    go.set()
    while len(model.requests) < 2:
        threading.Event().wait(0.01)
    del task
    assert model.results()[0]["error_type"] == "RuntimeError"
    assert "closed" in model.results()[0]["message"]


def test_function_that_returns_an_awaitable_is_an_error(module: Path) -> None:
    def forgotten() -> Any:
        """Forgets async."""
        return asyncio.sleep(0)

    _, results = run(module, forgotten)
    assert results[0]["error_type"] == "TypeError" and "async def" in results[0]["message"]


def test_tools_of_one_run(module: Path) -> None:
    def add(a: int) -> int:
        """Adds."""
        return a

    model = Scripted(calls(("add", {"a": 1})), ANSWER)
    own = runtime(model)
    assert own.execute(module, INPUT, tools=[add]).ok
    assert model.results() == [{"status": "success", "result": 1}]
    assert own.execute(module, INPUT).ok
    assert model.requests[-1].tools == []


def test_tool_is_freed_with_its_last_run(module: Path) -> None:
    def add() -> int:
        """Adds."""
        return 1

    made = Tool(add)
    reference = weakref.ref(made)
    assert runtime(Scripted(calls(("add", {})), ANSWER)).execute(module, INPUT, tools=[made]).ok
    del made
    assert reference() is None


def test_two_tools_of_one_name_are_refused(module: Path) -> None:
    def add() -> None:
        """Adds."""

    with pytest.raises(ValueError, match="tools: 'add' is the name of two tools"):
        runtime(Scripted(), add, Tool(add))


def test_decorated_function_is_still_a_function() -> None:
    @tool(name="plus", side_effects=True)
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    assert add(1, b=2) == 3
    assert (add.name, add.description, repr(add)) == ("plus", "Adds.", "Tool(name='plus')")
    assert add.__name__ == "add"


def test_effects_are_those_that_the_manifest_allows(tmp_path: Path) -> None:
    @tool(code_execution=True)
    def evaluate(code: str) -> str:
        """Runs code."""
        raise AssertionError

    model = Scripted(calls(("evaluate", {"code": "1"})), ANSWER)

    def plain() -> str:
        """Does nothing."""
        return ""

    assert runtime(model, evaluate, plain).execute(agent(tmp_path), INPUT).ok
    assert [offered["name"] for offered in model.requests[0].tools] == ["plain"]
    assert model.results()[0]["code"] == "E4007"


def test_tool_waits_for_a_confirmation(module: Path) -> None:
    deleted: list[str] = []

    @tool(side_effects=True, confirm=True)
    def delete(name: str) -> dict[str, bool]:
        """Deletes."""
        deleted.append(name)
        return {"deleted": True}

    model = Scripted(calls(("delete", {"name": "prod"})), ANSWER)
    own = runtime(model, delete)
    halted = own.execute(module, INPUT)
    assert halted.error is not None and halted.error.code == "E4007"
    assert deleted == []
    name = halted.error.details["halted"]["id"]
    with pytest.raises(ValueError, match=r"continue_run: give confirm"):
        own.continue_run(name)
    assert own.continue_run(name, confirm="YES").ok
    assert deleted == ["prod"]
    with pytest.raises(CognitiveError, match="E4014"):
        own.continue_run(name, deny=True)
    with pytest.raises(CognitiveError, match="E4013"):
        own.continue_run("halt_0", deny=True)


def test_image_is_a_part_beside_the_text(module: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 32

    def draw() -> bytes:
        """Draws."""
        return png

    model = Scripted(calls(("draw", {})), ANSWER)
    model.images = True
    assert runtime(model, draw).execute(module, INPUT).ok
    assert "data:image/png;base64," in str(model.requests[-1].messages)
