"""An answer of a task while it arrives."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from . import _types
from ._errors import DataError
from ._fields import fields_of, hints_of, is_pydantic, is_typed_dict
from ._stream import Closing

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._cognitive import Result
    from ._stream import ChunkStream

T = TypeVar("T")

#: A segment of a path: `.name`, `[3]` or `["a name"]`.
_SEGMENT = re.compile(r'\.?([^.\[\]"]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]')
_Path = tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Partial(Generic[T]):
    """A part of an answer.

    Attributes:
        value: The answer so far, with the fields that are complete. A field that still arrives, or that violates the schema, is
            absent: ``AttributeError``. An answer without fields, such as a number, is None before it is complete. The last one is
            the complete answer.
        complete: The paths of the fields that are complete and checked: ``title``, ``issues[0].line``.
        path: The path of the string that arrives now; None between strings.
        text: This string so far.
    """

    value: T
    complete: frozenset[str]
    path: str | None = None
    text: str = ""


class PartialStream(Closing, Generic[T]):
    """The answer of a task as it arrives. Closing or dropping it cancels the run, and so does a consumer that is cancelled."""

    def __init__(self, chunks: ChunkStream, kind: Any) -> None:
        self._chunks = chunks
        self._kind = kind
        self._growing = _Growing(kind)

    @property
    def result(self) -> Result[T | None] | None:
        """The result of the run; None before the last chunk was read."""
        result = self._chunks.result
        return None if result is None else result.typed(self._kind)

    def display(self) -> None:
        """Shows the answer in a notebook while it arrives. ``result`` is available then."""
        self._chunks.display()

    def close(self) -> None:
        self._chunks.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Partial[T]:
        """Waits for the next part.

        Raises:
            CognitiveError: The run failed.
        """
        while True:
            part = self._part(next(self._chunks))
            if part is not None:
                return part

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Partial[T]:
        while True:
            part = self._part(await self._chunks.__anext__())
            if part is not None:
                return part

    def _part(self, chunk: dict[str, Any]) -> Partial[T] | None:
        if "chunk" in chunk:
            return self._growing.add(chunk["chunk"])
        if "progress" in chunk:
            return self._growing.report(chunk["progress"])
        result = self.result
        if "error" in chunk and result is not None:
            result.raise_for_error()
        if not chunk.get("final") or result is None:
            return None
        value: Any = result.data
        return Partial(value, frozenset(_paths(self._growing.without_wrapper(chunk["data"]))))


class _Growing:
    """The data of an answer, of which the chunks add one part after the other."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind.kind if isinstance(kind, _types.Wrapped) else kind
        self.root: _Path = ("result",) if isinstance(kind, _types.Wrapped) else ()
        self.clear()

    def clear(self) -> None:
        self.data: Any = None
        #: The paths of complete values that are no containers, in their order.
        self.complete: dict[_Path, None] = {}
        self.wrong: set[_Path] = set()
        self.open: _Path | None = None
        self.text: list[str] = []
        self.shown: tuple[Any, frozenset[str]] | None = None

    def add(self, chunk: dict[str, Any]) -> Partial[Any] | None:
        """Adds a chunk. Returns what it changes; None for a field that the type does not have, such as the rationale."""
        field = chunk.get("field")
        if field is None:
            self.clear()
            return Partial(_empty(self.kind), frozenset())
        place, *steps = path_of(field)
        path = tuple(steps)
        if place != "data" or not path:
            return None
        if chunk["type"] == "delta":
            if path != self.open:
                self.end_string()
                self.open = path
            self.text.append(chunk["delta"])
            return self.part(path)
        self.end_string()
        self.put(path, chunk["data"])
        return self.part(path)

    def report(self, progress: dict[str, Any]) -> Partial[Any] | None:
        """Removes a value that violates the schema."""
        violation = progress.get("violation")
        if not isinstance(violation, dict) or not str(violation.get("path", "")).startswith("data."):
            return None
        self.end_string()
        path = path_of(violation["path"])[1:]
        self.wrong.add(path)
        self.shown = None
        return self.part(path)

    def end_string(self) -> None:
        """Completes the string that arrived."""
        if self.open is not None:
            path, text = self.open, "".join(self.text)
            self.open, self.text = None, []
            self.put(path, text)

    def put(self, path: _Path, value: Any) -> None:
        self.shown = None
        self.data = _put(self.data, path, value)
        if not isinstance(value, (dict, list)):
            self.complete[path] = None

    def part(self, changed: _Path) -> Partial[Any] | None:
        if changed[: len(self.root)] != self.root or (not self.root and changed[0] in _types._ADDED and not self.has(changed[0])):
            return None
        length = len(self.root)
        # A part of a string changes nothing else: a long one costs no more than its text.
        if self.shown is None:
            self.shown = self.built()
        value, shown = self.shown
        if self.open is None:
            return Partial(value, shown)
        return Partial(value, shown, _text(self.open[length:]), "".join(self.text))

    def built(self) -> tuple[Any, frozenset[str]]:
        """Returns the answer so far, and the paths of its complete values."""
        length = len(self.root)
        complete = [path[length:] for path in self.complete if path[:length] == self.root and not self.is_wrong(path)]
        data = self.data
        for step in self.root:
            data = data.get(step) if isinstance(data, dict) else None
        value = _ABSENT if data is None else _built(data, self.kind, self.is_done, self.root)
        value = _empty(self.kind) if value is _ABSENT else value
        return value, frozenset(_text(path) for path in complete)

    def has(self, name: str) -> bool:
        fields = getattr(self.kind, "__pydantic_fields__", None) or (fields_of(self.kind) if isinstance(self.kind, type) else None)
        return fields is None or name in fields

    def is_wrong(self, path: _Path) -> bool:
        return any(path[: len(wrong)] == wrong for wrong in self.wrong)

    def is_done(self, path: _Path) -> bool:
        """Whether no further chunk changes the value at this path, and it is right."""
        return path in self.complete and not self.is_wrong(path)

    def without_wrapper(self, data: Any) -> Any:
        for step in self.root:
            data = data[step]
        return {key: value for key, value in data.items() if key not in _types._ADDED or self.has(key)} if isinstance(data, dict) else data


_ABSENT: Any = object()


def _built(data: Any, kind: Any, is_done: Callable[[_Path], bool], path: _Path) -> Any:
    """Returns the complete part of a value as its type; ``_ABSENT`` if nothing of it is complete."""
    if isinstance(data, list):
        element = _element(kind)
        items = [_built(item, element, is_done, (*path, index)) for index, item in enumerate(data)]
        return [item for item in items if item is not _ABSENT]
    if isinstance(data, dict):
        kind = _arm(kind, data)
        hints = _hints(kind)
        built = {name: _built(value, hints(name), is_done, (*path, name)) for name, value in data.items()}
        return _instance(kind, {name: value for name, value in built.items() if value is not _ABSENT})
    if not is_done(path):
        return _ABSENT
    try:
        return _types._convert(data, kind, "data")
    except (DataError, TypeError):
        return _ABSENT


def _arm(kind: Any, data: dict[str, Any]) -> Any:
    """Returns the class of a union whose fields the members have so far, and whose literals they match."""
    import types
    import typing

    if typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) not in (typing.Union, types.UnionType):
        return kind
    arms = [arm for arm in typing.get_args(kind) if _owner(arm) is not None]
    return next((arm for arm in arms if _fits(arm, data)), arms[0] if len(arms) == 1 else dict) if arms else kind


def _fits(arm: Any, data: dict[str, Any]) -> bool:
    import typing

    hints = _hints(arm)
    for name, value in data.items():
        hint = hints(name)
        if hint is Any and name not in _types._ADDED:
            return False
        if typing.get_origin(hint) is typing.Literal and value not in typing.get_args(hint):
            return False
    return True


def _empty(kind: Any) -> Any:
    """Returns an answer without any of its fields; None for one that has no fields."""
    import typing

    origin = typing.get_origin(kind) or kind
    if origin in (list, dict):
        return origin()
    return _instance(kind, {}) if _owner(origin) is not None else None


def _instance(kind: Any, members: dict[str, Any]) -> Any:
    """Returns an object of a class with these fields, and without the others. It is not validated."""
    owner = _owner(kind)
    if owner is None or is_typed_dict(owner):
        return members
    if is_pydantic(owner):
        from ._pydantic import names_of

        names = {key: name for name, field in owner.__pydantic_fields__.items() for key in names_of(name, field)}
        members = {names[key]: value for key, value in members.items() if key in names}
        made = object.__new__(owner)
        object.__setattr__(made, "__dict__", members)
        if hasattr(owner, "model_fields"):
            object.__setattr__(made, "__pydantic_fields_set__", set(members))
            object.__setattr__(made, "__pydantic_extra__", None)
            object.__setattr__(made, "__pydantic_private__", None)
        return made
    fields = fields_of(owner) or {}
    known = {name: value for name, value in members.items() if name in fields}
    if issubclass(owner, tuple):
        return owner._make(known.get(name) for name in owner._fields)  # type: ignore[attr-defined]
    made = object.__new__(owner)
    for name, value in known.items():
        object.__setattr__(made, name, value)
    return made


def _owner(kind: Any) -> type[Any] | None:
    """Returns the class with fields that a type stands for: the one of a union that has one."""
    import typing

    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _owner(typing.get_args(kind)[0])
    for arm in typing.get_args(kind) if origin and not isinstance(origin, type) else ():
        if (owner := _owner(arm)) is not None:
            return owner
    kind = origin or kind
    return kind if isinstance(kind, type) and (is_pydantic(kind) or fields_of(kind) is not None) else None


def _hints(kind: Any) -> Callable[[str], Any]:
    import typing

    owner = _owner(kind)
    if owner is None:
        values = typing.get_args(kind)[1:2]
        return lambda _: values[0] if values else Any
    if is_pydantic(owner):
        from ._pydantic import names_of

        names: dict[str, Any] = {}
        for name, field in getattr(owner, "__pydantic_fields__").items():  # noqa: B009
            names.update(dict.fromkeys(names_of(name, field), field.annotation))
        return lambda name: names.get(name, Any)
    hints = hints_of(kind if typing.get_origin(kind) is owner else owner)
    return lambda name: hints.get(name, Any)


def _element(kind: Any) -> Any:
    import typing

    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if origin is not None and not isinstance(origin, type):
        return next((_element(arm) for arm in arguments if typing.get_origin(arm) is not None), Any)
    return arguments[0] if arguments else Any


def path_of(text: str) -> _Path:
    """Reads a path of a chunk: ``data.issues[0].title``."""
    import json

    steps: list[Any] = []
    for name, index, quoted in _SEGMENT.findall(text):
        steps.append(int(index) if index else json.loads(f'"{quoted}"') if quoted else name)
    return tuple(steps)


def _text(path: _Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _put(data: Any, path: _Path, value: Any) -> Any:
    """Puts a value at a path. The containers on the way are created."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = data if isinstance(data, list) else []
        items.extend([None] * (step + 1 - len(items)))
        items[step] = _put(items[step], rest, value)
        return items
    members = data if isinstance(data, dict) else {}
    members[step] = _put(members.get(step), rest, value)
    return members


def _paths(data: Any, path: _Path = ()) -> Iterator[str]:
    """Yields the paths of all values that are no containers."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _paths(value, (*path, name))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _paths(value, (*path, index))
    else:
        yield _text(path)
