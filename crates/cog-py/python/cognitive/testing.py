"""Models for tests of programs: they answer without a network, and count what they were asked.

>>> from cognitive import testing
>>> with testing.use(Decision(kind="billing")) as model:
...     assert triage(ticket).kind == "billing"
...     assert model.calls == 1

``pytest`` finds the fixture ``cognitive_model`` by itself, and refuses calls to vendors: see ``cognitive.pytest_plugin``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _cognitive, _functions, _runtime
from ._cognitive import ModelRequest
from ._provider import Provider, Reply, ToolCall
from ._runtime import CognitiveRuntime, RunOptions

__all__ = ["ModelCallRefused", "TestModel", "allow_calls", "cassette", "refuse_calls", "runtime", "sample", "use"]

#: What precedes the schema of the answer in the prompt.
_MARK = "must match this JSON Schema:"


class ModelCallRefused(RuntimeError):
    """A test would call the model of a vendor, which nobody allowed."""


class TestModel(Provider):
    """A model that answers as a test says, and keeps the requests.

    Args:
        answers: The answers in turn; after the last one, the last again. An answer is the data: a dict, a dataclass, a Pydantic
            model, or the value of a task whose answer is no object. A ``Reply``, a ``ToolCall`` or a string is the whole reply, and
            an exception is raised. A function receives the request and returns one of these. Without answers, the model answers
            with an example of the schema, which is the same each time.
        confidence: The confidence of the answers.
        risk: Their risk.
        seed: Which examples are made.

    Attributes:
        requests: The requests, in order.
    """

    __test__ = False  # pytest takes it for a test otherwise
    model = "test-1"
    images = True

    def __init__(self, *answers: Any, confidence: float = 0.9, risk: str = "low", seed: int = 0) -> None:
        self.answers = answers
        self.requests: list[ModelRequest] = []
        self._meta = {"confidence": confidence, "risk": risk, "explain": "An answer of a test."}
        self._seed = seed
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        """How often the model was called."""
        return len(self.requests)

    @property
    def last_input(self) -> str:
        """The text of the last message that the model received."""
        if not self.requests:
            raise AssertionError("the model was not called")
        return _text(self.requests[-1].messages[-1])

    def complete(self, request: ModelRequest) -> Reply:
        """Returns the next answer."""
        with self._lock:
            index = len(self.requests)
            self.requests.append(request)
        answer = self.answers[min(index, len(self.answers) - 1)] if self.answers else _Example
        if callable(answer) and not isinstance(answer, type):
            answer = answer(request)
        return self._reply(answer, request)

    def _reply(self, answer: Any, request: ModelRequest) -> Reply:
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Reply):
            return answer
        if isinstance(answer, ToolCall):
            return Reply(tool_calls=[answer])
        schema = _schema_of(request)
        if answer is _Example:
            data = sample(schema, seed=self._seed)
        elif isinstance(answer, str) and not _takes_result(schema):
            return Reply(answer)
        else:
            data = _plain(answer)
            if _takes_result(schema) and not (isinstance(data, dict) and "result" in data):
                data = {"result": data}
            if "rationale" in schema.get("properties", {}):
                data = {"rationale": "The test says so.", **data}
        text = json.dumps({"ok": True, "meta": self._meta, "data": data, "error": None}, ensure_ascii=False)
        return Reply(text, input_tokens=len(str(request.messages)) // 4, output_tokens=len(text) // 4)


class _Example:
    """Stands for an answer that is made from the schema."""


class _TestRuntime(CognitiveRuntime):
    """Has one model. A task that names a vendor calls it, too, and so does a program with ``LLM_PROVIDER``."""

    def __init__(self, model: TestModel, options: Mapping[str, Any]) -> None:
        super().__init__(providers={"test": model}, provider="test", **options)

    def _starter_of_runs(self, options: RunOptions) -> _cognitive.Runtime:
        return self._native

    def _native_options(self, options: RunOptions, module: object, input: Any) -> dict[str, object]:
        native = super()._native_options(options, module, input)
        return {name: value for name, value in native.items() if name not in ("provider", "model")}


def runtime(*answers: Any, **options: Any) -> CognitiveRuntime:
    """Returns a runtime whose only model is a ``TestModel`` with these answers, or the one that is given. It answers also if a task or
    a run names another provider.

    Args:
        answers: As for ``TestModel``.
        options: Arguments of ``CognitiveRuntime``, such as ``tools``.
    """
    return _TestRuntime(_model(answers), options)


@contextlib.contextmanager
def use(*answers: Any, **options: Any) -> Iterator[TestModel]:
    """Lets tasks and functions of modules without a runtime of their own call a ``TestModel``, which is the value of ``with``. The
    providers that they name are not called."""
    model = _model(answers)
    before = _functions._default
    _functions._default = _TestRuntime(model, options)
    try:
        yield model
    finally:
        _functions._default = before


@contextlib.contextmanager
def cassette(directory: str | os.PathLike[str], *, record: bool | None = None) -> Iterator[None]:
    """Records the replies of a vendor in a directory, and replays them later: without a key, a network or a cost.

    It is the cassette that ``cog test --record`` writes: each request, and the bytes of its reply. Streams, tools and checks run as they
    did when it was recorded. A request that has no reply, because the module, the input or an option has changed, fails with E4001.
    Providers of the program are called as without a cassette.

    >>> with testing.cassette("tests/triage.cassette"):
    ...     assert triage(ticket).kind == "billing"

    Args:
        directory: The directory. It belongs in the repository; keys are masked in it.
        record: Whether to record. True replaces what is there. None records if there is nothing yet, and False never does.

    Raises:
        ModelCallRefused: It would record within ``refuse_calls``.
        RuntimeError: A reply was not recorded, such as because the disk is full.
    """
    place = pathlib.Path(directory)
    records = not place.exists() if record is None else record
    # A recording that is interrupted replaces nothing.
    tape = _Tape(place.with_name(f"{place.name}.new") if records else place, records)
    if records and tape.directory.exists():
        shutil.rmtree(tape.directory)
    before = _runtime._cassette
    _runtime._cassette = tape.around
    try:
        yield
    except BaseException:
        if records:
            shutil.rmtree(tape.directory, ignore_errors=True)
        raise
    finally:
        _runtime._cassette = before
    if records and tape.directory.exists():
        tape.check()
        if place.exists():
            shutil.rmtree(place)
        tape.directory.rename(place)


class _Tape:
    """The runtimes that record in a directory or replay from it, instead of those of the program."""

    def __init__(self, directory: pathlib.Path, records: bool) -> None:
        self.directory = directory
        self.records = records
        self._lock = threading.Lock()
        #: By the runtime of the program and the providers of a run. A runtime stays alive, so that no other one gets its identity.
        self._made: dict[tuple[int, str | None], tuple[CognitiveRuntime, _cognitive.Runtime]] = {}

    def around(self, runtime: CognitiveRuntime, options: Mapping[str, Any]) -> _cognitive.Runtime:
        """Returns what starts a run with these options."""
        named = options.get("provider") or runtime._chosen
        # Without a key, the runtime of the program calls no model; the cassette has the answers.
        if _calls_no_vendor(runtime, named) and (self.records or named is not None or runtime._own):
            return runtime._native
        if self.records and _runtime._guard is not None:
            _runtime._guard(runtime, options)
        with self._lock:
            key = (id(runtime), named)
            if key not in self._made:
                taped: dict[str, Any] = {"provider": named, "providers": [], "cassette": (self.directory, self.records)}
                self._made[key] = runtime, _cognitive.Runtime(**{**runtime._arguments, **taped})
            return self._made[key][1]

    def check(self) -> None:
        """Raises ``RuntimeError`` if a reply is missing."""
        for _, native in self._made.values():
            if native.recording_error is not None:
                raise RuntimeError(native.recording_error)


@contextlib.contextmanager
def refuse_calls() -> Iterator[None]:
    """Refuses every run that would call the model of a vendor, with ``ModelCallRefused``. Providers of the program answer."""
    with _guarded(_refuse):
        yield


@contextlib.contextmanager
def allow_calls() -> Iterator[None]:
    """Allows calls within ``refuse_calls``."""
    with _guarded(None):
        yield


@contextlib.contextmanager
def _guarded(guard: Callable[[CognitiveRuntime, Mapping[str, Any]], None] | None) -> Iterator[None]:
    before = _runtime._guard
    _runtime._guard = guard
    try:
        yield
    finally:
        _runtime._guard = before


def _refuse(runtime: CognitiveRuntime, options: Mapping[str, Any]) -> None:
    named = options.get("provider") or runtime._chosen
    if not _calls_no_vendor(runtime, named):
        raise ModelCallRefused(
            f"a test would call a model ({named or runtime._native.note}); use cognitive.testing.use(...), or allow it with "
            "`allow_calls()` or the marker `model_calls`"
        )


def _calls_no_vendor(runtime: CognitiveRuntime, named: str | None) -> bool:
    """Whether a run with these providers, or with those of the runtime, calls only providers of the program, or none."""
    if named is None:
        return bool(runtime._own) or "offline mode" in runtime._native.note
    return {*runtime._own, "offline"}.issuperset(name.strip() for name in named.split(","))


def _model(answers: tuple[Any, ...]) -> TestModel:
    if len(answers) == 1 and isinstance(answers[0], TestModel):
        return answers[0]
    return TestModel(*answers)


def _plain(value: Any) -> Any:
    """Returns an answer as JSON has it."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
    if hasattr(value, "__attrs_attrs__"):
        return {field.name: _plain(getattr(value, field.name)) for field in value.__attrs_attrs__ if field.init}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "value") and hasattr(type(value), "__members__"):
        return value.value
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _schema_of(request: ModelRequest) -> dict[str, Any]:
    """Returns the schema of the data, which the prompt has."""
    for message in request.messages:
        text = _text(message)
        if _MARK in text:
            start = text.index("{", text.index(_MARK))
            schema: dict[str, Any] = json.JSONDecoder().raw_decode(text, start)[0]
            return schema
    return {}


def _takes_result(schema: Mapping[str, Any]) -> bool:
    """Whether the answer of a task is no object, and is the member ``result``."""
    return set(schema.get("properties", {})) - {"rationale", "extensions"} == {"result"}


def sample(schema: Mapping[str, Any], *, seed: int = 0) -> Any:
    """Returns an example of a JSON Schema: the same one for the same seed.

    Optional members are left out, except those of a schema that requires none. A pattern is not followed.
    """
    return _Sampler(schema, random.Random(seed)).value(schema, 0)


class _Sampler:
    def __init__(self, root: Mapping[str, Any], numbers: random.Random) -> None:
        self.root = root
        self.numbers = numbers

    def value(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, Mapping) or depth > 32:
            return None
        if "$ref" in schema:
            return self.value(self.found(schema["$ref"]), depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.numbers.choice(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.value(self.shallow(schema[key]), depth + 1)
        if "allOf" in schema:
            merged: dict[str, Any] = {key: value for key, value in schema.items() if key != "allOf"}
            for part in schema["allOf"]:
                merged.update(self.found(part["$ref"]) if "$ref" in part else part)
            return self.value(merged, depth + 1)
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        return self.of_type(kind, schema, depth)

    def of_type(self, kind: Any, schema: Mapping[str, Any], depth: int) -> Any:
        if kind == "object" or (kind is None and "properties" in schema):
            members = schema.get("properties", {})
            required = schema.get("required") or (list(members) if depth == 0 else [])
            return {name: self.value(members.get(name, {}), depth + 1) for name in required}
        if kind == "array":
            items = schema.get("items", {})
            if isinstance(items, list):
                return [self.value(item, depth + 1) for item in items]
            count = max(schema.get("minItems", 0), 1 if depth < 8 else 0)
            return [self.value(items, depth + 1) for _ in range(min(count, schema.get("maxItems", count)))]
        if kind in ("integer", "number"):
            return self.number(schema, whole=kind == "integer")
        if kind == "boolean":
            return self.numbers.random() < 0.5
        if kind == "string":
            return self.string(schema)
        return None

    def number(self, schema: Mapping[str, Any], *, whole: bool) -> Any:
        step = schema.get("multipleOf", 1 if whole else 0.5)
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
        most = schema.get("maximum", schema.get("exclusiveMaximum", least + 10 * step))
        low = least + (step if "exclusiveMinimum" in schema else 0)
        value = -(-low // step) * step
        steps = int(max(most - value - (step if "exclusiveMaximum" in schema else 0), 0) // step)
        value += self.numbers.randint(0, steps) * step
        return int(value) if whole else min(max(value, least), most)

    def string(self, schema: Mapping[str, Any]) -> str:
        known = {
            "date": "2026-11-01", "date-time": "2026-11-01T08:30:00Z", "time": "08:30:00Z", "uuid": "12345678-1234-5678-1234-567812345678",
            "email": "a@example.com", "uri": "https://example.com/", "duration": "PT5M",
        }
        text: str = known.get(schema.get("format", ""), "")
        if not text:
            described = schema.get("description", "")
            text = described.rpartition("such as ")[2] if described.startswith(("Date and time", "Time,")) else "a text"
        text += "x" * (schema.get("minLength", 0) - len(text))
        return text[: schema.get("maxLength", len(text))]

    def shallow(self, schemas: Any) -> Any:
        """Returns the first schema that is not null."""
        return next((schema for schema in schemas if schema.get("type") != "null"), schemas[0])

    def found(self, reference: str) -> Any:
        found: Any = self.root
        for step in reference.removeprefix("#/").split("/"):
            found = found.get(step.replace("~1", "/").replace("~0", "~"), {}) if isinstance(found, Mapping) else {}
        return found
