"""The runtime and its streams."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from . import _cognitive
from ._stream import ChunkStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from typing_extensions import TypeAlias, Unpack

    from ._journal import BatchReport
    from ._cognitive import Budget, Module, Report, Result, Verdict
    from ._hooks import Hooks
    from ._task import ModuleFiles
    from ._provider import Provider

    _AnyModule: TypeAlias = str | os.PathLike[str] | Module | ModuleFiles


Function = TypeVar("Function", bound="Callable[..., Any]")


class _Options(TypedDict, total=False):
    """The options of one run that a task may have, too."""

    provider: str | None
    """The provider, or several in call order: ``"openai,anthropic"``."""
    model: str | None
    """The model of the first provider."""
    timeout: float | None
    """The maximum duration in seconds."""
    strict: bool | None
    """Whether every repair is a violation."""
    temperature: float | None
    """How much the answers vary, 0 to 2."""
    max_tokens: int | None
    """The maximum number of tokens of a reply."""
    seed: int | None
    """The seed of the sampling, for a provider that has one."""
    stop: str | Sequence[str] | None
    """Texts after which the model stops."""
    retries: int | None
    """How often the model is called again after an answer that violates its contract or a check, 0 to 9."""
    max_attempts: int | None
    """The maximum number of calls to the model, 1 to 10: ``retries`` and 1."""
    messages: Sequence[Mapping[str, Any]] | None
    """Messages between the prompt and the input, as OpenAI or Harmony writes them: examples, or what was said before."""
    instructions: str | None
    """What the caller adds to the prompt."""
    budget: Budget | None
    """What this run and others may spend together."""
    cache: bool | None
    """Whether a stored answer may be used, if the settings have a cache; True by default."""
    trace_id: str | None
    """The trace that the run belongs to: ``meta.trace_id``."""
    ask: str | None
    """The form in which the model is asked: ``auto``, ``envelope``, ``data`` and others."""
    accept: float | None
    """The share of accepted answers that must be right, such as 0.95. ``result.meta`` says whether the answer passed."""
    escalate: bool | None
    """Whether the next provider is called also after a bad answer."""
    evidence: str | Sequence[str] | None
    """The evidence that the run collects about its answer: ``"agreement=5,grounding"``, or a list."""
    on_violation: Literal["continue", "abort", "retry"] | None
    """What happens when the answer violates its schema while it arrives."""
    chunk_type: Literal["delta", "snapshot"] | None
    """How content is streamed."""
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None
    """How much the model thinks."""
    verbosity: Literal["low", "medium", "high"] | None
    """How much the model writes."""
    service_tier: Literal["auto", "standard", "flex", "priority"] | None
    """The class of service at the provider."""
    risk: Literal["none", "low", "medium", "high"] | None
    """The risk of the run."""
    max_tool_rounds: int | None
    """The maximum number of rounds of tool calls."""
    max_tool_calls: int | None
    """The maximum number of tool calls."""
    handoff_to: str | None
    """The agent that the run hands over to."""
    deps: Any
    """The object that tools and checks receive in their parameter ``Deps[T]``."""
    hooks: Hooks | Sequence[Hooks] | None
    """What learns of the calls of this run, in addition to the runtime's hooks."""


class RunOptions(_Options, total=False):
    """The options of one run. An option that is missing or None comes from the module or from the settings."""

    tools: Iterable[Callable[..., Any]] | None
    """Tools of this run, in addition to the runtime's."""



def lists_options(function: Function) -> Function:
    """Adds the names of the options of a run to a docstring, so that ``help`` shows them."""
    names = ", ".join(f"``{name}``" for name in RunOptions.__annotations__)
    if function.__doc__:
        function.__doc__ = function.__doc__.replace("(``RunOptions``)", f"(``RunOptions``): {names}")
    return function


#: The options that an answer depends on.
_ANSWER_OPTIONS = frozenset({
    "provider", "model", "temperature", "max_tokens", "seed", "stop", "messages", "instructions", "ask", "effort", "verbosity", "strict",
    "accept", "escalate", "evidence",
})
#: What refuses runs: ``cognitive.testing`` sets it.
_guard: Callable[[CognitiveRuntime, Mapping[str, Any]], None] | None = None
#: What records the replies of vendors, and replays them: ``cognitive.testing`` sets it.
_cassette: Callable[[CognitiveRuntime, Mapping[str, Any]], _cognitive.Runtime] | None = None


class CognitiveRuntime:
    """Loads and runs modules. It is created once, and can be used from any thread and any event loop.

    Providers, keys and limits come from environment variables, ``./cog.toml`` and ``~/.config/cog/config.toml``. The arguments
    replace them. Without a provider, no model is called: results are golden answers and samples, and a warning says so.

    Args:
        streaming: Whether ``execute_stream`` streams. Without it, a stream has one data chunk with the complete answer.
        multimodal: Whether inputs may have media. Without it, they fail with E4011.
        provider: The provider, or several in call order: ``"openai,anthropic"``; ``"offline"`` calls no model.
        model: The model of the first provider.
        timeout: The maximum duration of a run, in seconds.
        strict: Whether every repair of an answer is a violation.
        modules: Directories of further modules, or directories that contain modules.
        tools: Functions that models may call, if the manifest of the module allows it (``Tool``).
        hooks: What learns of calls and runs, such as for a log (``Hooks``).
        providers: Providers of the program by name (``Provider``). ``provider``, ``LLM_PROVIDER`` or a run names the one that is
            called; otherwise they are called in this order.
    """

    def __init__(
        self,
        *,
        streaming: bool = True,
        multimodal: bool = True,
        provider: str | None = None,
        model: str | None = None,
        timeout: float | None = None,
        strict: bool | None = None,
        modules: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
        tools: Iterable[Callable[..., Any]] = (),
        providers: Mapping[str, Provider] | None = None,
        hooks: Hooks | Sequence[Hooks] = (),
    ) -> None:
        self._own = tuple(providers or ())
        self._hooks = _hooks_of(hooks)
        self._chosen = provider
        self._arguments: dict[str, Any] = {
            "streaming": streaming,
            "multimodal": multimodal,
            "provider": provider,
            "model": model,
            "timeout": timeout,
            "strict": strict,
            "modules": [modules] if isinstance(modules, (str, os.PathLike)) else list(modules),
            "tools": _native_tools(tools),
            "providers": _native_providers(providers),
        }
        self._native = _cognitive.Runtime(**self._arguments)

    def names(self) -> list[str]:
        """The names of all modules, as ``cog list`` finds them."""
        return self._native.names()

    def load(self, module: _AnyModule) -> Module:
        """Loads a module by name or path.

        Raises:
            CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
        """
        return self._native.load(module)

    def validate(
        self, module: _AnyModule, *, level: Literal["v2.2", "v2.5"] | None = None
    ) -> Report:
        """Checks the files of a module, and the modules that it calls.

        Raises:
            CognitiveError: E4006 if there is no such module.
        """
        return self._native.validate(module, level)

    @lists_options
    def render(
        self, module: _AnyModule, input: Any, **options: Unpack[RunOptions]
    ) -> dict[str, Any]:
        """Returns what a run would send, without sending it: the messages, the request, and what the provider does not
        enforce. It is what ``cog render`` prints as JSON. The key is not in it. It takes the options of a run (``RunOptions``).

        Raises:
            CognitiveError: The run would be refused before the provider is called.
        """
        return self._native.render(module, input, self._native_options(options, module, input))

    def _starter_of_runs(self, options: RunOptions) -> _cognitive.Runtime:
        """Returns what starts a run with these options: the native part, or the one of a test with a cassette. A test may refuse it."""
        if _cassette is not None:
            return _cassette(self, options)
        if _guard is not None:
            _guard(self, options)
        return self._native

    def _native_options(self, options: RunOptions, module: object, input: Any) -> dict[str, object]:
        """Returns the options of a run for the native part, with the hooks of the runtime."""
        native = _native_options(options, module, input)
        if self._hooks:
            native["hooks"] = [*self._hooks, *_hooks_of(options.get("hooks"))]
        return native

    def verify(
        self,
        document: Any,
        *,
        kind: Literal["envelope", "chunk", "stream", "media", "messages", "handoff", "answer"] | None = None,
        module: _AnyModule | None = None,
    ) -> Verdict:
        """Checks a document against the specification, as ``cog verify`` does. Nothing is repaired.

        Args:
            document: JSON as text or bytes, a result, or an object that becomes JSON, such as a dict.
            kind: What the document is; None recognizes it by its members.
            module: A module whose schema and tier the document must match.

        Raises:
            CognitiveError: E4006 if there is no such module.
        """
        return self._native.verify(document, kind, module)

    @lists_options
    def execute(
        self, module: _AnyModule, input: Any, **options: Unpack[RunOptions]
    ) -> Result:
        """Runs a module, and returns its result. Other threads run meanwhile; Ctrl-C cancels the run.

        Args:
            module: A name, a path, or a loaded module.
            input: The input: a dict, a dataclass or a Pydantic model. A text becomes the text field of the module's input. In
                it, bytes become media, and ``pathlib.Path`` objects become files.
            options: The options of the run (``RunOptions``).

        Returns:
            The result, also of a run that failed: ``result.ok`` says which, and ``result.raise_for_error()`` raises.

        Raises:
            TypeError: The input has an object that JSON cannot represent.
            ValueError: The input has a number that JSON cannot represent, or contains itself.
        """
        runs, native = self._starter_of_runs(options), self._native_options(options, module, input)
        if "gevent" in sys.modules:
            from . import _gevent

            if _gevent.is_active():
                result = _gevent.finished(lambda notify: runs.start(module, input, native, notify))
                return self._kept(result, module, options)
        return self._kept(runs.execute(module, input, native), module, options)

    @lists_options
    async def execute_async(
        self, module: _AnyModule, input: Any, **options: Unpack[RunOptions]
    ) -> Result:
        """Runs a module as ``execute`` does, with its options (``RunOptions``), without blocking the event loop. Cancelling the task
        cancels the run."""
        return self._kept(await self._finished(module, input, options), module, options)

    def _kept(self, result: Result, module: _AnyModule | None, options: RunOptions) -> Result:
        """Lets ``result.pending`` continue the run. A module by its name is stored with the halted run, and so are its options, except
        those that are objects of the program."""
        error = result.error
        if error is not None and error.code == "E4007":
            objects = {name: options[name] for name in ("tools", "deps", "hooks") if name in options}
            result._set_origin((self, None if isinstance(module, (str, os.PathLike)) else module, objects))
        return result

    async def _finished(self, module: _AnyModule | _cognitive.Halted, input: Any, options: RunOptions) -> Result:
        """Starts a run, and waits for its result."""
        from ._loops import waiter

        done = waiter()
        native = self._native_options(options, module, input)
        call = self._starter_of_runs(options).start(module, input, native, done.set)
        try:
            result: Result = await done.wait()
            return result
        finally:
            call.cancel()

    @lists_options
    def execute_stream(
        self, module: _AnyModule, input: Any, **options: Unpack[RunOptions]
    ) -> ChunkStream:
        """Runs a module, and returns its chunks: for ``for`` and for ``async for``. The run starts when the first one is read.
        It takes the options of a run (``RunOptions``).

        The first chunk raises ``CognitiveError`` if the run is refused before the provider is called.

        Raises:
            TypeError: The input has an object that JSON cannot represent.
            ValueError: The input has a number that JSON cannot represent, or contains itself.
        """
        chunks = self._starter_of_runs(options).stream(module, input, self._native_options(options, module, input))
        return ChunkStream(chunks, lambda result: self._kept(result, module, options))

    #: Short names of the methods that the specification names.
    run = execute
    arun = execute_async
    stream = execute_stream

    @lists_options
    def map(
        self,
        module: _AnyModule,
        rows: Iterable[Any],
        *,
        concurrency: int = 16,
        progress: bool = False,
        **options: Unpack[RunOptions],
    ) -> list[Result]:
        """Runs a module for each input, at most ``concurrency`` at once. Other threads run meanwhile; Ctrl-C cancels the runs.

        Args:
            module: A name, a path, a task, or a loaded module.
            rows: The inputs.
            concurrency: The maximum number of runs at once.
            progress: Whether to show a progress bar, which needs tqdm.
            options: The options of the runs (``RunOptions``).

        Returns:
            The results in the order of the inputs, also of runs that failed. An input that cannot be converted fails with E1003.

        Raises:
            CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
        """
        from ._map import map_rows

        results = map_rows(rows, concurrency, self._starter(module, options), progress=progress)
        return [self._kept(result, module, options) for result in results]

    def _starter(
        self, module: _AnyModule, options: RunOptions
    ) -> Callable[[Any, Callable[[Any], object]], _cognitive.Call]:
        """Returns what starts the run of a row, and then notifies of its end."""
        loaded, checks = self.load(module), _checks_of(module, options)
        runs, native = self._starter_of_runs(options), self._native_options(options, None, None)

        def start(row: Any, notify: Callable[[Any], object]) -> _cognitive.Call:
            own = native if checks is None else {**native, "checks": checks(row)}
            return runs.start(loaded, row, own, notify)

        return start

    @lists_options
    def batch(
        self,
        module: _AnyModule,
        rows: Iterable[Any],
        out: str | os.PathLike[str],
        *,
        concurrency: int = 16,
        progress: bool = False,
        retry_failed: bool = False,
        **options: Unpack[RunOptions],
    ) -> BatchReport:
        """Runs a module for each input, and writes the results into a file of JSON Lines, as ``cog batch`` does.

        The same call continues a batch that was interrupted, and pays for no row twice: the results are in ``OUT.journal`` as soon as
        they arrive. A row whose input has changed runs again. ``budget=Budget(max_cost=5)`` limits what this call spends.

        Args:
            module: A name, a path, a task, or a loaded module.
            rows: The inputs, in the same order each time.
            out: The file of the results: one line for each row, in their order, once all rows have a result.
            concurrency: The maximum number of runs at once.
            progress: Whether to show a progress bar, which needs tqdm.
            retry_failed: Whether rows that failed in a former call run again.
            options: The options of the runs (``RunOptions``).

        Raises:
            CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
            ValueError: The journal belongs to another module or to other options.
            BlockingIOError: Another process runs this batch.
        """
        import hashlib
        import json

        from ._journal import run_batch

        loaded = self.load(module)
        same = {name: str(value) for name, value in sorted(options.items()) if name in _ANSWER_OPTIONS and value is not None}
        contract = hashlib.sha256(json.dumps(loaded.contract, sort_keys=True).encode()).hexdigest()[:16]
        return run_batch(
            rows,
            out,
            identity={"module": loaded.name, "version": loaded.version, "contract": contract, "options": same},
            concurrency=concurrency,
            start=self._starter(module, options),
            progress=progress,
            retry_failed=retry_failed,
        )

    @lists_options
    async def amap(
        self,
        module: _AnyModule,
        rows: Iterable[Any],
        *,
        concurrency: int = 16,
        progress: bool = False,
        **options: Unpack[RunOptions],
    ) -> list[Result]:
        """Runs a module for each input as ``map`` does, with the options of a run (``RunOptions``), without blocking the event loop."""
        from ._map import map_rows_async

        loaded = self.load(module)
        target = loaded if _checks_of(module, options) is None else module
        results = await map_rows_async(rows, concurrency, lambda row: self._finished(target, row, options), progress=progress)
        return [self._kept(result, module, options) for result in results]

    @lists_options
    def continue_run(
        self,
        id: str,
        *,
        confirm: str | None = None,
        deny: bool = False,
        module: _AnyModule | None = None,
        **options: Unpack[RunOptions],
    ) -> Result:
        """Continues a run that waits for the confirmation of a tool call.

        Args:
            id: ``result.pending.id``.
            confirm: The text that a person typed. Only ``"YES"`` confirms the call; otherwise the run stays halted.
            deny: The call is not executed, and the model continues without it.
            module: The module, if it is not found by its name: one that ``task`` made, or one at another path.
            options: The options of the run (``RunOptions``).

        Raises:
            CognitiveError: E4013 if no run has this id, E4014 if it has continued already.
        """
        halted = _cognitive.Halted(id, confirm=confirm, deny=deny, module=module)
        runs, native = self._starter_of_runs(options), self._native_options(options, module, None)
        return self._kept(runs.execute(halted, None, native), module, options)

    @lists_options
    async def continue_run_async(
        self,
        id: str,
        *,
        confirm: str | None = None,
        deny: bool = False,
        module: _AnyModule | None = None,
        **options: Unpack[RunOptions],
    ) -> Result:
        """Continues a run as ``continue_run`` does, with its options (``RunOptions``), without blocking the event loop."""
        halted = _cognitive.Halted(id, confirm=confirm, deny=deny, module=module)
        return self._kept(await self._finished(halted, None, options), module, options)

    def __repr__(self) -> str:
        return f"<CognitiveRuntime: {self._native.note}>"


def _native_tools(tools: Iterable[Callable[..., Any]]) -> list[_cognitive.NativeTool]:
    if isinstance(tools, (list, tuple)) and not tools:
        return []
    from ._tool import native_tools, tools_of

    return native_tools(tools_of(tools))


def _native_providers(providers: Mapping[str, Provider] | None) -> list[_cognitive.NativeProvider]:
    if not providers:
        return []
    from ._provider import native_providers

    return native_providers(providers)


def _native_options(options: RunOptions, module: object = None, input: Any = None, *, is_run: bool = True) -> dict[str, object]:
    """Compiles the tools and the checks of a run, or of a task if this is no run.

    Raises:
        TypeError: There is no option of this name, or a tool or a check cannot use ``deps``.
        ValueError: ``retries`` is out of range.
    """
    native: dict[str, object] = dict(options)
    if unknown := native.keys() - RunOptions.__optional_keys__:
        raise TypeError(_unknown_option(min(unknown)))
    if (tools := options.get("tools")) is not None:
        native["tools"] = _tools_of_run(tools, options.get("deps"), is_run)
    if (hooks := options.get("hooks")) is not None:
        native["hooks"] = list(_hooks_of(hooks))
    if (retries := native.pop("retries", None)) is not None:
        if not isinstance(retries, int) or not 0 <= retries <= 9:
            raise ValueError(f"retries: found {retries!r}; allowed: 0 to 9")
        if native.get("max_attempts") is not None:
            raise ValueError("retries: max_attempts says the same; give one of them")
        native["max_attempts"] = retries + 1
    if (checks := _checks_of(module, options)) is not None:
        native["checks"] = checks(input)
    return native


def _tools_of_run(tools: Iterable[Callable[..., Any]], deps: Any, is_run: bool) -> list[_cognitive.NativeTool]:
    if isinstance(tools, (list, tuple)) and not tools:
        return []
    from ._tool import check_deps, native_tools, tools_of

    made = tools_of(tools)
    if is_run:
        check_deps(made, deps)
    return native_tools(made)


def _hooks_of(hooks: Hooks | Sequence[Hooks] | None) -> tuple[Hooks, ...]:
    """Returns hooks as a tuple.

    Raises:
        TypeError: One of them is something else.
    """
    if hooks is None or hooks == ():
        return ()
    from ._hooks import Hooks

    all_hooks = (hooks,) if isinstance(hooks, Hooks) else tuple(hooks)
    for one in all_hooks:
        if not isinstance(one, Hooks):
            raise TypeError(f"hooks: found {type(one).__name__}; allowed: objects of subclasses of Hooks")
    return all_hooks


def _checks_of(module: object, options: RunOptions) -> Callable[[Any], list[_cognitive.NativeCheck]] | None:
    """Returns what makes the checks of a run of this module, with its input; None if it has none."""
    checks: Any = None if isinstance(module, str) else getattr(module, "__cognitive_checks__", None)
    if checks is None:
        return None
    return lambda input: checks(input, options.get("deps"))


def _unknown_option(name: str) -> str:
    import difflib

    known = sorted(RunOptions.__optional_keys__)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"the options are {', '.join(known)}"
    return f"found no option {name!r}; {hint}"

