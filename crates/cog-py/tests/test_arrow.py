"""Results as Arrow tables."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.parquet
import pytest
from conftest import ANSWER

import cognitive.arrow
from cognitive import CognitiveError, CognitiveRuntime, Result, _columns, task
from cognitive._batch import present
from cognitive._columns import Choice, Items, Leaf, Struct, Type

#: The cases of `cog batch` are also those of this package. `rows` have the data of an answer, its cell, and what is unmapped.
CASES = sorted(Path(__file__, "../../../cog-batch/tests/arrow").resolve().glob("*.json"))


def described(kind: Type) -> dict[str, Any]:
    """A type as the cases describe it."""
    if isinstance(kind, Struct):
        return {"type": "struct", "fields": [{"name": name, **described(member)} for name, member in kind.fields]}
    if isinstance(kind, Items):
        return {"type": "list", "item": described(kind.item)}
    if isinstance(kind, Choice):
        return {"type": "dictionary", "values": list(kind.values)}
    contents = {"open": {"content": "text or json"}, "json": {"content": "json"}}
    return {"type": "utf8" if kind.kind in contents else kind.kind, **contents.get(kind.kind, {})}


def envelope(data: Any) -> dict[str, Any]:
    return {**ANSWER, "data": data}


def test_there_are_cases() -> None:
    assert len(CASES) >= 4


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case_of_the_batches(path: Path) -> None:
    case = json.loads(path.read_text())
    contract = case["contract"]
    kind = _columns.data_type(contract, contract.get("data"))
    assert described(kind) == case["type"]
    columns = _columns.columns(kind)
    rows = [_columns.row(envelope(each["data"]), columns) for each in case["rows"]]
    table = cognitive.arrow._table(columns, rows)
    table.validate(full=True)
    for each, row in zip(case["rows"], table.to_pylist()):
        assert present(row["data"]) == each["cell"]
        unmapped = row["unmapped"]
        assert (None if unmapped is None else json.loads(unmapped)) == each.get("unmapped")


def read(path: Path) -> pa.Table:
    """The file as it is read back, with the dictionaries of Arrow."""
    return pyarrow.parquet.read_table(path)


def test_columns_are_those_of_the_contract(offline: CognitiveRuntime) -> None:
    schema = cognitive.arrow.schema("code-reviewer", runtime=offline)
    assert schema.names == [
        "ok", "data", "confidence", "risk", "explain", "model", "usage", "cost_usd", "error_code", "error_message", "unmapped",
    ]
    data = schema.field("data").type
    assert [data.field(index).name for index in range(4)] == ["issues", "rationale", "verdict", "extensions"]
    assert data.field("verdict").type == pa.dictionary(pa.int32(), pa.utf8())
    issue = data.field("issues").type.value_type
    assert (issue.field("line").type, issue.field("category").type) == (pa.int64(), pa.utf8())


def test_results_become_rows_that_parquet_keeps(offline: CognitiveRuntime, tmp_path: Path) -> None:
    inputs: list[Any] = ["x = 1", {"code": 1}]
    results = [offline.execute("code-reviewer", input) for input in inputs]
    table = cognitive.arrow.table("code-reviewer", results, runtime=offline)
    table.validate(full=True)
    assert table.schema == cognitive.arrow.schema("code-reviewer", runtime=offline)
    good, bad = table.to_pylist()
    expected = results[0].data
    for issue in expected["issues"]:
        if isinstance(issue["category"], dict):  # a value of an open enum that the schema does not list
            issue["category"] = json.dumps(issue["category"], separators=(",", ":"))
    assert present(good["data"]) == expected and good["ok"] and good["error_code"] is None
    assert (bad["ok"], bad["data"], bad["error_code"]) == (False, None, "E1003") and "input.code" in bad["error_message"]
    pyarrow.parquet.write_table(table, tmp_path / "table.parquet")
    assert read(tmp_path / "table.parquet").equals(table)
    assert cognitive.arrow.table("code-reviewer", [], runtime=offline).num_rows == 0


def test_control_plane_has_columns(offline: CognitiveRuntime) -> None:
    cost = {"amount": 0.25, "currency": "USD", "source": "genai-prices", "date": "2026-11-22"}
    usage = {"input_tokens": 3, "output_tokens": 4, "reasoning_tokens": 1, "total_tokens": 7, "cost": cost}
    meta = {"confidence": 0.5, "risk": {"custom": "legal", "reason": "It quotes."}, "explain": "Short.", "usage": usage}
    data = {"verdict": "approve", "issues": [], "rationale": "Short.", "mood": 3}
    result = Result(json.dumps({"ok": True, "meta": {**meta, "model": "mock/m"}, "data": data}))
    [row] = cognitive.arrow.table("code-reviewer", [result], runtime=offline).to_pylist()
    assert row["risk"] == '{"custom":"legal","reason":"It quotes."}'
    assert row["usage"] == {"input_tokens": 3, "output_tokens": 4, "cached_input_tokens": None, "reasoning_tokens": 1}
    assert (row["cost_usd"], row["model"], row["confidence"], row["unmapped"]) == (0.25, "mock/m", 0.5, '{"/mood":3}')


def test_numbers_of_any_size_are_kept(offline: CognitiveRuntime) -> None:
    @task
    def count(text: str) -> dict[str, int]:  # type: ignore[empty-body]
        """Count."""

    digits = "7" * 5000
    result = Result(f'{{"ok":true,"meta":{json.dumps(ANSWER["meta"])},"data":{{"rationale":"r","big":{digits}}}}}')
    [row] = cognitive.arrow.table(count, [result], runtime=offline).to_pylist()
    assert row["unmapped"] == f'{{"/big":{digits}}}'


class Floats(TypedDict):
    n: list[float]


class Integers(TypedDict):
    n: list[int]


def test_number_beyond_the_floats_is_unmapped() -> None:
    contract = {"properties": {"most": {"type": "number"}, "count": {"type": "integer"}}}
    kind = _columns.data_type({}, contract)
    meta = json.dumps(ANSWER["meta"])
    result = Result(f'{{"ok":true,"meta":{meta},"data":{{"rationale":"r","most":1e400,"count":-1e400}}}}')
    row = _columns.row(result.to_dict(), _columns.columns(kind))
    assert row["data"] == {"most": None, "count": None, "rationale": "r"}
    assert row["unmapped"] == '{"/most":1E+400,"/count":-1E+400}'
    for text in ["1e400", "-1e999999999999999999"]:
        data = Result(f'{{"ok":true,"meta":{meta},"data":{{"rationale":"r","n":[{text}]}}}}')
        assert data.data["n"] == [Decimal(text)]
        with pytest.raises(ValueError, match="expected float"):
            data.as_type(Floats)
    with pytest.raises(ValueError, match="expected int"):
        data.as_type(Integers)


def test_tables_of_the_same_module_are_concatenated(offline: CognitiveRuntime) -> None:
    def table(verdict: str) -> pa.Table:
        data = {"verdict": verdict, "issues": [], "rationale": "r"}
        return cognitive.arrow.table("code-reviewer", [Result(json.dumps(envelope(data)))], runtime=offline)

    joined = pa.concat_tables([table("approve"), table("reject")]).combine_chunks()
    assert [row["data"]["verdict"] for row in joined.to_pylist()] == ["approve", "reject"]


def chain(length: int) -> dict[str, Any]:
    """A contract whose fields multiply by ten with each of its definitions."""

    def level(index: int) -> dict[str, Any]:
        return {"type": "object", "properties": {name: {"$ref": f"#/$defs/{index}"} for name in "abcdefghij"}}

    definitions = {str(index): level(index + 1) for index in range(length)}
    return {"data": level(0), "$defs": {**definitions, str(length): {"type": "string"}}}


def test_contract_with_millions_of_fields_is_text() -> None:
    contract = chain(7)
    assert _columns.data_type(contract, contract["data"]) == _columns.JSON
    small = chain(2)
    assert isinstance(_columns.data_type(small, small["data"]), Struct)


def test_deep_contract_ends_in_text() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    kind = _columns.data_type({}, schema)
    depth = 0
    while isinstance(kind, Items):
        kind, depth = kind.item, depth + 1
    assert (kind, depth) == (Leaf("json"), _columns.MAX_DEPTH)


def test_module_that_does_not_exist_is_named(offline: CognitiveRuntime) -> None:
    with pytest.raises(CognitiveError, match="E4006"):
        cognitive.arrow.schema("no-such-module", runtime=offline)


def test_function_of_a_module_has_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    from cognitive.modules import text_critic

    assert cognitive.arrow.schema(text_critic).field("data").type.field("accepted").type == pa.bool_()


def test_module_in_memory_is_pickled(offline: CognitiveRuntime) -> None:
    @task
    def count(text: str) -> list[int]:  # type: ignore[empty-body]
        """Count."""

    copied = pickle.loads(pickle.dumps(count))
    assert copied.files == count.files
    assert cognitive.arrow.schema(copied, runtime=offline) == cognitive.arrow.schema(count, runtime=offline)
    assert offline.load(copied).contract["data"] == offline.load(copied).data_schema


@pytest.mark.parametrize(("name", "package"), [("arrow", "pyarrow"), ("ray", "ray"), ("daft", "daft")])
def test_missing_package_is_named_with_its_installation(name: str, package: str) -> None:
    program = f"""
import sys
import cognitive
assert not {{"pyarrow", "ray", "daft"}} & set(sys.modules), "importing cognitive must not import them"
sys.modules[{package!r}] = None
try:
    import cognitive.{name}
except ImportError as error:
    print(error, error.name)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"pip install 'cognitive[{name}]' {package}" in done.stdout
