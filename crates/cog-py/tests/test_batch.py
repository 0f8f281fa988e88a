"""Batches that continue, data frames, and progress bars."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import pandas
import polars
import pytest

import cognitive
from cognitive import Budget, CognitiveRuntime, ModelRequest, task, testing


@dataclass
class Decision:
    """Decide."""

    kind: str
    score: float
    tags: list[str]


@task
def triage(ticket: str, priority: int | None = None) -> Decision:
    """Classify the ticket."""
    raise NotImplementedError


def decide(request: ModelRequest) -> Any:
    given = json.loads(str(request.messages[-1]["content"]))
    if given["ticket"] == "bad":
        return "no JSON"
    return {"kind": given["ticket"].upper(), "score": given.get("priority", 0), "tags": ["a"]}


def deciding(function: Any = decide) -> tuple[Any, testing.TestModel]:
    model = testing.TestModel(function)
    return triage.with_options(runtime=testing.runtime(model), retries=0), model


ROWS: list[Any] = [{"ticket": name} for name in ("a", "b", "bad", "d")]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_results_are_in_the_order_of_the_rows(tmp_path: Path) -> None:
    own, model = deciding()
    report = own.batch(iter([*ROWS, {"ticket": object()}]), tmp_path / "out.jsonl", concurrency=3)
    assert (report.ok, report.failed, report.ran, report.stopped) == (3, 2, 5, None) and model.calls == 4
    found = lines(report.out)
    assert [line["row"] for line in found] == [0, 1, 2, 3, 4]
    assert [line["data"]["kind"] if line["ok"] else line["error"]["code"] for line in found] == ["A", "B", "E1000", "D", "E1003"]
    assert {tuple(line) for line in found} == {
        ("row", "ok", "meta", "data", "error", "partial_data", "_warnings", "_emitted_context", "_handoff")
    }


def test_interrupted_batch_continues(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"

    def stops(request: ModelRequest) -> Any:
        if '"d"' in str(request.messages[-1]["content"]):
            raise KeyboardInterrupt
        return decide(request)

    own, model = deciding(stops)
    with pytest.raises(KeyboardInterrupt):
        own.batch(ROWS, out, concurrency=1)
    assert model.calls == 4 and not out.exists()
    journal = tmp_path / "out.jsonl.journal"
    journal.write_bytes(journal.read_bytes() + b'{"row": 3, "resu')  # as a crash leaves it
    own, model = deciding()
    report = own.batch(ROWS, out)
    assert (report.ran, report.ok, report.failed) == (1, 3, 1) and model.calls == 1
    assert own.batch(ROWS, out).ran == 0 and model.calls == 1
    assert own.batch(ROWS, out, retry_failed=True).ran == 1
    changed = [*ROWS[:3], {"ticket": "e"}]
    assert own.batch(changed, out).ran == 1 and lines(out)[3]["data"]["kind"] == "E"


def test_budget_stops_a_batch_that_continues_later(tmp_path: Path) -> None:
    own, model = deciding()
    report = own.with_options(budget=Budget(max_calls=2)).batch(ROWS, tmp_path / "out.jsonl", concurrency=1)
    assert report.stopped is not None and "max_calls" in report.stopped and (report.ran, model.calls) == (2, 2)
    assert not report.out.exists()
    assert own.batch(ROWS, tmp_path / "out.jsonl").ran == 2


def test_journal_of_another_batch_is_refused(tmp_path: Path) -> None:
    own, _ = deciding()
    own.batch(ROWS, tmp_path / "out.jsonl")
    with pytest.raises(ValueError, match=r"out.jsonl.journal: the journal belongs to another batch \(options changed\)"):
        own.with_options(temperature=0.5).batch(ROWS, tmp_path / "out.jsonl")
    with open(tmp_path / "out.jsonl.journal", "ab") as file:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError, match="another batch uses"):
            own.batch(ROWS, tmp_path / "out.jsonl")


def test_frame_of_pandas_gets_the_answers() -> None:
    own, model = deciding()
    df = pandas.DataFrame(
        {"ticket": ["a", "bad", None, "d"], "priority": [1, 2, 3, numpy.nan], "other": pandas.NaT}, index=[7, 8, 9, 7]
    )
    found = cognitive.frame(own, df)
    assert list(found.columns) == ["ticket", "priority", "other", "ok", "kind", "score", "tags", "confidence", "error_code", "error"]
    assert list(found.index) == [7, 8, 9, 7] and list(found["ok"]) == [True, False, False, True]
    # A column with a missing number has floats, and JSON's 1.0 is an integer.
    assert found["kind"].iloc[0] == "A" and found["score"].iloc[0] == 1 and found["tags"].iloc[3] == ["a"]
    assert found["error_code"].iloc[1] == "E1000" and found["error_code"].iloc[2] == "E1002"
    assert found["confidence"].iloc[0] == 0.9 and model.calls == 3
    alone = cognitive.frame(own, df, keep_columns=False, prefix="answer_", input={"ticket": "ticket"})
    assert "answer_kind" in alone.columns and "ticket" not in alone.columns


def test_frame_of_polars_gets_the_answers() -> None:
    own, _ = deciding()
    df = polars.DataFrame({"text": ["a", "bad", "c"], "priority": [1, None, 3]})
    found = cognitive.frame(own, df, input=lambda row: {"ticket": row["text"]} if row["text"] != "c" else row["none"])
    assert found["kind"].to_list() == ["A", None, None] and found.height == 3
    assert found["tags"].to_list()[0] == ["a"] and found["error_code"].to_list() == [None, "E1000", "E1003"]
    assert "the input cannot be created from the row: KeyError: 'none'" in found["error"].to_list()[2]
    with pytest.raises(TypeError, match=r"df: found LazyFrame; allowed: a DataFrame of pandas or Polars; call collect\(\) first"):
        cognitive.frame(own, df.lazy())


def test_columns_of_a_frame_are_named(offline: CognitiveRuntime) -> None:
    own, _ = deciding()
    with pytest.raises(ValueError, match=r"no column is a field of the input \(ticket, priority\); the columns are text; pass input="):
        cognitive.frame(own, pandas.DataFrame({"text": ["a"]}))
    with pytest.raises(ValueError, match="found several columns 'ticket'"):
        cognitive.frame(own, pandas.DataFrame([["a", "b"]], columns=["ticket", "ticket"]))
    with pytest.raises(ValueError, match="found no column 'texts'; the columns are ticket"):
        cognitive.frame(own, pandas.DataFrame({"ticket": ["a"]}), input="texts")
    with pytest.raises(ValueError, match="the columns ok exist; pass prefix="):
        cognitive.frame(own, pandas.DataFrame({"ticket": ["a"], "ok": [1]}))
    wide = pandas.DataFrame({f"c{number}": [object()] for number in range(200)} | {"ticket": ["a"]})
    assert list(cognitive.frame(own, wide)["ok"]) == [True]
    assert len(cognitive.frame(own, wide.iloc[:0])) == 0


def test_frame_has_any_columns() -> None:
    """200 of them, names twice, numbers as names, and values of several types in one."""
    own, model = deciding()
    mixed = ["a", 2, 3.5, None, b"x", object()]
    names = [*range(197), "ticket", "twice", "twice"]
    df = pandas.DataFrame([[value] * 200 for value in mixed], columns=names)
    found = cognitive.frame(own, df)
    assert found.shape == (6, 207) and list(found.columns)[:200] == names
    assert list(found["ok"]) == [True] + [False] * 5
    assert list(found["error_code"])[1:] == ["E1003", "E1003", "E1002", "E1003", "E1003"] and model.calls == 1
    by_number = cognitive.frame(own, df, input={"ticket": "0"}, keep_columns=False)
    assert list(by_number["kind"])[0] == "A"
    wide = polars.DataFrame({f"c{number}": ["a", "b"] for number in range(200)} | {"ticket": ["a", "b"]})
    assert cognitive.frame(own, wide)["kind"].to_list() == ["A", "B"]


@pytest.mark.parametrize("wrong", [{"ticket": float("nan")}, {"ticket": numpy.float64("nan")}, {"ticket": {1, "a"}}, {"ticket": object()}])
def test_row_without_a_form_in_json_is_a_failed_row(wrong: dict[str, Any], tmp_path: Path) -> None:
    rows = [{"ticket": "a"}, wrong, {"ticket": "b"}]
    own, model = deciding()
    results = [own.map(rows), asyncio.run(own.runtime.amap(own, rows))]
    for found in results:
        assert [result.ok for result in found] == [True, False, True]
        assert found[1].error is not None and found[1].error.code == "E1003"
    report = own.batch(rows, tmp_path / "out.jsonl")
    assert (report.ok, report.failed) == (2, 1) and lines(tmp_path / "out.jsonl")[1]["error"]["code"] == "E1003"
    df = pandas.DataFrame({"row": rows})
    assert list(cognitive.frame(own, df, input=lambda row: row["row"])["ok"]) == [True, False, True]
    assert model.calls == 8


def test_progress_bar_counts_rows(capsys: pytest.CaptureFixture[str]) -> None:
    own, _ = deciding()
    assert len(own.map(ROWS, progress=True)) == 4
    shown = capsys.readouterr().err
    assert "4/4" in shown and "failed=1" in shown
