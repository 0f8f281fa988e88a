"""Data frames of pandas and Polars: a run for each row, and the answers as columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ._functions import ModuleFunction, default_runtime
from ._runtime import lists_options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._cognitive import Module, Result
    from ._runtime import CognitiveRuntime, RunOptions

Frame = TypeVar("Frame")


@lists_options
def frame(
    module: Any,
    df: Frame,
    *,
    input: str | Mapping[str, str] | Callable[[dict[str, Any]], Any] | None = None,
    prefix: str = "",
    keep_columns: bool = True,
    concurrency: int = 16,
    progress: bool = False,
    runtime: CognitiveRuntime | None = None,
    **options: Unpack[RunOptions],
) -> Frame:
    """Runs a module for each row of a data frame, and returns a frame of the same kind and length with the answers.

    The new columns are ``ok``, a column for each field of the answer, ``confidence``, ``error_code`` and ``error``. A row that fails has
    its error, and never ends the others. A missing value is an absent field of the input.

    >>> answers = cognitive.frame(triage, tickets, concurrency=32)

    Args:
        module: A task, a function of ``cognitive.modules``, a name, a path, or a loaded module.
        df: A data frame of pandas or Polars.
        input: The input of a row: None takes the columns with the names of the input's fields; a string is the one column that is
            the input; a mapping has the column of each field; a function gets the row as a dict.
        prefix: What the names of the new columns begin with.
        keep_columns: Whether the result has the columns of ``df``, too.
        concurrency: The maximum number of runs at once.
        progress: Whether to show a progress bar, which needs tqdm.
        runtime: What runs the module; otherwise the task's, or ``default_runtime()``.
        options: The options of the runs (``RunOptions``).

    Raises:
        CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
        TypeError: ``df`` is no data frame.
        ValueError: A column is missing, or has a name that another one has.
    """
    table = _table(df)
    own = getattr(module, "_options", {})
    runner = runtime or getattr(module, "_runtime", None) or default_runtime()
    source = module.module if isinstance(module, ModuleFunction) else module
    loaded = runner.load(source)
    names = _Columns(loaded, prefix, table.names if keep_columns else ())
    rows = [_present(row) for row in table.rows(input, _fields(loaded.input_schema))]
    given: RunOptions = {**own, **options}
    results = runner.map(source, rows, concurrency=concurrency, progress=progress, **given)
    made: Frame = table.joined(names.cells(results), keep_columns)
    return made


class _Columns:
    """The columns of the answers."""

    def __init__(self, module: Module, prefix: str, taken: Sequence[str]) -> None:
        self.fields = [name for name in _fields(module.data_schema) if name not in ("rationale", "extensions")]
        self.prefix = prefix
        names = ["ok", *self.fields, "confidence", "error_code", "error"]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"the answer has a field {twice[0]!r}, which is also a column of every result; use runtime.map")
        if known := [prefix + name for name in names if prefix + name in taken]:
            raise ValueError(f"the columns {', '.join(known)} exist; pass prefix=\"answer_\" or keep_columns=False")

    def cells(self, results: Sequence[Result]) -> dict[str, list[Any]]:
        """Returns the cells of each column."""
        data = [result.data if isinstance(result.data, dict) else {} for result in results]
        errors = [result.error for result in results]
        columns: dict[str, list[Any]] = {"ok": [result.ok for result in results]}
        columns.update({name: [one.get(name) for one in data] for name in self.fields})
        columns["confidence"] = [result.meta.get("confidence") if result.ok else None for result in results]
        columns["error_code"] = [None if error is None else error.code for error in errors]
        columns["error"] = [None if error is None else error.message for error in errors]
        return {self.prefix + name: cells for name, cells in columns.items()}


class _Pandas:
    def __init__(self, df: Any) -> None:
        self.df = df
        self.names = [str(name) for name in df.columns]

    def rows(self, input: Any, fields: Sequence[str]) -> list[Any]:
        import pandas

        def column(name: str) -> list[Any]:
            # A name may be a number, and others may be there twice.
            series = self.df.iloc[:, self.names.index(name)]
            return [None if missing else value for value, missing in zip(series, _missing(pandas, series))]

        return _inputs(input, fields, self.names, column, len(self.df))

    def joined(self, cells: dict[str, list[Any]], keep_columns: bool) -> Any:
        import pandas

        answers = pandas.DataFrame(cells, index=self.df.index)
        return pandas.concat([self.df, answers], axis=1) if keep_columns else answers


class _Polars:
    def __init__(self, df: Any) -> None:
        self.df = df
        self.names = list(df.columns)

    def rows(self, input: Any, fields: Sequence[str]) -> list[Any]:
        def column(name: str) -> list[Any]:
            return [None if value != value else value for value in self.df[name].to_list()]  # noqa: PLR0124

        return _inputs(input, fields, self.names, column, self.df.height)

    def joined(self, cells: dict[str, list[Any]], keep_columns: bool) -> Any:
        import polars

        answers = polars.DataFrame([polars.Series(name, values, strict=False) for name, values in cells.items()])
        return self.df.hstack(answers) if keep_columns else answers


def _table(df: Any) -> _Pandas | _Polars:
    package = type(df).__module__.partition(".")[0]
    if package == "polars" and hasattr(df, "hstack"):
        return _Polars(df)
    if package == "pandas" and hasattr(df, "iloc") and hasattr(df, "columns"):
        return _Pandas(df)
    hint = "; call collect() first" if hasattr(df, "collect") else ""
    raise TypeError(f"df: found {type(df).__name__}; allowed: a DataFrame of pandas or Polars{hint}")


def _missing(pandas: Any, series: Any) -> list[bool]:
    # A list in a cell is a value; `isna` looks into none of them.
    return [bool(missing) for missing in pandas.isna(series)]


def _inputs(
    input: Any, fields: Sequence[str], names: Sequence[str], column: Callable[[str], list[Any]], length: int
) -> list[Any]:
    """Returns the input of each row."""
    if callable(input):
        columns = {name: _column(name, names, column) for name in names}
        rows = ({name: cells[index] for name, cells in columns.items()} for index in range(length))
        return [_made(input, row) for row in rows]
    if isinstance(input, str):
        return _column(input, names, column)
    chosen = dict(input) if input is not None else {name: name for name in fields if name in names}
    if input is None and fields and not chosen:
        raise ValueError(
            f"no column is a field of the input ({', '.join(fields)}); the columns are {', '.join(names[:20])}; "
            f"pass input={{{fields[0]!r}: COLUMN}}"
        )
    if input is None and not fields:
        chosen = {name: name for name in names}
    columns = {field: _column(name, names, column) for field, name in chosen.items()}
    return [{field: cells[index] for field, cells in columns.items()} for index in range(length)]


def _made(make: Callable[[dict[str, Any]], Any], row: dict[str, Any]) -> Any:
    try:
        return make(row)
    except Exception as error:
        return _Failed(error)


class _Failed:
    """An input that could not be made. It has no form in JSON, so that its row fails with this text."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @property
    def __fspath__(self) -> Any:
        raise ValueError(f"the input cannot be created from the row: {type(self.error).__name__}: {self.error}")


def _column(name: str, names: Sequence[str], column: Callable[[str], list[Any]]) -> list[Any]:
    if names.count(name) != 1:
        found = "no column" if name not in names else "several columns"
        raise ValueError(f"found {found} {name!r}; the columns are {', '.join(names[:20])}")
    return column(name)


def _present(row: Any) -> Any:
    """Returns an input without its missing fields."""
    return {name: value for name, value in row.items() if value is not None} if isinstance(row, dict) else row


def _fields(schema: Mapping[str, Any] | None) -> list[str]:
    return list((schema or {}).get("properties", {}))
