"""Results as Arrow tables, with a schema from the contract of the module. It needs PyArrow: ``pip install 'cognitive[arrow]'``.

>>> import cognitive.arrow
>>> results = [runtime.execute("code-reviewer", {"code": code}) for code in codes]
>>> table = cognitive.arrow.table("code-reviewer", results)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _columns
from ._columns import Choice, Items, Leaf, Struct, Type
from ._functions import ModuleFunction, default_runtime

try:
    import pyarrow as pa
except ModuleNotFoundError as _error:
    raise ImportError("cognitive.arrow needs PyArrow: pip install 'cognitive[arrow]'", name="pyarrow") from _error

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from ._cognitive import Module, Result
    from ._task import ModuleFiles
    from ._runtime import CognitiveRuntime

    _AnyModule = str | os.PathLike[str] | Module | ModuleFiles | ModuleFunction

__all__ = ["schema", "table"]


def schema(module: _AnyModule, *, runtime: CognitiveRuntime | None = None) -> pa.Schema:
    """Returns the columns of the results of a module. They depend on its contract alone.

    Args:
        module: A name, a path, a loaded module, or a function of ``cognitive.modules``.
        runtime: What loads the module; otherwise ``default_runtime()``.

    Raises:
        CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
    """
    return _schema(_columns_of(module, runtime))


def table(
    module: _AnyModule, results: Iterable[Result], *, runtime: CognitiveRuntime | None = None
) -> pa.Table:
    """Returns a table with a row for each result, also for one of a run that failed.

    Args:
        module: A name, a path, a loaded module, or a function of ``cognitive.modules``.
        results: Results of its runs.
        runtime: What loads the module; otherwise ``default_runtime()``.

    Raises:
        CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
    """
    columns = _columns_of(module, runtime)
    return _table(columns, [_columns.row(result.to_dict(), columns) for result in results])


def _columns_of(module: _AnyModule, runtime: CognitiveRuntime | None) -> Struct:
    source = module.module if isinstance(module, ModuleFunction) else module
    return _columns.columns_of((runtime or default_runtime()).load(source))


def _schema(columns: Struct) -> pa.Schema:
    return pa.schema([(name, _type(kind)) for name, kind in columns.fields])


def _table(columns: Struct, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Returns the table of rows as ``_columns.row`` returns them."""
    arrays = [_array(kind, [row[name] for row in rows]) for name, kind in columns.fields]
    return pa.Table.from_arrays(arrays, schema=_schema(columns))


def _type(kind: Type) -> pa.DataType:
    if isinstance(kind, Struct):
        return pa.struct([(name, _type(member)) for name, member in kind.fields])
    if isinstance(kind, Items):
        return pa.list_(_type(kind.item))
    if isinstance(kind, Choice):
        return pa.dictionary(pa.int32(), pa.utf8())
    return _leaf(kind)


def _leaf(kind: Leaf) -> pa.DataType:
    leaves = {"bool": pa.bool_(), "int64": pa.int64(), "float64": pa.float64()}
    return leaves.get(kind.kind, pa.utf8())


def _array(kind: Type, cells: list[Any]) -> pa.Array:
    """Returns the array of cells. The dictionary of an enum is the same in every array, so that arrays can be concatenated."""
    if isinstance(kind, Struct):
        members = [_array(member, [cell and cell[name] for cell in cells]) for name, member in kind.fields]
        empty = pa.array([cell is None for cell in cells], pa.bool_())
        return pa.StructArray.from_arrays(members, fields=list(_type(kind)), mask=empty)
    if isinstance(kind, Items):
        return _list(kind, cells)
    if isinstance(kind, Choice):
        index = {value: number for number, value in enumerate(kind.values)}
        indices = pa.array([None if cell is None else index[cell] for cell in cells], pa.int32())
        return pa.DictionaryArray.from_arrays(indices, pa.array(kind.values, pa.utf8()))
    return pa.array(cells, _leaf(kind))


def _list(kind: Items, cells: list[Any]) -> pa.Array:
    offsets: list[int | None] = []
    items: list[Any] = []
    for cell in cells:
        offsets.append(None if cell is None else len(items))
        items += cell or []
    offsets.append(len(items))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _array(kind.item, items), type=_type(kind))
