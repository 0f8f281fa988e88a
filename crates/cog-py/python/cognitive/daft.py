"""Modules as functions of Daft. It needs Daft: ``pip install 'cognitive[daft]'``.

>>> import daft
>>> import cognitive.daft
>>> review = cognitive.daft.module("code-reviewer")
>>> files = daft.read_parquet("files.parquet")
>>> files = files.with_column("review", review(code=files["code"]))
>>> files.where(files["review"]["ok"]).select("path", files["review"]["data"]["verdict"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _batch, _columns
from ._columns import Items, Leaf, Struct, Type
from ._runtime import lists_options

try:
    import daft
except ModuleNotFoundError as _error:
    raise ImportError("cognitive.daft needs Daft: pip install 'cognitive[daft]'", name="daft") from _error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Unpack

    from ._batch import _AnyModule
    from ._runtime import CognitiveRuntime, RunOptions

__all__ = ["module", "return_dtype"]


@lists_options
def module(
    module: _AnyModule,
    *,
    runs: int = 64,
    runtime: Callable[[], CognitiveRuntime] | None = None,
    daft_options: Mapping[str, Any] | None = None,
    **options: Unpack[RunOptions],
) -> Callable[..., daft.Expression]:
    """Returns a module as a function of expressions. A run that fails is a value with its error, never an exception.

    Its arguments are the input as one expression, or the fields of the input by name. Its value is a struct of
    ``return_dtype(module)``; ``expression.unnest()`` makes a column of each member.

    Args:
        module: A name, a path, a loaded module, a module in memory, or a function of ``cognitive.modules``.
        runs: The maximum number of runs at once in each process.
        runtime: What makes the runtime of a process; otherwise ``CognitiveRuntime`` with the settings of that process.
        daft_options: Further arguments of ``daft.cls``.
        options: The options of the runs (``RunOptions``).

    Raises:
        CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
        ValueError: ``runs`` is out of range.
    """
    job, loaded = _batch.Job.of(module, runs, runtime, options)
    name = loaded.name

    async def run(self: _Udf, *inputs: Any, **fields: Any) -> Any:
        return await self.worker.row(lambda: inputs[0] if inputs else fields)

    # Daft stores the type in the function, so every module has its own class. It has no name in the module, so that it is sent along.
    method = daft.method(return_dtype=_dtype(job.columns))(run)
    own = type("_ModuleUdf", (_Udf,), {"run": method})
    udf = daft.cls(own, max_concurrency=runs, **{"name_override": name, **(daft_options or {})})(job)

    def call(input: Any = None, /, **fields: Any) -> daft.Expression:
        if (input is None) == (not fields):
            raise TypeError(f"{name}: the input is either one argument or keyword arguments")
        given = fields.values() if input is None else [input]
        if not any(isinstance(value, daft.Expression) for value in given):
            raise TypeError(f"{name}: no argument is an expression, such as df[\"code\"]; `execute` runs one input")
        expression: daft.Expression = udf.run(**fields) if input is None else udf.run(input)
        return expression

    call.__name__ = call.__qualname__ = name
    call.__doc__ = loaded.responsibility
    return call


def return_dtype(
    module: _AnyModule, *, runtime: Callable[[], CognitiveRuntime] | None = None
) -> daft.DataType:
    """Returns the type of the values of a module. It depends on its contract alone.

    It has the columns of ``cognitive.arrow.schema``, with texts for enums.

    Raises:
        CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
    """
    job, _ = _batch.Job.of(module, 1, runtime, {})
    return _dtype(job.columns)


class _Udf:
    """Runs rows in one process."""

    def __init__(self, job: _batch.Job) -> None:
        self.worker = _batch.Worker(job)


def _dtype(kind: Type) -> daft.DataType:
    types = daft.DataType
    found: daft.DataType
    if isinstance(kind, Struct):
        found = types.struct({name: _dtype(member) for name, member in kind.fields})
    elif isinstance(kind, Items):
        found = types.list(_dtype(kind.item))
    else:
        leaves = {_columns.BOOL: types.bool(), _columns.INT: types.int64(), _columns.FLOAT: types.float64()}
        found = leaves.get(kind, types.string()) if isinstance(kind, Leaf) else types.string()
    return found
