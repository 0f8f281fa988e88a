"""Typed functions that a model answers: modules that are created from Python functions and types."""

from __future__ import annotations

import functools
import inspect
import json
import pathlib
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypedDict, TypeVar, overload

from . import _checks, _cognitive, _deps, _schema, _types
from ._functions import default_runtime
from ._runtime import RunOptions, _native_options, _Options, lists_options
from ._tool import EFFECTS, Tool

if TYPE_CHECKING:
    import os

    from typing_extensions import ParamSpec, Self, Unpack

    from ._cognitive import Module, Result
    from ._journal import BatchReport
    from ._partial import PartialStream
    from ._runtime import CognitiveRuntime
    from ._stream import ChunkStream

    P = ParamSpec("P")
else:
    # `typing` has it since Python 3.10.
    from typing import ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
Checker = TypeVar("Checker", bound="Callable[..., Any]")

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

    def __reduce__(self) -> str | tuple[Any, ...]:
        """How it is pickled and copied: the module is loaded again from its files."""
        return ModuleFiles, (self.name, self.files)


class _BaseTask(ModuleFiles, Generic[P, T]):
    """What the calls of a task have in common."""

    __name__: str
    __qualname__: str

    def __init__(self, files: ModuleFiles, source: Callable[..., Any], kind: Any) -> None:
        super().__init__(files.name, files.files)
        # It has the name, the docstring and the signature of its source.
        wrapper: Any = self
        functools.update_wrapper(wrapper, source, updated=())
        self._source = source
        self._kind = kind
        self._checks: list[_checks.Check] = []
        #: The parameters that are the ``deps`` of a call.
        self._deps = {} if isinstance(source, type) else _deps.parameters_of(_schema.hints_of_function(source, files.name))
        self._is_checked = _checks.may_refuse(kind.kind if isinstance(kind, _types.Wrapped) else kind)
        self._runtime: CognitiveRuntime | None = None
        self._options: RunOptions = {}

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Result[T | None]:
        """Runs the task, and returns the result with confidence, cost and warnings, also if the run failed. ``data`` has the
        type of the answer."""
        input, options = self._bound(args, kwargs)
        result = self.runtime.execute(self, input, **options)
        return result.typed(self._kind)

    async def arun(self, *args: P.args, **kwargs: P.kwargs) -> Result[T | None]:
        """Returns the result as ``run`` does, without blocking the event loop."""
        input, options = self._bound(args, kwargs)
        result = await self.runtime.execute_async(self, input, **options)
        return result.typed(self._kind)

    async def aio(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the answer as a call does, without blocking the event loop."""
        input, options = self._bound(args, kwargs)
        result = await self.runtime.execute_async(self, input, **options)
        answer: T = result.raise_for_error().as_type(self._kind)
        return answer

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> PartialStream[T]:
        """Runs the task, and returns its answer as it arrives: for ``for`` and for ``async for``.

        >>> for partial in summarize.stream(text="..."):
        ...     if "title" in partial.complete:
        ...         print(partial.value.title)
        """
        from ._partial import PartialStream

        return PartialStream(self.chunks(*args, **kwargs), self._kind)

    def chunks(self, *args: P.args, **kwargs: P.kwargs) -> ChunkStream:
        """Runs the task, and returns its chunks: for ``for`` and for ``async for``."""
        input, options = self._bound(args, kwargs)
        return self.runtime.execute_stream(self, input, **options)

    def map(self, rows: Iterable[Any], *, concurrency: int = 16, progress: bool = False) -> list[Result[T | None]]:
        """Runs the task for each input, at most ``concurrency`` at once (``CognitiveRuntime.map``)."""
        results = self.runtime.map(self, rows, concurrency=concurrency, progress=progress, **self._options)
        return [result.typed(self._kind) for result in results]

    def batch(
        self,
        rows: Iterable[Any],
        out: str | os.PathLike[str],
        *,
        concurrency: int = 16,
        progress: bool = False,
        retry_failed: bool = False,
    ) -> BatchReport:
        """Runs the task for each input, and writes the results into a file (``CognitiveRuntime.batch``)."""
        return self.runtime.batch(
            self, rows, out, concurrency=concurrency, progress=progress, retry_failed=retry_failed, **self._options
        )

    def check(self, function: Checker) -> Checker:
        """Adds a check of the answer, as a decorator. Its ``ValueError`` goes back to the model, which answers again within
        ``retries``; after the last answer, the run fails with E3006 and this text.

        >>> @read_receipt.check
        ... def total_is_the_sum(receipt: Receipt, text: str) -> None:
        ...     if receipt.total != sum(receipt.prices):
        ...         raise ValueError(f"the prices add up to {sum(receipt.prices)}, and total is {receipt.total}")

        Args:
            function: Takes the answer, fields of the input by their names, and the ``deps`` of the run as a parameter ``Deps[T]``. It may
                be ``async``.

        Raises:
            TypeError: It takes a name that is no field of the input.
        """
        fields = (self.__cognitive_module__.input_schema or {}).get("properties", {})
        check = _checks.Check.of(function)
        for name in check.fields:
            if name not in fields:
                raise TypeError(f"{self.name}: the check takes {name!r}; the fields of the input are {', '.join(fields)}")
        self._checks.append(check)
        return function

    def __cognitive_checks__(self, input: Any, deps: Any) -> list[_cognitive.NativeCheck]:
        """Returns the checks of a run. A runtime calls it.

        Raises:
            TypeError: A check cannot use the ``deps`` of the run.
        """
        for check in self._checks:
            _deps.check(check.function.__name__, check.deps, deps)
        needed = self._is_checked or self._checks
        return _checks.native_checks(self._kind, self._checks, input) if needed else []

    @lists_options
    def with_options(self, *, runtime: CognitiveRuntime | None = None, **options: Unpack[RunOptions]) -> Self:
        """Returns the task with a runtime and options of its runs, such as ``provider`` (``RunOptions``)."""
        # The module is not loaded again, so that a call may have options of its own.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._checks = list(self._checks)
        other._runtime = runtime or self._runtime
        other._options = {**self._options, **options}
        return other

    @property
    def runtime(self) -> CognitiveRuntime:
        """The runtime of the calls: the one of ``with_options``, otherwise ``default_runtime()``."""
        return self._runtime or default_runtime()

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict[str, Any], RunOptions]:
        """Returns the input and the options of a call. A default of None means that the field is absent."""
        if isinstance(self._source, type):
            if args:
                raise TypeError(f"{self.name}: the fields of the input are keyword arguments")
            return kwargs, self._options
        bound = inspect.signature(self._source).bind(*args, **kwargs)
        given = set(bound.arguments)
        bound.apply_defaults()
        found = {name: value for name, value in bound.arguments.items() if name in given or value is not None}
        if any(hasattr(value, "__array_interface__") for value in found.values()):
            found = {name: self._image(name, value) for name, value in found.items()}
        options = self._options
        for name, kind in self._deps.items():
            if (given := found.pop(name, None)) is not None:
                _deps.check(self.name, {name: kind}, given)
                options = {**options, "deps": given}
        return found, options

    def _image(self, name: str, value: Any) -> Any:
        """Returns an array of NumPy as the image that the parameter takes."""
        schema = (self.__cognitive_module__.input_schema or {}).get("properties", {}).get(name, {})
        pillow: Any = sys.modules.get("PIL.Image")
        is_array = hasattr(value, "__array_interface__") and not hasattr(value, "convert")
        return pillow.fromarray(value) if pillow and is_array and "MediaInput" in str(schema) else value

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        """How it is pickled: by its name, as a function. One without a name becomes the module alone."""
        owner = sys.modules.get(self.__module__)
        is_named: bool = getattr(owner, self.__qualname__, None) is self
        return self.__qualname__ if is_named else super().__reduce__()


class Task(_BaseTask[P, T]):
    """A function that a model answers. It is a module, too: a runtime executes it, and ``save`` writes its directory."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the answer.

        Raises:
            CognitiveError: The run failed.
            DataError: The answer does not fit the type.
        """
        input, options = self._bound(args, kwargs)
        result = self.runtime.execute(self, input, **options)
        answer: T = result.raise_for_error().as_type(self._kind)
        return answer


class AsyncTask(_BaseTask[P, T]):
    """An ``async def`` function that a model answers: a ``Task`` whose call is awaited."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Returns the answer. Raises as a call of ``Task``."""
        return await self.aio(*args, **kwargs)


class Policies(TypedDict, total=False):
    """What the tools of a task may do. What is not allowed is denied."""

    network: Literal["allow", "deny"]
    """Use the network."""
    filesystem_write: Literal["allow", "deny"]
    """Write files."""
    side_effects: Literal["allow", "deny"]
    """Change something outside the run."""
    code_execution: Literal["allow", "deny"]
    """Run code."""


class TaskOptions(_Options, total=False):
    """The arguments of ``task`` in addition to its source: what the module is, and the options of its runs (``RunOptions``)."""

    name: str | None
    """The name of the module; otherwise the source's, with hyphens."""
    prompt: str | None
    """What the model does; otherwise the docstring. Its first line is also the responsibility of the module."""
    input: Any
    """The type of the input, if the source is a type; otherwise a string ``query``."""
    tier: Literal["exec", "decision", "exploration"]
    """How far a program may rely on the answer; ``"decision"`` by default."""
    version: str
    """The version of the module; ``"0.1.0"`` by default."""
    excludes: Iterable[str]
    """What the model must not do; otherwise to invent facts."""
    tools: Iterable[str | Callable[..., Any]]
    """The tools that the model may call: functions, or the names of tools of the runtime."""
    policies: Policies
    """What the tools may do, in addition to returning something."""
    modalities: Iterable[Literal["image", "audio", "video", "document"]]
    """The media that the input may have, if it has fields for media; images, or all if a field is ``bytes`` or a path."""


class _Decorator(Protocol):
    """What ``task`` returns without a source."""

    @overload
    def __call__(self, source: type[T], /) -> Task[..., T]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, source: Callable[P, Coroutine[Any, Any, T]], /
    ) -> AsyncTask[P, T]: ...
    @overload
    def __call__(self, source: Callable[P, T], /) -> Task[P, T]: ...
    def __call__(self, source: Any, /) -> Any: ...


# A class is callable too, and a coroutine is a type of answer: the order decides.
@overload
def task(source: type[T], /, **options: Unpack[TaskOptions]) -> Task[..., T]: ...  # type: ignore[overload-overlap]


@overload
def task(  # type: ignore[overload-overlap]
    source: Callable[P, Coroutine[Any, Any, T]], /, **options: Unpack[TaskOptions]
) -> AsyncTask[P, T]: ...


@overload
def task(source: Callable[P, T], /, **options: Unpack[TaskOptions]) -> Task[P, T]: ...


@overload
def task(source: None = None, /, **options: Unpack[TaskOptions]) -> _Decorator: ...


@lists_options
def task(source: Any = None, /, **options: Unpack[TaskOptions]) -> Any:
    """Creates a task from a function, or from the type of its answer.

    A function gives the input by its parameters, the answer by its return type, and the prompt by its docstring; its body is
    never executed. A parameter ``Deps[T]`` is not for the model: tools and checks receive it. A dataclass, a TypedDict or a Pydantic model is the type of the answer.

    >>> @task
    ... def summarize(text: str, sentences: int = 2) -> Summary:
    ...     '''Summarize the text in so many sentences.'''
    >>> summarize(text="...")  # a Summary

    Args:
        source: The function, or the type of the answer.
        options: ``name``, ``prompt``, ``input``, ``tier``, ``version``, ``excludes``, ``tools``, ``policies`` and ``modalities``
            (``TaskOptions``), and options of the runs, such as ``provider``, ``temperature``, ``retries`` and ``timeout``
            (``RunOptions``).

    Raises:
        TypeError: JSON cannot represent a parameter or the answer, or there is no option of this name.
        ValueError: There is no prompt, or a policy denies a tool.
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
    tools: Iterable[str | Callable[..., Any]] = (),
    policies: Policies | None = None,
    modalities: Iterable[str] | None = None,
    **options: Any,
) -> Task[..., Any] | AsyncTask[..., Any]:
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
    functions = [tool if isinstance(tool, Tool) else Tool(tool) for tool in tools if not isinstance(tool, str)]
    if allowed := [tool for tool in tools if isinstance(tool, str)] + [tool.name for tool in functions]:
        manifest["policies"] = {"tools_allowed": True, **_checked_policies(own, policies or {}, functions)}
        manifest["tools"] = {"policy": "deny_by_default", "allowed": allowed}
    contract = _contract(source, input, own)
    if media := list(modalities or _media_of(contract["input"], source, input)):
        manifest["modalities"] = {"input": ["text", *media]}
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in manifest.items()]
    files = {
        "module.yaml": "".join(lines),
        "prompt.md": f"{text}\n",
        "schema.json": json.dumps(contract, indent=2, ensure_ascii=False) + "\n",
    }
    kind = source if isinstance(source, type) else _schema.return_type(source, own)
    if "result" in contract["data"]["properties"] and _is_wrapped(kind, own):
        kind = _types.Wrapped(kind)
    kind_of_task = AsyncTask if inspect.iscoroutinefunction(source) else Task
    made: Task[..., Any] | AsyncTask[..., Any] = kind_of_task(ModuleFiles(own, files), source, kind)
    run_options: RunOptions = {**options, "tools": functions} if functions else {**options}  # type: ignore[typeddict-item]
    made._options = run_options
    _native_options(run_options, is_run=False)
    return made


def _checked_policies(name: str, policies: Policies, tools: Iterable[Tool[..., Any]]) -> dict[str, str]:
    """Returns the policies for the manifest. A tool that they deny would be withheld from the model, which its author does not want."""
    for policy, value in policies.items():
        if policy not in EFFECTS or value not in ("allow", "deny"):
            raise ValueError(f"{name}: policies: found {policy}={value!r}; allowed: {', '.join(EFFECTS)}, each 'allow' or 'deny'")
    for tool in tools:
        for effect in tool.effects:
            if policies.get(effect) != "allow":
                raise ValueError(f"{name}: the tool {tool.name!r} needs the policy {effect}; pass policies={{{effect!r}: 'allow'}}")
    return {policy: str(value) for policy, value in policies.items()}


def _media_of(taken: dict[str, Any], source: Callable[..., Any], given: Any) -> list[str]:
    """Returns the kinds of media that an input can have."""
    if "#/$defs/MediaInput" not in json.dumps(taken):
        return []
    if given is not None or isinstance(source, type):
        return ["image", "audio", "video", "document"]
    hints = str(list(_schema.parameters(source, "", takes_media=True).types.values()))
    return ["image", "audio", "video", "document"] if re.search(r"\b(bytes|Path)\b", hints) else ["image"]


def _contract(source: Callable[..., Any], given: Any, name: str) -> dict[str, Any]:
    """Returns the schemas of input and answer."""
    if isinstance(source, type):
        taken: dict[str, Any] = dict(_QUERY) if given is None else _schema.schema_of(given, f"{name}: input", takes_media=True)
        answer: Any = source
    else:
        if given is not None:
            raise TypeError(f"{name}: input is for a type; a function gives the input by its parameters")
        taken = _schema.parameters(source, name, takes_media=True).schema
        answer = _schema.return_type(source, name)
        if answer is None:
            raise TypeError(f"{name}: the function has no return type; it is the type of the answer")
    data = _schema.schema_of(answer, f"{name}: answer")
    definitions: dict[str, Any] = taken.pop("$defs", {})
    _schema.add_definitions(definitions, data.pop("$defs", {}), f"{name}: answer")
    if "$ref" in data:
        data = dict(definitions[data["$ref"].rpartition("/")[2]])
    if _types.is_wrapped_in_schema(data):
        data = {"type": "object", "properties": {"result": data}, "required": ["result"]}
    contract = {"input": taken, "meta": _META, "data": _with_rationale(data), "error": _ERROR}
    return {**contract, "$defs": definitions} if definitions else contract


def _is_wrapped(kind: Any, name: str) -> bool:
    """Whether an answer of this type is the member ``result`` of the data."""
    schema = _schema.schema_of(kind, name)
    reference = schema.get("$ref", "").rpartition("/")[2]
    return _types.is_wrapped_in_schema(schema["$defs"][reference] if reference else schema)


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
