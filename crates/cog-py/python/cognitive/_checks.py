"""Checks of answers: what their types and the functions of a task say about them. The model reads it, and answers again."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _cognitive, _deps, _schema, _types
from ._errors import DataError
from ._fields import fields_of, hints_of, is_pydantic

Violations = list[tuple[str, str]]

#: Types whose values the schema of an answer describes completely.
_DESCRIBED = (Any, object, None, types.NoneType, str, int, float, bool, decimal.Decimal, dict, list, tuple, Mapping, Sequence)


@dataclasses.dataclass(frozen=True)
class Check:
    """A function that checks an answer.

    Attributes:
        fields: The fields of the input that it takes.
        deps: The parameters that receive the ``deps`` of a run, with their types.
    """

    function: Callable[..., Any]
    fields: tuple[str, ...]
    deps: dict[str, Any]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> Check:
        """Raises ``TypeError`` if the function takes no answer."""
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or parameters[0].kind is parameters[0].KEYWORD_ONLY:
            raise TypeError(f"{function.__name__}: a check takes the answer, and then fields of the input by their names")
        try:
            deps = _deps.parameters_of(_schema.hints_of_function(function, function.__name__))
        except TypeError:
            deps = {}
        names = [parameter.name for parameter in parameters[1:]]
        return cls(function, tuple(name for name in names if name not in deps), deps)

    def call(self, answer: Any, input: Any) -> Any:
        """Calls the function with an answer, and with the fields of the input that it takes."""
        found = _deps.arguments(self.function.__name__, self.deps)
        for name in self.fields:
            if isinstance(input, Mapping) and name in input:
                found[name] = input[name]
            elif hasattr(input, name) and not isinstance(input, Mapping):
                found[name] = getattr(input, name)
        return self.function(answer, **found)


def native_checks(kind: Any, functions: Sequence[Check], input: Any) -> list[_cognitive.NativeCheck]:
    """Returns the checks of a run: of the type, and of the functions. ``input`` is what they may compare the answer with."""
    checks = _Checks(kind, functions, input)
    is_async = any(inspect.iscoroutinefunction(check.function) for check in functions)
    return [_cognitive.NativeCheck(checks.in_loop if is_async else checks.in_thread, is_async=is_async)]


def may_refuse(kind: Any, seen: frozenset[Any] = frozenset()) -> bool:
    """Whether a type can refuse an answer that its schema accepts: with a validator, or with a constructor of its own."""
    if kind in _DESCRIBED or isinstance(kind, typing.TypeVar) or kind in seen:
        return False
    seen |= {kind}
    origin = typing.get_origin(kind)
    if origin is typing.Literal or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        return False
    if origin is typing.Annotated:
        base, *notes = typing.get_args(kind)
        return any(type(note).__module__.startswith("pydantic") for note in notes) or may_refuse(base, seen)
    owner = origin or kind
    if isinstance(owner, type) and not is_pydantic(owner) and fields_of(owner) is not None:
        has_own = hasattr(owner, "__post_init__") or hasattr(owner, "__attrs_post_init__") or hasattr(owner, "__attrs_attrs__")
        return has_own or any(may_refuse(hint, seen) for hint in hints_of(kind, include_extras=True).values())
    if origin is not None:
        return any(may_refuse(argument, seen) for argument in typing.get_args(kind) if argument is not ...)
    return kind is not datetime.date


class _Checks:
    def __init__(self, kind: Any, functions: Sequence[Check], input: Any) -> None:
        self.kind = kind
        self.functions = functions
        self.input = input

    def in_thread(self, data: Any, text: str) -> Violations:
        value, violations = self.converted(data, text)
        for check in () if violations else self.functions:
            try:
                check.call(value, self.input)
            except (ValueError, AssertionError) as error:
                violations += self.violations(error)
        return violations

    async def in_loop(self, data: Any, text: str) -> Violations:
        value, violations = self.converted(data, text)
        for check in () if violations else self.functions:
            try:
                done = check.call(value, self.input)
                if inspect.isawaitable(done):
                    await done
            except (ValueError, AssertionError) as error:
                violations += self.violations(error)
        return violations

    def converted(self, data: Any, text: str) -> tuple[Any, Violations]:
        """Returns the answer as its type, or what the type says against it. The checks get an object that nobody else has."""
        try:
            return _types.to_type(data, text, self.kind), []
        except DataError as error:
            cause = error.__cause__
            root = error.path.removesuffix(_place(error)) if cause else error.path
            return None, (_types.violations_of(cause, root) if cause else []) or [(error.path, error.reason)]

    def violations(self, error: BaseException) -> Violations:
        path = "data.result" if isinstance(self.kind, _types.Wrapped) else "data"
        if isinstance(error, DataError):
            return [(error.path, error.reason)]
        return _types.violations_of(error, path) or [(path, str(error) or type(error).__name__)]


def _place(error: DataError) -> str:
    """Returns the end of a path that comes from Pydantic."""
    violations = _types.violations_of(error.__cause__, "") if error.__cause__ else []
    return violations[0][0] if violations else ""
