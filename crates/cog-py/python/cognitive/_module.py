"""Modules that are created from Python functions and types."""

from __future__ import annotations

import inspect
import json
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, overload

from . import _cognitive, _schema

if TYPE_CHECKING:
    import os

    from typing_extensions import Unpack

    from ._cognitive import Module

#: The input of a module that is made from the type of its answer alone.
_QUERY = {
    "type": "object",
    "properties": {"query": {"type": "string", "minLength": 1}},
    "required": ["query"],
    "additionalProperties": False,
}
_META = {
    "type": "object",
    "required": ["confidence", "risk", "explain"],
    "properties": {
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "risk": {"enum": ["none", "low", "medium", "high"]},
        "explain": {"type": "string", "maxLength": 280},
    },
}
_ERROR = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "recoverable": {"type": "boolean"},
        "details": {"type": "object"},
    },
}
_RATIONALE = {"type": "string", "description": "What supports the answer"}


class ModuleFiles:
    """A module in memory. A runtime executes it as any other, and ``save`` writes its directory.

    Attributes:
        name: The name.
        files: The text of each file.
    """

    def __init__(self, name: str, files: Mapping[str, str]) -> None:
        self.name = name
        self.files = dict(files)
        self.__cognitive_module__: Module = _cognitive.load_files(self.files)

    def save(self, directory: str | os.PathLike[str]) -> pathlib.Path:
        """Writes the module into a directory of its name, and returns that. ``cog validate`` accepts it.

        Args:
            directory: The directory in which the new one is created.

        Raises:
            FileExistsError: The directory exists.
        """
        own = pathlib.Path(directory, self.name)
        own.mkdir(parents=True)
        for name, text in self.files.items():
            (own / name).write_text(text, encoding="utf-8")
        return own

    def __repr__(self) -> str:
        return f"ModuleFiles(name={self.name!r})"

    def __reduce__(self) -> tuple[type[ModuleFiles], tuple[str, dict[str, str]]]:
        """How it is pickled and copied: the module is loaded again from its files."""
        return ModuleFiles, (self.name, self.files)


class ModuleOptions(TypedDict, total=False):
    """The arguments of ``module`` beside its source."""

    name: str | None
    """The name of the module; otherwise that of the source, with hyphens."""
    prompt: str | None
    """What the model does; otherwise the docstring. Its first line is also the responsibility of the module."""
    input: Any
    """The type of the input, if the source is a type; otherwise a text with the name ``query``."""
    tier: Literal["exec", "decision", "exploration"]
    """How far a program may rely on the answer; ``"decision"`` by default."""
    version: str
    """The version of the module; ``"0.1.0"`` by default."""
    excludes: Iterable[str]
    """What the model must not do; otherwise to invent facts."""
    tools: Iterable[str]
    """The names of tools that the model may call. What else they may do is up to the policies of the manifest."""


@overload
def module(source: Callable[..., Any], /, **options: Unpack[ModuleOptions]) -> ModuleFiles: ...


@overload
def module(
    source: None = None, /, **options: Unpack[ModuleOptions]
) -> Callable[[Callable[..., Any]], ModuleFiles]: ...


def module(
    source: Callable[..., Any] | None = None, /, **options: Unpack[ModuleOptions]
) -> ModuleFiles | Callable[[Callable[..., Any]], ModuleFiles]:
    """Creates a module from a function, or from the type of its answer.

    A function gives the input by its parameters, the answer by its return type, and the prompt by its docstring; it is never
    called. A dataclass, a TypedDict or a Pydantic model is the type of the answer.

    >>> @module
    ... def summarize(text: str, sentences: int = 2) -> Summary:
    ...     '''Summarize the text in so many sentences.'''
    >>> runtime.execute(summarize, {"text": "..."}).as_type(Summary)

    Args:
        source: The function, or the type of the answer.
        options: ``name``, ``prompt``, ``input``, ``tier``, ``version``, ``excludes`` and ``tools`` (``ModuleOptions``).

    Raises:
        TypeError: JSON cannot represent a parameter or the answer.
        ValueError: There is no prompt.
        CognitiveError: E4008 if the module is invalid, such as for its name.
    """

    return _make(source, **options) if source is not None else lambda source: _make(source, **options)


def _make(
    source: Callable[..., Any],
    *,
    name: str | None = None,
    prompt: str | None = None,
    input: Any = None,
    tier: str = "decision",
    version: str = "0.1.0",
    excludes: Iterable[str] = ("inventing facts that are not in the input",),
    tools: Iterable[str] = (),
) -> ModuleFiles:
    own = name or _kebab(source.__name__)
    text = inspect.cleandoc(prompt or _docstring(source) or "")
    if not text:
        raise ValueError(f"{own}: the model needs a prompt; write a docstring, or give prompt")
    manifest: dict[str, Any] = {
        "name": own,
        "version": version,
        "responsibility": text.splitlines()[0],
        "tier": tier,
        "excludes": list(excludes),
        "response": {"mode": "both"},
    }
    if allowed := list(tools):
        manifest["policies"] = {"tools_allowed": True}
        manifest["tools"] = {"policy": "deny_by_default", "allowed": allowed}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in manifest.items()]
    files = {
        "module.yaml": "".join(lines),
        "prompt.md": f"{text}\n",
        "schema.json": json.dumps(_contract(source, input, own), indent=2, ensure_ascii=False) + "\n",
    }
    return ModuleFiles(own, files)


def _contract(source: Callable[..., Any], given: Any, name: str) -> dict[str, Any]:
    """Returns the schemas of input and answer."""
    if isinstance(source, type):
        taken: dict[str, Any] = dict(_QUERY) if given is None else _schema.schema_of(given, f"{name}: input")
        answer: Any = source
    else:
        if given is not None:
            raise TypeError(f"{name}: input is for a type; a function gives the input by its parameters")
        taken = _schema.parameters(source, name).schema
        answer = _schema.return_type(source, name)
        if answer is None:
            raise TypeError(f"{name}: the function has no return type; it is the type of the answer")
    data = _schema.schema_of(answer, f"{name}: answer")
    definitions: dict[str, Any] = taken.pop("$defs", {})
    _schema.add_definitions(definitions, data.pop("$defs", {}), f"{name}: answer")
    if "$ref" in data:
        data = dict(definitions[data["$ref"].rpartition("/")[2]])
    if data.get("type") != "object":
        data = {"type": "object", "properties": {"result": data}, "required": ["result"]}
    contract = {"input": taken, "meta": _META, "data": _with_rationale(data), "error": _ERROR}
    return {**contract, "$defs": definitions} if definitions else contract


def _with_rationale(data: dict[str, Any]) -> dict[str, Any]:
    """Adds the rationale that every answer has."""
    properties = {**data.get("properties", {})}
    properties.setdefault("rationale", _RATIONALE)
    required = dict.fromkeys([*data.get("required", []), "rationale"])
    return {**data, "properties": properties, "required": list(required)}


def _docstring(source: Callable[..., Any]) -> str | None:
    text = source.__doc__
    # The one that a dataclass writes itself.
    return None if text is None or text.startswith(f"{source.__name__}(") else text


def _kebab(name: str) -> str:
    """``code_reviewer`` and ``CodeReviewer`` become ``code-reviewer``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name)
    return spaced.replace("_", "-").strip("-").lower()
