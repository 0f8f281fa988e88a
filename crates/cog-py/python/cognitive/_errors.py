"""The exceptions of the package."""

from __future__ import annotations

# Importing `typing` takes longer than the rest of the package. Type checkers know this name.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any, Literal

    from ._cognitive import ErrorInfo, Result


class CognitiveError(Exception):
    """A run failed, or a module cannot be loaded.

    ``code`` and ``message`` say what happened, ``suggestion`` what to do about it, and ``result`` is the result with the
    complete envelope.
    """

    def __init__(self, result: Result) -> None:
        if result.error is None:
            raise ValueError("the result has no error")
        super().__init__(result)
        self.result: Result = result

    @property
    def error(self) -> ErrorInfo:
        """The error of the run."""
        error = self.result.error
        assert error is not None
        return error

    @property
    def code(self) -> str:
        """The code: ``E4006``."""
        return self.error.code

    @property
    def message(self) -> str:
        """What happened."""
        return self.error.message

    @property
    def suggestion(self) -> str | None:
        """What to do about it."""
        return self.error.suggestion

    @property
    def recoverable(self) -> bool | None:
        """Whether a retry can succeed; None if it is unknown."""
        return self.error.recoverable

    @property
    def origin(self) -> Literal["model", "runtime", "provider"]:
        """Who reports the error: the model that answered, the runtime, or the provider."""
        return self.error.origin

    @property
    def details(self) -> dict[str, Any]:
        """Details for programs, with the origin."""
        return self.error.details

    @property
    def envelope(self) -> dict[str, Any]:
        """The complete envelope."""
        return self.result.to_dict()

    def __str__(self) -> str:
        text = f"{self.code}: {self.message}"
        return text if self.suggestion is None else f"{text}\n{self.suggestion}"

    def _repr_html_(self) -> str:
        return self.result._repr_html_()


class DataError(ValueError):
    """The data of an answer do not fit the type of ``Result.as_type``. ``path`` says where: ``data.issues[3].line``."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class ToolError(Exception):
    """An error of a tool for the model, which decides whether to call again.

    A tool raises it on purpose. Any other exception reaches the model as well, with the name of its class, and is logged with
    its traceback in the logger ``cognitive``.

    Args:
        error_type: The kind of the error, a name such as ``"InvalidDateRange"``.
        message: What happened, and what the model can do.
        details: Details for the model, which JSON can represent.
    """

    def __init__(self, error_type: str, message: str, details: Any = None) -> None:
        super().__init__(error_type, message, details)
        self.error_type = error_type
        self.message = message
        self.details = details

    def __str__(self) -> str:
        return f"{self.error_type}: {self.message}"


class ProviderError(Exception):
    """Why a provider written in Python cannot answer.

    Args:
        message: What happened.
        code: The error code of the run. After ``E4001``, ``E4002`` and ``E2010``, the next provider of the run is called.
    """

    def __init__(self, message: str, *, code: str = "E4001") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
