"""Models for tests, and the plugin of pytest."""

from __future__ import annotations

import asyncio
import datetime
import enum
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
import pytest

from cognitive import CognitiveError, CognitiveRuntime, ModelRequest, Reply, Runtime, ToolCall, task, testing, tool
from cognitive.testing import CassetteMiss, ModelCallRefused, TestModel

pytest_plugins = ["pytester"]


class Kind(enum.Enum):
    BILLING = "billing"
    BUG = "bug"


@dataclass
class Line:
    text: str
    at: datetime.datetime


@dataclass
class Decision:
    kind: Kind
    urgency: Literal["low", "high"]
    score: Annotated[float, pydantic.Field(ge=0, le=1)]
    count: Annotated[int, pydantic.Field(gt=3, lt=9, multiple_of=2)]
    lines: list[Line]
    note: str | None = None


DECISION = Decision(Kind.BUG, "high", 0.5, 4, [Line("a", datetime.datetime(2026, 11, 1, 8, 30))], "a note")


@task
def triage(ticket: str) -> Decision:
    """Classify the ticket."""
    raise NotImplementedError


@task
def shout(text: str) -> str:
    """Shout."""
    raise NotImplementedError


def test_model_answers_with_an_example_of_the_type() -> None:
    for seed in range(30):
        model = TestModel(seed=seed)
        made = triage.with_options(runtime=testing.runtime(model))("x")
        assert made.kind in Kind and 0 <= made.score <= 1 and made.count in (4, 6, 8)
        assert made.lines[0].at == datetime.datetime(2026, 11, 1, 8, 30) and made.note is None
        assert triage.with_options(runtime=testing.runtime(TestModel(seed=seed)))("x") == made
    with testing.use():
        assert shout("x") == "a text"


def test_model_answers_with_objects_in_turn() -> None:
    with testing.use(DECISION, {"kind": "billing", "urgency": "low", "score": 1, "count": 8, "lines": []}, ValueError("down")) as model:
        assert triage("It crashes.") == DECISION
        assert triage("x").kind is Kind.BILLING
        with pytest.raises(CognitiveError, match="E4001: the provider `test` failed: ValueError: down"):
            triage("x")
        assert model.calls == 3 and "It crashes." in str(model.requests[0].messages[-1])
    with testing.use("HELLO", "BYE") as model:
        assert [shout("hello"), shout("bye"), shout("again")] == ["HELLO", "BYE", "BYE"]
        assert model.last_input == '{"text":"again"}'


def test_model_is_a_function_of_the_request() -> None:
    def answer(request: ModelRequest) -> Any:
        return "loud" if "quiet" in str(request.messages[-1]) else Reply("no JSON")

    with testing.use(answer):
        assert shout("quiet") == "loud"
        with pytest.raises(CognitiveError, match="E1000"):
            shout("x")


def test_model_calls_tools() -> None:
    seen: list[str] = []

    @tool
    def look_up(key: str) -> str:
        """Looks up."""
        seen.append(key)
        return key

    made = task(tools=[look_up])(shout._source)
    with testing.use(ToolCall(name="look_up", arguments={"key": "k"}), "DONE") as model:
        assert made("x") == "DONE" and seen == ["k"] and model.calls == 2


def test_default_runtime_is_restored() -> None:
    with testing.use("outer"):
        with testing.use("inner"):
            assert shout("x") == "inner"
        assert shout("x") == "outer"


def test_calls_to_vendors_are_refused(runtime: CognitiveRuntime, mock: Any) -> None:
    with testing.refuse_calls():
        for call in (
            lambda: runtime.run("code-reviewer", {"code": "x"}),
            lambda: runtime.stream("code-reviewer", {"code": "x"}),
            lambda: runtime.map("code-reviewer", [{"code": "x"}]),
            lambda: testing.runtime().run("code-reviewer", {"code": "x"}, provider="openai"),
        ):
            with pytest.raises(ModelCallRefused, match=r"a test would call a model \(openai\); use cognitive.testing.use"):
                call()
        assert Runtime(provider="offline").run("code-reviewer", {"code": "x"}).ok
        assert runtime.run("code-reviewer", {"code": "x"}, provider="offline").ok
        assert testing.runtime().run("code-reviewer", {"code": "x"}).ok
        with testing.allow_calls():
            assert runtime.run("code-reviewer", {"code": "x"}).ok
    assert len(mock.requests) == 1


def test_cassette_returns_what_it_stored(tmp_path: Path) -> None:
    path = tmp_path / "tapes" / "shout.json"
    model = TestModel("HI", "HO", "HA")
    own = shout.with_options(runtime=testing.runtime(model))
    with testing.cassette(path):
        assert [own("hi"), asyncio.run(own.aio("ho"))] == ["HI", "HO"]
        assert [result.data for result in own.map([{"text": "ha"}, {"text": "hi"}])] == ["HA", "HI"]
    assert model.calls == 3 and [run["input"] for run in json.loads(path.read_text())] == [{"text": "hi"}, {"text": "ho"}, {"text": "ha"}]
    other = TestModel("other")
    replayed = shout.with_options(runtime=testing.runtime(other))
    with testing.cassette(path), testing.refuse_calls():
        assert [replayed("hi"), asyncio.run(replayed.aio("ho"))] == ["HI", "HO"]
        assert [result.data for result in replayed.map([{"text": "ha"}])] == ["HA"]
        with pytest.raises(CassetteMiss, match="shout.json has no result of shout for {'text': 'he'}; the module, the input"):
            replayed("he")
        with pytest.raises(CassetteMiss):
            replayed.with_options(temperature=0.5)("hi")
        with pytest.raises(TypeError, match="a cassette has results and no streams"):
            replayed.stream("hi")
    assert other.calls == 0
    with testing.cassette(path, record=True):
        assert replayed("he") == "other" and replayed("hi") == "HI"
    assert other.calls == 1 and len(json.loads(path.read_text())) == 4
    assert replayed("hi") == "other"


def test_cassette_has_named_modules(runtime: CognitiveRuntime, mock: Any, tmp_path: Path) -> None:
    with testing.refuse_calls(), testing.cassette(tmp_path / "a.json"), pytest.raises(ModelCallRefused):
        runtime.run("code-reviewer", {"code": "x"})
    for _ in range(2):
        with testing.cassette(tmp_path / "a.json"):
            assert runtime.run("code-reviewer", {"code": "x"}).ok
    assert len(mock.requests) == 1


def test_example_follows_references_and_limits() -> None:
    schema = {
        "type": "object",
        "required": ["a", "b", "c", "d", "e"],
        "properties": {
            "a": {"$ref": "#/$defs/A"},
            "b": {"allOf": [{"$ref": "#/$defs/A"}], "description": "b"},
            "c": {"type": "array", "minItems": 3, "items": {"type": "string", "minLength": 9, "maxLength": 9}},
            "d": {"type": ["string", "null"], "format": "date"},
            "e": {"items": [{"const": 1}, {"type": "boolean"}], "type": "array"},
        },
        "$defs": {"A": {"type": "integer", "exclusiveMinimum": 4, "maximum": 5}},
    }
    found = testing.sample(schema)
    assert (found["a"], found["b"], found["d"], found["e"][0]) == (5, 5, "2026-11-01", 1)
    assert found["c"] == ["a textxxx"] * 3


def test_plugin_refuses_calls_and_has_a_model(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = ["cognitive.pytest_plugin"]' if not _is_installed() else "")
    pytester.makepyfile(
        """
        import pytest
        from cognitive import Runtime, task
        from cognitive.testing import ModelCallRefused

        @task
        def shout(text: str) -> str:
            "Shout."

        def test_model(cognitive_model):
            cognitive_model.answers = ("HI",)
            assert shout("hi") == "HI" and cognitive_model.calls == 1

        def test_refused(monkeypatch):
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
            with pytest.raises(ModelCallRefused):
                Runtime(provider="openai").run("code-reviewer", {"code": "x"})

        @pytest.mark.model_calls
        def test_allowed(monkeypatch):
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
            assert Runtime(provider="openai").run("code-reviewer", {"code": 1}).error.code == "E1003"
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=3)


def _is_installed() -> bool:
    from importlib.metadata import entry_points

    return any(point.value == "cognitive.pytest_plugin" for point in entry_points(group="pytest11"))


def test_files_of_a_task_do_not_change(tmp_path: Path) -> None:
    assert "model_calls" not in triage.files["module.yaml"]
