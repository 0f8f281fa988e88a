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
from cognitive.testing import ModelCallRefused, TestModel

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


def test_model_answers_for_every_provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also for a task that names a vendor, on a machine that has chosen one."""
    monkeypatch.setenv("LLM_PROVIDER", "openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    named = shout.with_options(provider="anthropic,openai", model="large")
    with testing.refuse_calls(), testing.cassette(tmp_path / "tape"), testing.use("HI") as model:
        assert [shout("a"), named("b"), named.map([{"text": "c"}])[0].data] == ["HI"] * 3 and model.calls == 3
        assert asyncio.run(named.aio("d")) == "HI" and [part.value for part in named.stream("e")][-1] == "HI"
        assert named.with_options(runtime=testing.runtime(model))("f") == "HI" and model.calls == 6
    assert model.requests[1].model == "test-1" and not (tmp_path / "tape").exists()


def test_calls_to_vendors_are_refused(runtime: CognitiveRuntime, mock: Any) -> None:
    with testing.refuse_calls():
        for call in (
            lambda: runtime.run("code-reviewer", {"code": "x"}),
            lambda: runtime.stream("code-reviewer", {"code": "x"}),
            lambda: runtime.map("code-reviewer", [{"code": "x"}]),
            lambda: Runtime(providers={"own": TestModel()}).run("code-reviewer", {"code": "x"}, provider="openai"),
        ):
            with pytest.raises(ModelCallRefused, match=r"a test would call a model \(openai\); use cognitive.testing.use"):
                call()
        assert Runtime(provider="offline").run("code-reviewer", {"code": "x"}).ok
        assert runtime.run("code-reviewer", {"code": "x"}, provider="offline").ok
        assert testing.runtime().run("code-reviewer", {"code": "x"}).ok
        with testing.allow_calls():
            assert runtime.run("code-reviewer", {"code": "x"}).ok
    assert len(mock.requests) == 1


def reply(text: str) -> str:
    answer = {"ok": True, "meta": {"confidence": 0.9, "risk": "low", "explain": "x"}, "data": {"result": text, "rationale": "x"}}
    return json.dumps(answer)


def test_cassette_replays_the_bytes_of_the_vendor(runtime: CognitiveRuntime, mock: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mock.respond = lambda request: reply("HI" if '"hi"' in str(request["messages"][-1]) else "HO")
    own, place = shout.with_options(runtime=runtime), tmp_path / "tapes" / "shout"
    with testing.cassette(place):
        assert [own("hi"), asyncio.run(own.aio("ho"))] == ["HI", "HO"]
        assert [partial.value for partial in own.stream("hi")][-1] == "HI"
    assert len(mock.requests) == 3
    assert sorted(file.name for file in place.iterdir()) == [f"000{n}.{kind}" for n in (1, 2, 3) for kind in ("json", "ndjson")]
    assert "sk-test" not in "".join(file.read_text() for file in place.iterdir())
    # Neither a key nor a server: another machine.
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    elsewhere = shout.with_options(runtime=Runtime())
    seen: list[str] = []
    elsewhere.check(seen.append)
    with testing.cassette(place), testing.refuse_calls():
        assert [elsewhere("hi"), asyncio.run(elsewhere.aio("ho"))] == ["HI", "HO"]
        assert [result.data for result in elsewhere.map([{"text": "hi"}, {"text": "ho"}])] == ["HI", "HO"]
        parts = [partial.text for partial in elsewhere.stream("hi") if partial.path is not None]
        assert parts and all("HI".startswith(part) for part in parts)
        for missing in (elsewhere.run("he"), elsewhere.with_options(temperature=0.5).run("hi")):
            assert missing.error is not None and missing.error.code == "E4001" and "no recording in" in missing.error.message
    assert len(mock.requests) == 3 and len(seen) == 5


def test_cassette_is_recorded_again_as_a_whole(runtime: CognitiveRuntime, mock: Any, tmp_path: Path) -> None:
    own, place = shout.with_options(runtime=runtime), tmp_path / "tape"
    mock.reply = reply("ONE")
    with testing.cassette(place):
        assert own("a") == own("b") == "ONE"
    mock.reply = reply("TWO")
    with pytest.raises(ZeroDivisionError), testing.cassette(place, record=True):
        own("a")
        raise ZeroDivisionError
    with testing.cassette(place):
        assert own("a") == "ONE"
    with testing.cassette(place, record=True):
        assert own("a") == "TWO"
    with testing.cassette(place):
        assert own("a") == "TWO" and not own.run("b").ok
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("tape")] == ["tape"]
    with pytest.raises(CognitiveError, match="E4001"), testing.cassette(tmp_path / "none", record=False):
        own("a")


def test_cassette_of_several_runtimes_and_providers(runtime: CognitiveRuntime, mock: Any, tmp_path: Path) -> None:
    """They write into one directory, and a provider of the program is called as always."""
    model = TestModel("HI")
    mock.reply = reply("HO")

    def run() -> list[str]:
        named = shout.with_options(runtime=Runtime(), provider="openai", model="mock-1")
        runtimes = [shout.with_options(runtime=one) for one in (runtime, Runtime(provider="openai", model="mock-2"))]
        return [shout.with_options(runtime=testing.runtime(model))("x"), named("a"), *[one("b") for one in runtimes]]

    for _ in range(2):
        with testing.cassette(tmp_path / "tape"):
            assert run() == ["HI", "HO", "HO", "HO"]
    assert model.calls == 2 and len(mock.requests) == 3


def test_cassette_records_only_what_is_allowed(runtime: CognitiveRuntime, mock: Any, tmp_path: Path) -> None:
    with testing.refuse_calls(), testing.cassette(tmp_path / "a"), pytest.raises(ModelCallRefused):
        runtime.run("code-reviewer", {"code": "x"})
    for _ in range(2):
        with testing.cassette(tmp_path / "b"):
            assert runtime.run("code-reviewer", {"code": "x"}).ok
    assert len(mock.requests) == 1
    with pytest.raises(CognitiveError, match="E4001: a recording has one provider"), testing.cassette(tmp_path / "c"):
        runtime.run("code-reviewer", {"code": "x"}, provider="openai,ollama")


def test_plugin_has_a_cassette_for_a_test(pytester: pytest.Pytester, mock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeconftest('pytest_plugins = ["cognitive.pytest_plugin"]' if not _is_installed() else "")
    pytester.makepyfile(
        test_it="""
        import pytest
        from cognitive import Runtime

        @pytest.mark.parametrize("code", ["a b", "c/d"])
        def test_review(cognitive_cassette, code):
            result = Runtime(provider="openai", model="mock-1").run("code-reviewer", {"code": code})
            assert result.ok, result.error
        """
    )
    options = ("-p", "no:cacheprovider")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", mock.url)
    pytester.runpytest_subprocess(*options).assert_outcomes(failed=2)
    pytester.runpytest_subprocess(*options, "--cognitive-record").assert_outcomes(passed=2)
    assert len(mock.requests) == 2
    assert sorted(path.name for path in (pytester.path / "cassettes/test_it").iterdir()) == ["test_review[a_b]", "test_review[c_d]"]
    monkeypatch.delenv("OPENAI_BASE_URL")
    pytester.runpytest_subprocess(*options).assert_outcomes(passed=2)


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
