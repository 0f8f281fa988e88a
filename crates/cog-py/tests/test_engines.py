"""Modules over Ray Data and Daft, on two nodes of a cluster on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import daft
import pyarrow as pa
import pytest
import ray
import ray.data
from conftest import ANSWER, Mock
from ray.cluster_utils import Cluster

import cognitive.arrow
import cognitive.daft
from cognitive import CognitiveError, CognitiveRuntime, task
from cognitive.ray import _check_processors as check_ray_processors
from cognitive.ray import _processors as ray_processors
from cognitive.ray import _Row, _Shape, map_batches

ROWS = 1000
#: The rows that fail: two for their input, three for the answer of the model.
POISONED = {7: "E1001", 207: "E1001", 407: "E3005", 607: "E3005", 807: "E3005"}


def code_of(row: int) -> str:
    failure = POISONED.get(row)
    return "" if failure == "E1001" else f"poison({row})" if failure else f"print({row})"


def table() -> pa.Table:
    return pa.table({"id": range(ROWS), "code": [code_of(row) for row in range(ROWS)]})


class Model:
    """Answers with the code of the request, and kills a worker when half of the rows have been asked."""

    def __init__(self, mock: Mock, pids: Path) -> None:
        self.mock, self.pids = mock, pids
        self.killed: int | None = None
        self.will_kill = False
        self._lock = threading.Lock()

    def respond(self, request: dict[str, Any]) -> str:
        with self._lock:
            if self.will_kill and self.killed is None and len(self.mock.requests) >= ROWS // 2:
                self.killed = min(self.workers())
                os.kill(self.killed, signal.SIGKILL)
        found = re.search(r"(print|poison)\((\d+)\)", json.dumps(request["messages"]))
        assert found
        verdict = "approve" if found[1] == "print" else "maybe"
        return json.dumps({**ANSWER, "data": {"verdict": verdict, "issues": [], "rationale": found[0]}})

    def workers(self) -> set[int]:
        return {int(path.name) for path in self.pids.iterdir()} - {os.getpid()}

    def runtime(self) -> Callable[[], CognitiveRuntime]:
        """What makes the runtime of a worker, which notes the process."""
        pids = str(self.pids)

        def make() -> CognitiveRuntime:
            import os
            import pathlib

            from cognitive import CognitiveRuntime

            pathlib.Path(pids, str(os.getpid())).touch()
            return CognitiveRuntime(provider="openai", model="mock-1")

        return make


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mock]:
    """Two nodes, whose workers call the mock."""
    mock = Mock()
    mock.chunk_size = 4096
    threading.Thread(target=mock.serve_forever, daemon=True).start()
    settings = {
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_BASE_URL": mock.url,
        "COG_LOGS_ENABLED": "off",
        "HOME": str(tmp_path_factory.mktemp("home")),
    }
    # Workers have the least priority otherwise, and do not start on a machine that is busy.
    engine = {
        "RAY_worker_niceness": "0",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
        "DAFT_ANALYTICS_ENABLED": "0",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**settings, **engine}.items():
            patch.setenv(name, value)
        nodes = Cluster()
        nodes.add_node(num_cpus=2, include_dashboard=False, object_store_memory=128 << 20)
        nodes.add_node(num_cpus=2, object_store_memory=128 << 20)
        ray.init(address=nodes.address, log_to_driver=False)
        yield mock
        ray.shutdown()
        nodes.shutdown()  # type: ignore[no-untyped-call]
    mock.shutdown()
    mock.server_close()


@pytest.fixture
def model(cluster: Mock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", cluster.url)
    pids = tmp_path / "pids"
    pids.mkdir()
    model = Model(cluster, pids)
    cluster.requests.clear()
    cluster.respond = model.respond
    yield model
    cluster.respond = None


def check(rows: list[dict[str, Any]], model: Model) -> None:
    """Every row is there once with its own answer, and the poisoned ones have their codes."""
    assert sorted(row["id"] for row in rows) == list(range(ROWS))
    failed = {row["id"]: row["error_code"] for row in rows if not row["ok"]}
    assert failed == POISONED
    for row in rows:
        if row["ok"]:
            assert row["data"]["rationale"] == row["code"] and row["data"]["verdict"] == "approve"
            assert row["error_code"] is None and row["confidence"] == 0.9
        else:
            assert row["data"] is None and row["error_message"]


def test_ray_loses_no_row_when_a_worker_is_killed(model: Model) -> None:
    model.will_kill = True
    ds = ray.data.from_arrow(table()).repartition(20)
    out = map_batches(ds, "code-reviewer", runtime=model.runtime(), concurrency=2, runs=16, batch_size=32)
    found = pa.concat_tables(ray.get(out.to_arrow_refs()))
    assert found.schema.names == ["id", "code", *cognitive.arrow.schema("code-reviewer").names]
    assert found.schema.field("data").type == cognitive.arrow.schema("code-reviewer").field("data").type
    check(found.to_pylist(), model)
    # Two, and the one that Ray started in place of the killed one.
    assert model.killed in model.workers() and len(model.workers()) >= 3


def test_ray_runs_rows_with_columns_of_other_names(model: Model) -> None:
    ds = ray.data.from_items([{"text": "print(1)", "ok": 1}, {"text": "", "ok": 2}])
    out = map_batches(ds, "code-reviewer", input={"code": "text"}, prefix="r_", runtime=model.runtime())
    found = sorted(out.take_all(), key=lambda row: int(row["ok"]))
    assert [row["r_ok"] for row in found] == [True, False] and found[0]["r_data"]["rationale"] == "print(1)"


def test_ray_input_is_made_from_the_row() -> None:
    def made(input: Any, fields: tuple[str, ...] = ("code", "language")) -> Any:
        return _Shape(input, fields, True, "").input_of({"code": "x", "id": 3})

    assert made(None) == {"code": "x"}
    assert made(None, fields=()) == {"code": "x", "id": 3}
    assert made("code") == "x"
    assert made({"language": "code"}) == {"language": "x"}
    assert made(lambda row: row["id"]) == 3


def test_ray_row_that_cannot_be_an_input_is_data(model: Model) -> None:
    ds = ray.data.from_items([{"code": "print(1)", "focus": float("nan")}, {"code": "print(2)", "focus": None}])

    def second(row: dict[str, Any]) -> dict[str, Any]:
        return {"code": {}[row["code"]]}

    [bad, good] = map_batches(ds, "code-reviewer", runtime=model.runtime(), keep_columns=False).take_all()
    assert (bad["error_code"], good["ok"]) == ("E1003", True) and "NaN" in bad["error_message"]
    found = map_batches(ds, "code-reviewer", input=second, runtime=model.runtime()).take_all()
    assert {row["error_code"] for row in found} == {"E1001"} and "KeyError" in found[0]["error_message"]


def test_ray_value_that_python_cannot_represent_fails_its_row(model: Model) -> None:
    late = pa.array([2**31 - 1, 0], pa.date32())
    tags = pa.array([[("a", 1)], [("b", 2)]], pa.map_(pa.utf8(), pa.int64()))
    ds = ray.data.from_arrow(pa.table({"code": ["print(1)", "print(2)"], "at": late, "tags": tags}))
    seen = {"code": "code", "context": "at"}
    new: dict[str, Any] = {"keep_columns": False, "runtime": model.runtime()}
    rows = map_batches(ds, "code-reviewer", input=seen, **new).take_all()
    assert sorted((row["ok"], row["error_code"]) for row in rows)[0] == (False, "E1001")
    # A column that is no part of the input is not converted.
    rows = map_batches(ds, "code-reviewer", input={"code": "code"}, **new).take_all()
    assert [row["ok"] for row in rows] == [True, True]
    row = _Row(pa.table({"tags": tags}), 1)
    assert dict(row) == {"tags": {"b": 2}} and "code" not in row


def test_job_is_checked_before_it_is_sent(offline: CognitiveRuntime) -> None:
    @task
    def echo(code: str) -> list[str]:  # type: ignore[empty-body]
        """Echo the code."""

    with pytest.raises(ValueError, match="pass the module in memory itself"):
        cognitive.daft.module(offline.load(echo))
    assert [ray_processors(total, 4) for total in (1, 2, 3, 16)] == [0, 0.25, 0.5, 0.5]
    assert ray_processors(2, (1, 3)) == 0.33
    for total in range(1, 9):
        for actors in range(1, 12):
            check_ray_processors(total, actors, ray_processors(total, actors))
    refused: list[tuple[int, Any, float]] = [(1, 1, 1), (2, 2, 1), (2, 4, 0.5), (2, 3, 0.5), (4, (4, 8), 1)]
    for total, actors, each in refused:
        with pytest.raises(ValueError, match=f"with num_cpus={each} need .* and one more reads the rows; Ray has {total}"):
            check_ray_processors(total, actors, each)
    check_ray_processors(3, (2, 8), 1)
    with pytest.raises(TypeError, match="found no option 'temprature'; the options are provider"):
        cognitive.daft.module("code-reviewer", temprature=0)  # type: ignore[call-arg]


def test_ray_refuses_what_cannot_run(cluster: Mock) -> None:
    def offline() -> CognitiveRuntime:
        return CognitiveRuntime(provider="offline")

    ds = ray.data.from_arrow(pa.table({"text": ["x"], "ok": [True]}))
    for message, arguments in [
        ("no column is a field of the input", {}),
        ("found no column 'code'", {"input": "code"}),
        ("the columns ok exist", {"input": "text"}),
        ("runs: found 0", {"input": "text", "prefix": "r_", "runs": 0}),
        ("batch_size: found 0", {"input": "text", "prefix": "r_", "batch_size": 0}),
        ("99 actors with num_cpus=1 need 99 processors", {"input": "text", "prefix": "r_", "concurrency": 99, "ray_options": {"num_cpus": 1}}),
    ]:
        with pytest.raises(ValueError, match=message):
            map_batches(ds, "code-reviewer", runtime=offline, **arguments)  # type: ignore[arg-type]
    with pytest.raises(CognitiveError, match="E4006"):
        map_batches(ds, "no-such-module", runtime=offline)


def test_daft_loses_no_row_when_a_worker_is_killed(model: Model) -> None:
    daft.set_runner_ray()
    model.will_kill = True
    review = cognitive.daft.module("code-reviewer", runtime=model.runtime(), runs=16)
    df = daft.from_arrow(table()).into_partitions(8)
    df = df.with_column("review", review(code=df["code"]))
    rows = df.collect().to_pylist()
    check([{"id": row["id"], "code": row["code"], **row["review"]} for row in rows], model)
    assert model.killed in model.workers() and len(model.workers()) >= 2


def test_daft_type_is_that_of_the_contract() -> None:
    fields = cognitive.daft.return_dtype("code-reviewer").fields
    assert list(fields) == cognitive.arrow.schema("code-reviewer").names
    assert fields["ok"] == daft.DataType.bool()
    data = fields["data"].fields
    assert data["verdict"] == daft.DataType.string() and data["issues"].is_list()


def test_daft_runs_in_the_process_of_the_program(tmp_path: Path) -> None:
    program = """
import cognitive.daft, daft

review = cognitive.daft.module("code-reviewer", provider="offline")
df = daft.from_pydict({"code": ["x = 1", ""], "note": ["a", None]})
rows = df.select(review(code=df["code"], context=df["note"], language="python").unnest()).to_pylist()
print([(row["ok"], row["error_code"], row["data"] and row["data"]["issues"][0]["line"]) for row in rows])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[(True, None, 67), (False, 'E1001', None)]"


def test_daft_refuses_what_cannot_run(offline: CognitiveRuntime) -> None:
    review = cognitive.daft.module("code-reviewer")
    with pytest.raises(TypeError, match="no argument is an expression"):
        review(code="x")
    with pytest.raises(TypeError, match="either one argument or keyword arguments"):
        review()
    with pytest.raises(ValueError, match="runs: found 0"):
        cognitive.daft.module("code-reviewer", runs=0)


def test_module_in_memory_runs_on_workers(model: Model) -> None:
    @task
    def echo(code: str) -> list[str]:  # type: ignore[empty-body]
        """Echo the code."""

    model.mock.respond = lambda request: json.dumps({**ANSWER, "data": {"result": ["a"], "rationale": "r"}})
    [row] = map_batches(ray.data.from_items([{"code": "x"}]), echo, runtime=model.runtime()).take_all()
    assert list(row["data"]["result"]) == ["a"]
