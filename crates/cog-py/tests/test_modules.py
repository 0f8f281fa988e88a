"""Modules as functions."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from conftest import ANSWER, Mock

import cognitive.modules
from cognitive import CognitiveRuntime, Result, _functions, default_runtime, task


@pytest.fixture(autouse=True)
def _own_runtime(runtime: CognitiveRuntime, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(_functions, "_default", runtime)
    yield


def test_names_of_functions_hide_no_types() -> None:
    names = ["code-reviewer", "a--b", "list", "import", "cast"]
    assert [_functions.identifier(name) for name in names] == ["code_reviewer", "a__b", "list_", "import_", "cast"]


def test_result_takes_the_type_of_its_data() -> None:
    assert str(Result[dict[str, int]]) == "cognitive.Result[dict[str, int]]"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_default_runtime_is_found_after_a_fork_with_a_held_lock() -> None:
    with _functions._lock:
        child = os.fork()
        if child == 0:
            found = default_runtime() is _functions._default
            os._exit(0 if found else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_module_is_a_function(mock: Mock) -> None:
    from cognitive.modules import code_reviewer

    result = code_reviewer(code="fn main() {}", language="rust")
    assert result.data == ANSWER["data"]
    assert '"language":"rust"' in str(mock.requests[0]["messages"]).replace(" ", "").replace("\\", "")
    assert code_reviewer({"code": "fn main() {}"}).ok
    assert code_reviewer("fn main() {}").ok
    with pytest.raises(TypeError, match="either one argument or keyword arguments"):
        code_reviewer({"code": ""}, language="rust")


def test_it_streams_and_awaits() -> None:
    from cognitive.modules import code_reviewer

    assert [*code_reviewer.stream(code="x")][-1]["final"]
    assert asyncio.run(code_reviewer.aio(code="x")).data == ANSWER["data"]


def test_options_are_of_a_new_function(mock: Mock, offline: CognitiveRuntime) -> None:
    from cognitive.modules import code_reviewer

    assert code_reviewer.with_options(model="other").with_options(timeout=9.0)(code="x").ok
    assert mock.requests[-1]["model"] == "other"
    code_reviewer(code="x")
    assert mock.requests[-1]["model"] == "mock-1"
    count = len(mock.requests)
    assert code_reviewer.with_options(runtime=offline)(code="x").ok
    assert len(mock.requests) == count


def test_functions_and_modules_are_pickled(offline: CognitiveRuntime) -> None:
    from cognitive.modules import code_reviewer

    copy = pickle.loads(pickle.dumps(code_reviewer.with_options(model="other")))
    assert copy.module.name == "code-reviewer" and copy._options == {"model": "other"}
    assert copy(code="x").ok
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert list(pool.map(code_reviewer.with_options(provider="offline"), ["x"]))[0].ok
    with pytest.raises(TypeError, match="code_reviewer: a runtime cannot be pickled"):
        pickle.dumps(code_reviewer.with_options(runtime=offline))
    write_module("mine", '{"input": {}, "meta": {}, "data": {"type": "object"}}')
    assert pickle.loads(pickle.dumps(offline.load("cognitive/modules/mine"))).name == "mine"
    with pytest.raises(TypeError, match="words: a module in memory cannot be pickled"):
        pickle.dumps(offline.load(task(words)))


def words(text: str) -> int:
    """Count the words."""
    raise NotImplementedError


def test_it_describes_itself() -> None:
    from cognitive.modules import code_reviewer

    assert code_reviewer.__name__ == "code_reviewer"
    assert "code" in inspect.signature(code_reviewer).parameters
    assert "The code to review" in (inspect.getdoc(code_reviewer) or "")
    assert repr(code_reviewer).startswith("<function of the module code-reviewer: ")
    assert code_reviewer.module.name == "code-reviewer"


def test_all_modules_are_listed() -> None:
    found = dir(cognitive.modules)
    assert {"code_reviewer", "task_prioritizer"} <= set(found) and found == sorted(found)


def write_module(name: str, schema: str) -> None:
    directory = Path("cognitive/modules") / name
    directory.mkdir(parents=True)
    manifest = f"name: {name}\nversion: 1.0.0\nresponsibility: Classify\ntier: exploration\n"
    (directory / "module.yaml").write_text(manifest)
    (directory / "prompt.md").write_text("Classify $INPUT\n")
    (directory / "schema.json").write_text(schema)


def test_own_modules_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    write_module("class", '{"input": {}, "meta": {}, "data": {"type": "object"}}')
    write_module("broken", "{")
    monkeypatch.setattr(_functions, "_default", CognitiveRuntime())
    from cognitive.modules import class_

    assert class_.module.name == "class"
    with pytest.raises(ImportError, match="E4008"):
        from cognitive.modules import broken  # noqa: F401


def test_the_nearest_name_is_named() -> None:
    with pytest.raises(ModuleNotFoundError, match="no module 'code-reviewr'. Did you mean 'code_reviewer'"):
        from cognitive.modules import code_reviewr  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="`cog list` shows all modules"):
        from cognitive.modules import zzzzzzzzzz  # noqa: F401
    with pytest.raises(AttributeError):
        cognitive.modules._hidden  # noqa: B018


def test_the_default_runtime_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_functions, "_default", None)
    assert default_runtime() is default_runtime()
