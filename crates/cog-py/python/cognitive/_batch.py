"""Runs for the rows of a table, in the processes of an engine."""

from __future__ import annotations

import asyncio
import dataclasses
import weakref
from typing import TYPE_CHECKING, Any, Union

from . import _columns
from ._cognitive import Module, Result
from ._functions import ModuleFunction, default_runtime
from ._task import ModuleFiles
from ._errors import CognitiveError
from ._map import failure, refused
from ._runtime import CognitiveRuntime, RunOptions

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    _AnyModule = Union[str, os.PathLike[str], Module, ModuleFiles, ModuleFunction]


@dataclasses.dataclass(frozen=True)
class Job:
    """What every process of an engine runs. It can be pickled."""

    module: str | ModuleFiles
    columns: _columns.Struct
    runs: int
    """The maximum number of runs at once in a process."""
    runtime: Callable[[], CognitiveRuntime] | None
    options: RunOptions

    @classmethod
    def of(
        cls, module: _AnyModule, runs: int, runtime: Callable[[], CognitiveRuntime] | None, options: RunOptions
    ) -> tuple[Job, Module]:
        """Returns the job, and the module as it is here.

        Raises:
            CognitiveError: E4006 if there is no such module, E4008 if its files are invalid.
            TypeError: An option has no such name.
            ValueError: ``runs`` is out of range, or the module cannot be sent.
        """
        if runs < 1:
            raise ValueError(f"runs: found {runs}; allowed: 1 and more")
        if unknown := sorted(options.keys() - RunOptions.__annotations__.keys()):
            raise TypeError(f"found no option {unknown[0]!r}; the options are {', '.join(RunOptions.__annotations__)}")
        source = module.module if isinstance(module, ModuleFunction) else module
        loader = runtime() if runtime else default_runtime()
        loaded = loader.load(source)
        if isinstance(source, Module) and not source.directory:
            try:
                loader.load(source.name)
            except CognitiveError as error:
                raise ValueError(f"{source.name}: pass the module in memory itself, not what `load` returned") from error
        # A task is pickled by its name, which another process may not have.
        files = ModuleFiles(source.name, source.files) if isinstance(source, ModuleFiles) else None
        named = files if files else str(loaded.directory or loaded.name)
        return cls(named, _columns.columns_of(loaded), runs, runtime, options), loaded


class Worker:
    """A runtime that runs the job in this process.

    Raises:
        CognitiveError: The module cannot be loaded here.
        RuntimeError: The module has other columns here than where the job was made.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._runtime = (job.runtime or CognitiveRuntime)()
        self._module = self._runtime.load(job.module)
        if _columns.columns_of(self._module) != job.columns:
            raise RuntimeError(f"{self._module.name}: the contract on this machine differs from the program's")
        #: What limits the runs of each event loop. A semaphore is for one loop, and an engine may have several in turn.
        self._limits: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = weakref.WeakKeyDictionary()

    async def row(self, make_input: Callable[[], Any]) -> dict[str, Any]:
        """Returns the cells of one run, also if it fails."""
        loop = asyncio.get_running_loop()
        async with self._limits.setdefault(loop, asyncio.Semaphore(self._job.runs)):
            result = await self._result(make_input)
        return _columns.row(result.to_dict(), self._job.columns)

    async def _result(self, make_input: Callable[[], Any]) -> Result:
        try:
            found = present(make_input())
        except Exception as error:
            return failure("E1001", f"the input cannot be created from the row: {type(error).__name__}: {error}")
        try:
            return await self._runtime.execute_async(self._module, found, **self._job.options)
        except CognitiveError:
            raise
        except Exception as error:
            return refused(error)


def present(value: Any) -> Any:
    """Returns a value without the null members of its objects: a table has no absent ones."""
    if isinstance(value, dict):
        return {name: present(member) for name, member in value.items() if member is not None}
    return [present(item) for item in value] if isinstance(value, list) else value


def input_fields(module: Module) -> list[str]:
    """Returns the names of the fields of the input that the contract defines."""
    found: Mapping[str, Any] = (module.input_schema or {}).get("properties", {})
    return list(found)

