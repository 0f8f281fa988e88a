"""Tables of PyArrow, the reference implementation: written for the readers of batches, and read from their writers.

    python tables.py write DIRECTORY          writes tables, and the rows that they must become
    python tables.py read DIRECTORY CASES     checks the tables of the results of these cases
"""

import datetime
import decimal
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq

NOON = datetime.datetime(2026, 11, 24, 12, 0, 0, 1500)
DAY = datetime.date(2026, 11, 24)
TIME = datetime.time(12, 0, 1, 500)
SPAN = datetime.timedelta(seconds=90, milliseconds=5)
LONG = "longer than the twelve bytes of a view"
TAGS = pa.list_(pa.struct([("name", pa.utf8()), ("size", pa.int32())]))

#: Types, values, and what the fields of the input are; None is no field.
COLUMNS: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.bool_(), [True, None, False], [True, None, False]),
    (pa.int8(), [-128, None, 127], [-128, None, 127]),
    (pa.int16(), [-1, None, 1], [-1, None, 1]),
    (pa.int32(), [-1, None, 1], [-1, None, 1]),
    (pa.int64(), [-(2**63), None, 2**63 - 1], [-(2**63), None, 2**63 - 1]),
    (pa.uint8(), [0, None, 255], [0, None, 255]),
    (pa.uint16(), [0, None, 2**16 - 1], [0, None, 2**16 - 1]),
    (pa.uint32(), [0, None, 2**32 - 1], [0, None, 2**32 - 1]),
    (pa.uint64(), [0, None, 2**64 - 1], [0, None, 2**64 - 1]),
    (pa.float16(), [0.5, None, -2.0], [0.5, None, -2.0]),
    (pa.float32(), [0.1, None, 3e38], [0.1, None, 3e38]),
    (pa.float64(), [0.1, None, 1e-300], [0.1, None, 1e-300]),
    (pa.decimal128(38, 5), [decimal.Decimal("-12.34567"), None, decimal.Decimal(0)], [-12.34567, None, 0]),
    (pa.decimal256(76, 1), [decimal.Decimal("0.5"), None, decimal.Decimal(-7)], [0.5, None, -7]),
    (pa.utf8(), ["é\0\n", None, ""], ["é\0\n", None, ""]),
    (pa.large_utf8(), [LONG, None, "a"], [LONG, None, "a"]),
    (pa.binary(), [b"text", None, b""], ["text", None, ""]),
    (pa.large_binary(), [b"text", None, b""], ["text", None, ""]),
    (pa.binary(4), [b"text", None, b"abcd"], ["text", None, "abcd"]),
    (pa.date32(), [DAY, None, datetime.date(1, 1, 1)], ["2026-11-24", None, "0001-01-01"]),
    (pa.date64(), [DAY, None, DAY], ["2026-11-24", None, "2026-11-24"]),
    (pa.time32("s"), [TIME.replace(microsecond=0), None, datetime.time()], ["12:00:01", None, "00:00:00"]),
    (pa.time32("ms"), [datetime.time(12, 0, 1, 5000), None, datetime.time()], ["12:00:01.005", None, "00:00:00"]),
    (pa.time64("us"), [TIME, None, datetime.time()], ["12:00:01.000500", None, "00:00:00"]),
    (pa.time64("ns"), [TIME, None, datetime.time()], ["12:00:01.000500", None, "00:00:00"]),
    (pa.timestamp("s"), [NOON.replace(microsecond=0), None, None], ["2026-11-24T12:00:00", None, None]),
    (pa.timestamp("ms"), [NOON.replace(microsecond=2000), None, None], ["2026-11-24T12:00:00.002", None, None]),
    (pa.timestamp("us"), [NOON, None, None], ["2026-11-24T12:00:00.001500", None, None]),
    (pa.timestamp("ns"), [NOON, None, None], ["2026-11-24T12:00:00.001500", None, None]),
    (pa.timestamp("us", "UTC"), [NOON, None, None], ["2026-11-24T12:00:00.001500Z", None, None]),
    (pa.timestamp("us", "+02:00"), [NOON, None, None], ["2026-11-24T14:00:00.001500+02:00", None, None]),
    (pa.timestamp("us", "Europe/Oslo"), [NOON, None, None], ["2026-11-24T12:00:00.001500Z", None, None]),
    (pa.duration("ms"), [SPAN, None, -SPAN], ["PT90.005S", None, "-PT90.005S"]),
    (pa.duration("ns"), [SPAN, None, -SPAN], ["PT90.005S", None, "-PT90.005S"]),
    (pa.null(), [None, None, None], [None, None, None]),
    (pa.list_(pa.int64()), [[1, None], None, []], [[1, None], None, []]),
    (pa.large_list(pa.utf8()), [["a", None], None, []], [["a", None], None, []]),
    (pa.list_(pa.float32(), 2), [[1.5, None], None, [0, 0]], [[1.5, None], None, [0, 0]]),
    (TAGS, [[{"name": "a"}, None], None, []], [[{"name": "a"}, None], None, []]),
    (pa.struct([("at", TAGS)]), [{"at": [{"size": 1}]}, None, {}], [{"at": [{"size": 1}]}, None, {}]),
    (pa.map_(pa.utf8(), pa.int32()), [[("a", 1), ("b", None)], None, []], [{"a": 1, "b": None}, None, {}]),
    (pa.dictionary(pa.int8(), pa.utf8()), ["x", None, "y"], ["x", None, "y"]),
    (pa.dictionary(pa.int64(), pa.large_utf8()), ["x", None, "y"], ["x", None, "y"]),
    (pa.list_(pa.dictionary(pa.int32(), pa.utf8())), [["x", None], None, []], [["x", None], None, []]),
]
#: Those that Parquet keeps without the schema of Arrow: no durations, and no time zones but UTC.
PLAIN_COLUMNS = [
    column
    for column in COLUMNS
    if not pa.types.is_duration(column[0]) and column[0] != pa.timestamp("us", "+02:00")
]
#: Types that Parquet does not have, or does not keep.
ARROW_COLUMNS: list[tuple[pa.DataType, list[Any], list[Any]]] = [
    (pa.string_view(), [LONG, None, "a"], [LONG, None, "a"]),
    (pa.binary_view(), [LONG.encode(), None, b""], [LONG, None, ""]),
    (pa.list_view(pa.int64()), [[1, None], None, []], [[1, None], None, []]),
    (pa.large_list_view(pa.int64()), [[1, None], None, []], [[1, None], None, []]),
    (pa.decimal32(5, 2), [decimal.Decimal("1.25"), None, decimal.Decimal(0)], [1.25, None, 0]),
    (pa.decimal64(10, 2), [decimal.Decimal("1.25"), None, decimal.Decimal(0)], [1.25, None, 0]),
    (pa.decimal128(5, -2), [decimal.Decimal(-1200), None, decimal.Decimal(100)], [-1200, None, 100]),
    (pa.dictionary(pa.uint8(), pa.int64()), [7, None, 9], [7, None, 9]),
]


def table(columns: list[tuple[pa.DataType, list[Any], list[Any]]]) -> pa.Table:
    arrays = [pa.array(values, kind) for kind, values, _ in columns]
    return pa.table(arrays, names=[f"c{index}" for index in range(len(columns))])


def rows(columns: list[tuple[pa.DataType, list[Any], list[Any]]]) -> list[dict[str, Any]]:
    def row(number: int) -> dict[str, Any]:
        cells = {f"c{index}": fields[number] for index, (_, _, fields) in enumerate(columns)}
        return {name: cell for name, cell in cells.items() if cell is not None}

    return [row(number) for number in range(3)]


def write(directory: Path) -> None:
    both, arrow = table(COLUMNS), table([*COLUMNS, *ARROW_COLUMNS])
    for compression in ["none", "snappy", "zstd", "gzip", "lz4"]:
        pq.write_table(both, directory / f"{compression}.parquet", compression=compression)
    pq.write_table(both, directory / "v2.parquet", data_page_version="2.0", use_dictionary=False)
    pq.write_table(table(PLAIN_COLUMNS), directory / "plain.parquet", store_schema=False)
    times = pa.table({"c0": pa.array([NOON], pa.timestamp("us"))})
    pq.write_table(times, directory / "int96.parquet", store_schema=False, use_deprecated_int96_timestamps=True)
    pq.write_table(both, directory / "groups.parquet", row_group_size=1, write_page_index=True, write_page_checksum=True)
    pyarrow.feather.write_feather(arrow, directory / "lz4.feather")
    for name, compression in [("file", None), ("zstd", "zstd")]:
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.ipc.new_file(directory / f"{name}.arrow", arrow.schema, options=options) as file:
            file.write_table(arrow, max_chunksize=2)
    with pa.ipc.new_stream(directory / "stream.arrows", arrow.schema) as stream:
        stream.write_table(arrow)
    # One page of many large values, a text that is stored once, and a dictionary that grows.
    large = pa.array([chr(ord("a") + number % 26) * (1 << 20) for number in range(300)])
    pq.write_table(pa.table({"c0": large}), directory / "large-rows.parquet", compression="none", use_dictionary=False)
    repeated = pa.array([LONG * 25_000] * 2_000)
    pq.write_table(pa.table({"c0": repeated}), directory / "repeated-rows.parquet")
    with pa.ipc.new_stream(
        directory / "deltas.arrows",
        pa.schema([("c0", pa.dictionary(pa.int32(), pa.utf8()))]),
        options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True),
    ) as stream:
        for values in [["a"], ["a", "b"], ["x"]]:
            cells = pa.array([values[-1]]).dictionary_encode()
            cells = pa.DictionaryArray.from_arrays(pa.array([len(values) - 1], pa.int32()), values)
            stream.write_batch(pa.record_batch({"c0": cells}))
    expected = {
        "parquet": rows(COLUMNS),
        "plain": rows(PLAIN_COLUMNS),
        "arrow": rows([*COLUMNS, *ARROW_COLUMNS]),
    }
    (directory / "expected.json").write_text(json.dumps(expected))


def arrow_type(kind: dict[str, Any]) -> pa.DataType:
    """The type that the documentation promises."""
    if kind["type"] == "struct":
        return pa.struct([(member["name"], arrow_type(member)) for member in kind["fields"]])
    if kind["type"] == "list":
        return pa.list_(arrow_type(kind["item"]))
    leaves = {"bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64(), "utf8": pa.utf8()}
    return leaves.get(kind["type"], pa.dictionary(pa.int32(), pa.utf8()))


def present(value: Any) -> Any:
    """The value without its null members."""
    if isinstance(value, dict):
        return {name: present(member) for name, member in value.items() if member is not None}
    return [present(item) for item in value] if isinstance(value, list) else value


def schema(case: dict[str, Any]) -> pa.Schema:
    texts = [(name, pa.utf8()) for name in ["risk", "explain", "model"]]
    tokens = ["input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens"]
    return pa.schema([
        ("row", pa.int64()),
        ("ok", pa.bool_()),
        ("data", arrow_type(case["type"])),
        ("confidence", pa.float64()),
        *texts,
        ("usage", pa.struct([(name, pa.int64()) for name in tokens])),
        ("cost_usd", pa.float64()),
        ("error_code", pa.utf8()),
        ("error_message", pa.utf8()),
        ("unmapped", pa.utf8()),
    ])


def check(found: pa.Table, case: dict[str, Any], path: Path) -> None:
    found.validate(full=True)
    assert found.schema.equals(schema(case)), f"{path}: {found.schema}"
    *good, failed = found.to_pylist()
    assert len(good) == len(case["rows"]), path
    for number, (row, expected) in enumerate(zip(good, case["rows"])):
        unmapped = row["unmapped"] and json.loads(row["unmapped"])
        assert (row["row"], row["ok"]) == (number, True), path
        assert present(row["data"]) == expected["cell"], (path, row)
        assert unmapped == expected.get("unmapped"), (path, row)
    assert (failed["ok"], failed["data"], failed["error_code"]) == (False, None, "E3005"), path
    kind = found.schema.field("data").type
    # Parquet stores the values that occur, in their order there.
    if path.suffix == ".arrow" and pa.types.is_struct(kind):
        column = found.column("data").combine_chunks()
        for index in range(kind.num_fields):
            if pa.types.is_dictionary(kind.field(index).type):
                assert column.field(index).dictionary.to_pylist() == case["type"]["fields"][index]["values"], path


def read(directory: Path, cases: Path) -> None:
    files = sorted(cases.glob("*.json"))
    assert files
    for file in files:
        case = json.loads(file.read_text())
        parquet = directory / f"{file.stem}.parquet"
        check(pq.read_table(parquet), case, parquet)
        assert pq.read_metadata(parquet).created_by.startswith("cog ")
        arrow = directory / f"{file.stem}.arrow"
        check(pa.ipc.open_file(arrow).read_all(), case, arrow)
        check(pyarrow.feather.read_table(arrow), case, arrow)


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    {"write": write, "read": read}[command](*map(Path, paths))
