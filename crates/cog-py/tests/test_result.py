"""Results as objects."""

from __future__ import annotations

import copy
import json
import pickle
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import ANSWER, Mock

from cognitive import CognitiveError, CognitiveRuntime, Result

INPUT = {"code": "fn main() {}"}


@pytest.fixture
def failed(offline: CognitiveRuntime) -> Result:
    return offline.execute("code-reviewer", {"code": 1})


def test_result_is_read_from_its_json(runtime: CognitiveRuntime, failed: Result) -> None:
    result = runtime.execute("code-reviewer", INPUT)
    assert Result(result.to_json()).to_json() == result.to_json()
    assert Result(failed.to_json(indent=True)).to_dict() == failed.to_dict()
    for text, message in [("{}", "not the envelope of a run"), ("{", "not JSON: .* at byte 1")]:
        with pytest.raises(ValueError, match=message):
            Result(text)


def test_results_are_equal_if_their_envelopes_are(runtime: CognitiveRuntime, failed: Result) -> None:
    text = json.dumps({"ok": True, "meta": {"confidence": 0.9, "risk": "none", "explain": "x"}, "data": {"a": 1}})
    assert Result(text) == Result(text) and Result(text) != Result(text.replace("1", "2")) and Result(text) != failed
    assert Result(text) != text and {Result(text), Result(text)} == {Result(text)}
    assert failed.error == Result(failed.to_json()).error and failed.error != failed.error.message  # type: ignore[union-attr]
    assert repr(Result(text)) == 'Result(ok=True, data={"a":1})'
    long = repr(Result(text.replace("1", json.dumps("é" * 999))))
    assert long.startswith('Result(ok=True, data={"a":"éé') and long.endswith("é…)") and len(long) < 250


def test_result_is_pickled_and_copied(runtime: CognitiveRuntime, failed: Result) -> None:
    for result in (runtime.execute("code-reviewer", INPUT), failed):
        for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert again == result and hash(again) == hash(result) and again.to_dict() == result.to_dict()
    result = runtime.execute("code-reviewer", INPUT)
    copy.deepcopy(result).data["verdict"] = "reject"
    assert result.data == ANSWER["data"]


def test_error_is_pickled_and_copied(failed: Result) -> None:
    with pytest.raises(CognitiveError) as raised:
        failed.raise_for_error()
    raised.value.__notes__ = ["in the third row"]
    for again in (pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value)):
        assert (str(again), again.envelope) == (str(raised.value), failed.to_dict())
        assert again.__notes__ == ["in the third row"]
    error = pickle.loads(pickle.dumps(failed.error))
    assert failed.error is not None
    assert (error.code, error.message, error.details) == (failed.error.code, failed.error.message, failed.error.details)
    assert error.origin == error.details["origin"] == "runtime"


@pytest.mark.parametrize("digits", [19, 100, 4_300, 4_301, 100_000])
def test_integer_of_any_size_is_exact(
    runtime: CognitiveRuntime, mock: Mock, tmp_path: Path, digits: int
) -> None:
    module = tmp_path / "counter"
    module.mkdir()
    (module / "module.yaml").write_text("name: counter\nversion: 1.0.0\nresponsibility: Count\ntier: exec\n")
    (module / "prompt.md").write_text("Count.\n")
    (module / "schema.json").write_text('{"input": {"type": "object"}, "data": {"type": "object"}}')
    number = "-" + "7" * digits
    answer = json.dumps({**ANSWER, "data": {"n": 1, "rationale": "Counted."}})
    mock.reply, mock.chunk_size = answer.replace('"n": 1', f'"n": {number}'), 1_000
    result = runtime.execute(module, INPUT)
    assert result.ok, result.error
    found = result.data["n"]
    assert found == Decimal(number)
    assert isinstance(found, int) == (digits <= 4_300)
    assert number in result.to_json()


def test_result_of_a_run_is_labelled(runtime: CognitiveRuntime) -> None:
    result = runtime.execute("code-reviewer", "x = 1")
    result.label("wrong", note="A test is missing.")
    result.label("wrong", note="A test is missing.")
    result.label("corrected", data={"verdict": "change", "issues": [], "rationale": "A test is missing."})
    file = Path.home() / ".local/state/cog/logs/labels.ndjson"
    labels = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(label["label"], label["module"]) for label in labels] == [
        ("wrong", "code-reviewer"),
        ("corrected", "code-reviewer"),
    ]
    assert (labels[0]["note"], labels[1]["data"]["verdict"]) == ("A test is missing.", "change")
    with pytest.raises(CognitiveError, match="does not fit the schema"):
        result.label("corrected", data={"verdict": "perhaps"})
    with pytest.raises(CognitiveError, match="needs the right answer"):
        result.label("corrected")
    with pytest.raises(ValueError, match="is not a label"):
        result.label("perhaps")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="of a run of this process"):
        Result(result.to_json()).label("right")
