"""Modules over Ray Data. It needs Ray: ``pip install 'cognitive[ray]'``.

>>> import ray
>>> from cognitive.ray import map_batches
>>> reviews = map_batches(ray.data.read_parquet("files.parquet"), "code-reviewer", concurrency=4)
>>> reviews.write_parquet("reviews")
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _batch, arrow
from ._runtime import lists_options

try:
    import pyarrow as pa
    import ray.data
except ModuleNotFoundError as _error:
    raise ImportError("cognitive.ray needs Ray: pip install 'cognitive[ray]'", name="ray") from _error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from ._batch import _AnyModule
    from ._runtime import CognitiveRuntime, RunOptions

__all__ = ["map_batches"]

#: The processors of an actor, unless `ray_options` says otherwise. It waits for the network most of the time.
_CPUS = 0.5


@lists_options
def map_batches(
    ds: ray.data.Dataset,
    module: _AnyModule,
    *,
    input: str | Mapping[str, str] | Callable[[dict[str, Any]], Any] | None = None,
    keep_columns: bool = True,
    prefix: str = "",
    concurrency: int | tuple[int, int] = 1,
    runs: int = 64,
    batch_size: int = 64,
    runtime: Callable[[], CognitiveRuntime] | None = None,
    ray_options: Mapping[str, Any] | None = None,
    **options: Unpack[RunOptions],
) -> ray.data.Dataset:
    """Runs a module for every row of a dataset. A run that fails is a row with its error, never an exception.

    The results have the columns of ``cognitive.arrow.schema(module)``. When an actor dies, Ray runs the rows again
    whose results it had not returned; each row is in the dataset once.

    Args:
        ds: The rows.
        module: A name, a path, a loaded module, a module in memory, or a function of ``cognitive.modules``.
        input: The input of a row: None takes the columns with the names of the input's fields; a string is the one column that is
            the input; a mapping has the column of each field; a function gets the row as a dict.
        keep_columns: Whether the result has the columns of the row, too.
        prefix: What the names of the new columns begin with.
        concurrency: The number of actors, each with a runtime of its own; or the smallest and the greatest number.
        runs: The maximum number of runs at once in each actor.
        batch_size: The number of rows that an actor gets at once; Ray gives it up to four batches.
        runtime: What makes the runtime of an actor; otherwise ``CognitiveRuntime`` with the settings of its process.
        ray_options: Further arguments of ``Dataset.map_batches``, such as ``{"num_cpus": 1}``.
        options: The options of the runs (``RunOptions``).

    Raises:
        CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
        ValueError: An argument is out of range, no column can be the input, or the actors leave Ray no processor to read the rows.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size: found {batch_size}; allowed: 1 and more")
    job, loaded = _batch.Job.of(module, runs, runtime, options)
    shape = _Shape(input, tuple(_batch.input_fields(loaded)), keep_columns, prefix)
    known = ds.schema(fetch_if_missing=False)
    if known is not None:
        shape.check(known.names, job)
    of_ray: dict[str, Any] = {"num_cpus": _processors(_total_processors(), concurrency), **(ray_options or {})}
    if not _may_grow():
        _check_processors(_total_processors(), concurrency, of_ray["num_cpus"])
    return ds.map_batches(
        _Actor,
        fn_constructor_args=(job, shape),
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=_actors(concurrency),
        udf_modifying_row_count=False,
        **of_ray,
    )


def _total_processors() -> float:
    """Returns the processors of the cluster. Ray connects to one when it makes a dataset."""
    resources: Any = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return float(resources.get("CPU", 1))


def _processors(total: float, concurrency: int | tuple[int, int]) -> float:
    """Returns the processors of an actor. One processor stays free: where actors have all of them, Ray cannot read the rows."""
    actors = concurrency if isinstance(concurrency, int) else concurrency[1]
    hundredths = int(max(total - 1, 0) * 100) // max(actors, 1)
    return min(_CPUS, hundredths / 100)


def _check_processors(total: float, concurrency: int | tuple[int, int], each: float | None) -> None:
    """Raises ``ValueError`` if actors of the program's choice would leave no processor to read the rows: Ray would wait for ever."""
    actors = concurrency if isinstance(concurrency, int) else concurrency[0]
    needed = actors * (each or 0)
    if needed and total - needed < 1:
        raise ValueError(
            f"ray_options: {actors} actors with num_cpus={each} need {needed:g} processors, and one more reads the rows; Ray has "
            f"{total:g}; leave num_cpus out, or use fewer actors"
        )


def _may_grow() -> bool:
    """Whether Ray may get more processors: a cluster that this program has not started may have an autoscaler."""
    worker = getattr(getattr(ray, "_private", None), "worker", None)
    return getattr(getattr(worker, "global_worker", None), "node", None) is None


def _actors(concurrency: int | tuple[int, int]) -> ray.data.ActorPoolStrategy:
    if isinstance(concurrency, int):
        return ray.data.ActorPoolStrategy(size=concurrency)
    return ray.data.ActorPoolStrategy(min_size=concurrency[0], max_size=concurrency[1])


@dataclasses.dataclass(frozen=True)
class _Shape:
    """How rows become inputs, and results become rows."""

    input: str | Mapping[str, str] | Callable[[dict[str, Any]], Any] | None
    fields: tuple[str, ...]
    keep_columns: bool
    prefix: str

    def check(self, names: Sequence[str], job: _batch.Job) -> None:
        """Raises `ValueError` if rows with these columns cannot be inputs, or cannot be kept next to results."""
        needed = [self.input] if isinstance(self.input, str) else []
        if isinstance(self.input, Mapping):
            needed = list(self.input.values())
        if missing := sorted(set(needed) - set(names)):
            raise ValueError(f"input: found no column {missing[0]!r}; the columns are {', '.join(names)}")
        if self.input is None and self.fields and not set(self.fields) & set(names):
            fields = ", ".join(self.fields)
            raise ValueError(
                f"no column is a field of the input ({fields}); the columns are {', '.join(names)}; "
                f"pass input={{{self.fields[0]!r}: COLUMN}}"
            )
        taken = [name for name, _ in job.columns.fields if self.keep_columns and self.prefix + name in names]
        if taken:
            raise ValueError(f"the columns {', '.join(taken)} exist; pass prefix=\"answer_\" or keep_columns=False")

    def input_of(self, row: Mapping[str, Any]) -> Any:
        """Returns the input of a row."""
        if callable(self.input):
            return self.input(dict(row))
        if isinstance(self.input, str):
            return row[self.input]
        if self.input is None:
            return {name: row[name] for name in self.fields if name in row} if self.fields else dict(row)
        return {field: row[column] for field, column in self.input.items()}

    def joined(self, rows: pa.Table, results: pa.Table) -> pa.Table:
        """Returns the rows with their results."""
        named = results.rename_columns([self.prefix + name for name in results.column_names])
        if not self.keep_columns:
            return named
        for field, column in zip(named.schema, named.columns):
            rows = rows.append_column(field, column)
        return rows


class _Row(Mapping[str, Any]):
    """A row of a table. A value is converted when it is asked for, so that one which Python cannot represent, such as a date after
    the year 9999, fails its row only."""

    def __init__(self, table: pa.Table, index: int) -> None:
        self._table, self._index = table, index

    def __getitem__(self, name: str) -> Any:
        return self._table.column(name)[self._index].as_py(maps_as_pydicts="lossy")

    def __contains__(self, name: object) -> bool:
        return name in self._table.column_names

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_columns)


class _Actor:
    """Runs the rows of batches in one process, many at once."""

    def __init__(self, job: _batch.Job, shape: _Shape) -> None:
        self._worker = _batch.Worker(job)
        self._job, self._shape = job, shape

    async def __call__(self, batch: pa.Table) -> pa.Table:
        if batch.num_rows:
            self._shape.check(batch.column_names, self._job)
        rows = (_Row(batch, index) for index in range(batch.num_rows))
        inputs = [functools.partial(self._shape.input_of, row) for row in rows]
        cells = await asyncio.gather(*map(self._worker.row, inputs))
        return self._shape.joined(batch, arrow._table(self._job.columns, cells))
