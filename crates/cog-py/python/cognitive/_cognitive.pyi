"""The types of the native part."""

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from types import GenericAlias
from typing import Any, Generic, Literal, NoReturn, TypeAlias, final, overload

from typing_extensions import Self, TypeVar

from ._pending import Pending
from ._provider import Reply
from ._task import ModuleFiles

__all__ = [
    "Budget",
    "Call",
    "Chunks",
    "ErrorInfo",
    "Halted",
    "ModelRequest",
    "Module",
    "NativeCheck",
    "NativeProvider",
    "NativeTool",
    "ReplyParts",
    "Report",
    "Result",
    "Runtime",
    "Verdict",
    "check_conformance",
    "internal_media",
    "load_files",
    "module_types",
    "__version__",
]

__version__: str

_AnyModule: TypeAlias = str | os.PathLike[str] | Module | ModuleFiles

_T = TypeVar("_T")
_Data = TypeVar("_Data", default=Any, covariant=True)

@final
class ErrorInfo:
    """The error of a failed run."""

    @property
    def code(self) -> str:
        """The code: ``E4006``."""
    @property
    def message(self) -> str:
        """What happened."""
    @property
    def recoverable(self) -> bool | None:
        """Whether a retry can succeed; None if it is unknown."""
    @property
    def suggestion(self) -> str | None:
        """What to do about it."""
    @property
    def origin(self) -> Literal["model", "runtime", "provider"]:
        """Who reports the error."""
    @property
    def details(self) -> dict[str, Any]:
        """Details for programs, with the origin."""
    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Result(Generic[_Data]):
    """The result of a run: the envelope, as an object. It can be created from an envelope as JSON, and pickled. Two with the same envelope
    are equal.

    ``Result[Summary | None]`` is the result of a task, whose ``data`` is a Summary. The functions of ``cognitive.modules`` return it with the type of their data: ``Result[CodeReviewerData | None]``.
    """

    def __new__(cls, json: str, kind: object = None) -> Self: ...
    def __class_getitem__(cls, data: object) -> GenericAlias: ...
    @property
    def ok(self) -> bool:
        """Whether the run succeeded."""
    @property
    def data(self) -> _Data:
        """The answer of a successful run, otherwise None."""
    @property
    def partial_data(self) -> Any:
        """The part of the answer of a failed run that is available."""
    @property
    def meta(self) -> dict[str, Any]:
        """The control plane: confidence, risk, explain, and what the runtime adds."""
    @property
    def error(self) -> ErrorInfo | None:
        """The error of a failed run, otherwise None."""
    @property
    def warnings(self) -> list[dict[str, Any]]:
        """The warnings."""
    @property
    def exceptions(self) -> list[BaseException]:
        """What tools and providers written in Python raised, in order. A model may have answered nevertheless."""
    @property
    def pending(self) -> Pending[_Data] | None:
        """The calls that wait for a confirmation, which end a run with E4007; otherwise None."""
    @overload
    def typed(self, kind: type[_T]) -> Result[_T | None]: ...
    @overload
    def typed(self, kind: object) -> Result[Any]:
        """The same result with ``data`` of this type, which raises ``DataError`` if it does not fit."""
    def _set_origin(self, origin: object) -> None: ...
    def label(
        self, label: Literal["right", "wrong", "corrected"], *, data: object = None, note: str | None = None
    ) -> None:
        """Says whether the answer is right. ``corrected`` needs the right answer as ``data``; ``note`` says why.

        Raises:
            CognitiveError: The run is not in the log, or the data does not fit the schema of the module.
        """
    def raise_for_error(self: Result[_T | None]) -> Result[_T]:
        """Raises ``CognitiveError`` if the run failed; otherwise returns the result."""
    @overload
    def as_type(self, kind: type[_T]) -> _T: ...
    @overload
    def as_type(self, kind: object) -> Any:
        """The answer as a Pydantic model, a dataclass, a TypedDict, or a type of these: ``list[Issue]``, ``Issue | None``.

        Raises:
            CognitiveError: The run failed.
            DataError: The answer does not fit the type. The message names the path.
        """
    def to_dict(self) -> dict[str, Any]:
        """The envelope as a dict."""
    def to_json(self, *, indent: bool = False) -> str:
        """The envelope as JSON, in one line or indented."""
    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __bool__(self) -> NoReturn: ...

@final
class ModelRequest:
    """A request to a model, for a provider written in Python."""

    @property
    def model(self) -> str:
        """The model."""
    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as dicts with ``role`` and ``content``, in order. A content that is only text is a str."""
    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the answer, if it is known. The messages describe it too."""
    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that the model may call, as dicts with ``name``, ``description`` and ``parameters``."""
    @property
    def tool_choice(self) -> str:
        """Which tools the model may call: ``auto``, ``none``, ``required``, or the name of the tool."""
    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters that are set: ``temperature``, ``max_tokens``, ``seed``, ``stop``, ``effort``, ``verbosity``."""
    @property
    def timeout(self) -> float | None:
        """The time limit of the call in seconds, if there is one."""

@final
class Module:
    """A module that a runtime has loaded."""

    @property
    def name(self) -> str:
        """The name."""
    @property
    def version(self) -> str:
        """The version of the module."""
    @property
    def format(self) -> str:
        """The version of the format: ``v2.2``."""
    @property
    def tier(self) -> str | None:
        """The tier, if the manifest sets one."""
    @property
    def responsibility(self) -> str:
        """What the module does."""
    @property
    def directory(self) -> pathlib.Path | None:
        """The directory; None for a built-in module."""
    @property
    def input_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the input, if there is one."""
    @property
    def data_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the answer, if there is one."""
    @property
    def contract(self) -> dict[str, Any]:
        """The contract as it is enforced: ``schema.json`` with the definitions of the runtime. References point into it."""
    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What is wrong with its files, though it can run."""
    def _repr_html_(self) -> str: ...

@final
class Report:
    """What ``validate`` found in the files of a module."""

    @property
    def valid(self) -> bool:
        """Whether there is no error. Warnings may remain."""
    @property
    def diagnostics(self) -> list[dict[str, Any]]:
        """The errors and warnings, each with rule, file, line and suggestion."""
    def to_dict(self) -> dict[str, Any]:
        """The report as ``cog validate --format json`` prints it."""

@final
class Verdict:
    """What ``verify`` found in a document."""

    @property
    def valid(self) -> bool:
        """Whether there are no violations."""
    @property
    def kind(self) -> str | None:
        """The kind of the document; None if it was not recognized."""
    @property
    def violations(self) -> list[dict[str, Any]]:
        """The violations, each with path, rule and message."""
    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What is valid, but probably not what its author wants."""
    def to_dict(self) -> dict[str, Any]:
        """The verdict as ``cog verify --format json`` prints it."""
    def __bool__(self) -> NoReturn: ...

@final
class Budget:
    """What several runs may spend together. The call that reaches a limit is completed, and the next one fails with E4002.

    >>> budget = Budget(max_cost=0.50)
    >>> runtime.map("code-reviewer", rows, budget=budget)
    >>> budget.spent["cost"]
    """

    def __new__(
        cls,
        *,
        max_cost: float | None = None,
        max_tokens: int | None = None,
        max_calls: int | None = None,
        name: str = "the program",
    ) -> Self:
        """``max_cost`` is in US dollars; a model whose price is unknown is refused then."""
    @property
    def spent(self) -> dict[str, Any]:
        """What was spent so far: ``calls``, ``tokens`` and ``cost``, which is None if the price of a call is unknown."""

@final
class Call:
    def cancel(self) -> None: ...

@final
class Chunks:
    def next(self) -> dict[str, Any] | None: ...
    def take(self) -> dict[str, Any] | None: ...
    def wake(self, notify: Callable[[], object]) -> bool: ...
    def forget(self, notify: Callable[[], object]) -> None: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def data(self) -> Any: ...
    def close(self) -> None: ...
    @property
    def result(self) -> Result | None: ...

@final
class NativeCheck:
    def __new__(cls, function: Callable[[Any, str], object], *, is_async: bool) -> Self: ...

@final
class NativeTool:
    def __new__(
        cls,
        *,
        name: str,
        description: str,
        parameters: Mapping[str, object],
        effects: tuple[bool, bool, bool, bool],
        confirm: bool,
        timeout: float | None,
        function: Callable[[dict[str, Any]], object],
        is_async: bool,
    ) -> Self: ...

@final
class NativeProvider:
    def __new__(
        cls,
        *,
        name: str,
        model: str,
        images: bool,
        respond: Callable[[ModelRequest, ReplyParts], object],
        is_async: bool,
    ) -> Self: ...

@final
class ReplyParts:
    def push(self, part: str | Reply) -> bool: ...

def load_files(files: Mapping[str, str]) -> Module: ...
def module_types(
    modules: Sequence[Module], language: Literal["python", "rust", "typescript"] = "python", *, functions: bool = True
) -> str:
    """Returns the types of modules as a file in a language, as ``cog types`` prints it.

    Args:
        functions: Also a function for each module that runs it.
    """

def check_conformance(url: str, *, mock_port: int = 9797, level: int | None = None) -> dict[str, Any]:
    """Checks the runtime at a URL, and returns the report of ``cog conformance --format json``.

    The runtime must have the modules of the cases and call the model at ``mock_port`` of this machine.

    Raises:
        CognitiveError: If the runtime does not respond, or the port is in use.
    """

def internal_media(arguments: Sequence[str]) -> int: ...
@final
class Halted:
    def __new__(
        cls, id: str, *, confirm: str | None, deny: bool, module: _AnyModule | None
    ) -> Self: ...

@final
class Runtime:
    def __new__(
        cls,
        *,
        provider: str | None,
        model: str | None,
        timeout: float | None,
        strict: bool | None,
        modules: Sequence[str | os.PathLike[str]],
        tools: Sequence[NativeTool],
        providers: Sequence[NativeProvider],
        streaming: bool,
        multimodal: bool,
        cassette: tuple[str | os.PathLike[str], bool] | None = None,
    ) -> Self: ...
    @property
    def note(self) -> str: ...
    @property
    def recording_error(self) -> str | None: ...
    def names(self) -> list[str]: ...
    def load(self, module: _AnyModule) -> Module: ...
    def validate(
        self, module: _AnyModule, level: Literal["v2.2", "v2.5"] | None
    ) -> Report: ...
    def render(
        self, module: _AnyModule, input: Any, options: Mapping[str, object]
    ) -> dict[str, Any]: ...
    def verify(
        self, document: Any, kind: str | None, module: _AnyModule | None
    ) -> Verdict: ...
    def execute(
        self, module: _AnyModule | Halted, input: Any, options: Mapping[str, object]
    ) -> Result: ...
    def start(
        self,
        module: _AnyModule | Halted,
        input: Any,
        options: Mapping[str, object],
        notify: Callable[[Result | BaseException], object],
    ) -> Call: ...
    def stream(
        self, module: _AnyModule | Halted, input: Any, options: Mapping[str, object]
    ) -> Chunks: ...
