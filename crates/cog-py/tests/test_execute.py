"""Runs that return one result."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest
from conftest import ANSWER, Mock

from scripted import Scripted

from cognitive import CognitiveError, CognitiveRuntime, Runtime

INPUT = {"code": "fn main() {}"}


def test_result_is_the_envelope(runtime: CognitiveRuntime, mock: Mock) -> None:
    result = runtime.execute("code-reviewer", INPUT)
    assert result.ok and result.error is None and result.raise_for_error() is result
    assert result.data == ANSWER["data"]
    assert result.data is result.data
    assert result.meta["confidence"] == 0.9 and result.meta["model"] == "openai/mock-1"
    assert result.to_dict()["data"] == ANSWER["data"]
    assert '"ok": true' in result.to_json(indent=True)
    assert len(mock.requests) == 1 and mock.requests[0]["model"] == "mock-1"


def test_text_becomes_the_text_field(runtime: CognitiveRuntime, mock: Mock) -> None:
    assert runtime.execute("code-reviewer", "fn main() {}").ok
    assert "fn main() {}" in str(mock.requests[0]["messages"])


def test_failed_run_is_a_result(runtime: CognitiveRuntime, mock: Mock) -> None:
    result = runtime.execute("code-reviewer", {"code": 1})
    assert not result.ok and result.data is None
    assert result.error is not None and result.error.code == "E1003"
    assert mock.requests == []
    with pytest.raises(CognitiveError) as raised:
        result.raise_for_error()
    assert raised.value.code == "E1003" and raised.value.envelope == result.to_dict()
    assert raised.value.result is result
    assert str(raised.value).startswith("E1003: ")


def test_result_is_neither_true_nor_false(offline: CognitiveRuntime) -> None:
    with pytest.raises(TypeError, match=r"use result\.ok"):
        assert offline.execute("code-reviewer", INPUT)


def test_unknown_module_is_an_error(offline: CognitiveRuntime) -> None:
    result = offline.execute("no-such-module", INPUT)
    assert result.error is not None and result.error.code == "E4006"
    with pytest.raises(CognitiveError, match="E4006"):
        offline.load("no-such-module")


def test_loaded_module_runs(offline: CognitiveRuntime) -> None:
    module = offline.load("code-reviewer")
    assert (module.name, module.version, module.tier) == ("code-reviewer", "1.0.0", "decision")
    assert module.input_schema is not None and module.input_schema["required"] == ["code"]
    assert offline.execute(module, INPUT).ok
    assert offline.load(module).name == module.name


def test_options_are_those_of_a_request(runtime: CognitiveRuntime, mock: Mock) -> None:
    assert runtime.execute("code-reviewer", INPUT, model="mock-2", timeout=20, strict=None).ok
    assert mock.requests[0]["model"] == "mock-2"
    with pytest.raises(TypeError, match="found no option 'modle'; did you mean 'model'?"):
        runtime.execute("code-reviewer", INPUT, modle="mock-2")  # type: ignore[call-arg]
    for timeout in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="timeout: found"):
            runtime.execute("code-reviewer", INPUT, timeout=timeout)
    assert len(mock.requests) == 1


def test_strict_runtime_rejects_repairs(mock: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", mock.url)
    mock.reply = f"```json\n{mock.reply}\n```"
    runtime = CognitiveRuntime(provider="openai", model="mock-1", strict=True)
    assert not runtime.execute("code-reviewer", INPUT, max_attempts=1).ok
    assert runtime.execute("code-reviewer", INPUT, max_attempts=1, strict=False).ok


def test_deadline_is_an_error(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 0
    result = runtime.execute("code-reviewer", INPUT, timeout=0.2)
    assert not result.ok
    assert mock.interrupted.wait(30)


def test_key_is_in_no_text(runtime: CognitiveRuntime, mock: Mock) -> None:
    assert "sk-test" not in repr(runtime)
    mock.server_close()
    mock.shutdown()
    result = runtime.execute("code-reviewer", INPUT, timeout=5)
    assert not result.ok and "sk-test" not in result.to_json()


def test_invalid_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COG_TIMEOUT", "soon")
    with pytest.raises(ValueError, match="COG_TIMEOUT: `soon` is not a valid duration"):
        CognitiveRuntime()
    with pytest.raises(ValueError, match="timeout: found 0"):
        CognitiveRuntime(timeout=0)


def test_offline_runtime_warns_unless_it_is_wanted(offline: CognitiveRuntime) -> None:
    with pytest.warns(UserWarning, match='golden answers and samples.*provider="offline"') as warned:
        result = CognitiveRuntime().run("code-reviewer", INPUT)
    assert result.ok and warned[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert CognitiveRuntime(provider="offline").run("code-reviewer", INPUT).ok
        assert CognitiveRuntime(providers={"mine": Scripted()}).load("code-reviewer")


def test_short_names_are_those_of_the_specification(offline: CognitiveRuntime) -> None:
    assert Runtime is CognitiveRuntime
    answer = offline.execute("code-reviewer", INPUT).data
    assert offline.run("code-reviewer", INPUT).data == answer
    assert asyncio.run(offline.arun("code-reviewer", INPUT)).data == answer
    assert list(offline.stream("code-reviewer", INPUT))[-1]["data"] == answer


def test_providers_of_the_program_are_called_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"first": Scripted(), "second": Scripted()}
    assert "calling first" in repr(CognitiveRuntime(providers=own))
    assert "calling second" in repr(CognitiveRuntime(providers=own, provider="second"))
    monkeypatch.setenv("LLM_PROVIDER", "offline")
    assert "offline mode" in repr(CognitiveRuntime(providers=own))


def test_unknown_provider_is_named() -> None:
    with pytest.raises(CognitiveError, match="opneai") as failure:
        CognitiveRuntime(provider="opneai")
    assert failure.value.suggestion == "It is set by `provider`."


def test_modules_of_a_directory(tmp_path: Path) -> None:
    module = tmp_path / "modules" / "greeter"
    module.mkdir(parents=True)
    (module / "module.yaml").write_text("name: greeter\nversion: 1.0.0\nresponsibility: Greet\ntier: exec\n")
    (module / "prompt.md").write_text("Greet $name.\n")
    schema = '{"input": {"type": "object", "properties": {"name": {"type": "string"}}},'
    (module / "schema.json").write_text(schema + ' "data": {"type": "object"}}')
    loaded = CognitiveRuntime(provider="offline", modules=[tmp_path / "modules"]).load("greeter")
    assert isinstance(loaded.directory, Path) and loaded.directory.name == "greeter"
    assert CognitiveRuntime(provider="offline").load(module).name == "greeter"


def test_validate_lists_what_is_wrong(offline: CognitiveRuntime, tmp_path: Path) -> None:
    assert offline.validate("code-reviewer").valid
    module = tmp_path / "broken"
    module.mkdir()
    (module / "module.yaml").write_text("name: broken\nversion: 1.0.0\n")
    report = offline.validate(module)
    assert not report.valid and report.to_dict()["valid"] is False
    assert all({"rule", "message"} <= set(found) for found in report.diagnostics)
    assert str(report).endswith("invalid")
    with pytest.raises(CognitiveError):
        offline.load(module)
    with pytest.raises(ValueError, match=r"level: found"):
        offline.validate(module, level="v9")  # type: ignore[arg-type]


def test_media_is_refused_without_multimodal(tmp_path: Path) -> None:
    runtime = CognitiveRuntime(provider="offline", multimodal=False)
    result = runtime.execute("image-analyzer", {"images": [tmp_path / "a.png"]})
    assert result.error is not None and result.error.code == "E4011"


def test_async_runs_share_the_loop(runtime: CognitiveRuntime, mock: Mock) -> None:
    async def run() -> list[bool]:
        runs = [runtime.execute_async("code-reviewer", INPUT) for _ in range(20)]
        return [result.ok for result in await asyncio.gather(*runs)]

    assert asyncio.run(run()) == [True] * 20
    assert len(mock.requests) == 20


def test_cancelled_task_cancels_the_call(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 1

    async def run() -> None:
        task = asyncio.create_task(runtime.execute_async("code-reviewer", INPUT))
        await asyncio.to_thread(mock.called.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert mock.interrupted.wait(30)


def test_run_outlives_its_event_loop(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 1
    loop = asyncio.new_event_loop()
    task = loop.create_task(runtime.execute_async("code-reviewer", INPUT))
    loop.run_until_complete(asyncio.sleep(0))
    mock.called.wait(30)
    loop.close()
    del task
    assert runtime.execute("code-reviewer", INPUT, timeout=0.2).ok is False


def test_other_threads_run_meanwhile(runtime: CognitiveRuntime, mock: Mock) -> None:
    mock.hang_after = 1
    worker = threading.Thread(target=lambda: runtime.execute("code-reviewer", INPUT, timeout=20))
    worker.start()
    assert mock.called.wait(30), "the mock runs in another thread of this process"
    mock.shutdown()
    worker.join(0.01)
    assert worker.is_alive()
    runtime.execute("code-reviewer", {"code": 1})


def test_ten_threads_share_a_runtime(runtime: CognitiveRuntime) -> None:
    found: list[bool] = []
    run = lambda: found.append(runtime.execute("code-reviewer", INPUT).ok)  # noqa: E731
    threads = [threading.Thread(target=run) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 10


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent to other processes differently there")
def test_interrupt_cancels_the_run(mock: Mock) -> None:
    mock.hang_after = 1
    program = (
        "import signal\n"
        "from cognitive import CognitiveRuntime\n"
        # A program that a shell starts in the background ignores Ctrl-C otherwise.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "runtime = CognitiveRuntime(provider='openai', model='m')\n"
        "try:\n    runtime.execute('code-reviewer', {'code': 'x'})\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    environment = {**os.environ, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": mock.url}
    child = subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE)
    assert mock.called.wait(60)
    child.send_signal(signal.SIGINT)
    printed, _ = child.communicate(timeout=60)
    assert printed == b"interrupted\n" and child.returncode == 0
    assert mock.interrupted.wait(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_runtime_works_after_fork(runtime: CognitiveRuntime, mock: Mock) -> None:
    assert runtime.execute("code-reviewer", INPUT).ok
    child = os.fork()
    if child == 0:
        ok = False
        try:
            ok = runtime.execute("code-reviewer", INPUT, timeout=30).ok
        finally:
            os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert runtime.execute("code-reviewer", INPUT).ok
    assert len(mock.requests) == 3


def test_interpreter_ends_during_a_run(mock: Mock) -> None:
    mock.hang_after = 1
    program = (
        "import threading\nfrom cognitive import CognitiveRuntime\n"
        "runtime = CognitiveRuntime(provider='openai', model='m')\n"
        "run = lambda: runtime.execute('code-reviewer', {'code': 'x'})\n"
        "threading.Thread(target=run, daemon=True).start()\n"
        "input()\n"
    )
    environment = {**os.environ, "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": mock.url}
    child = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert mock.called.wait(60)
    _, errors = child.communicate(b"\n", timeout=60)
    assert (child.returncode, errors) == (0, b"")




def test_misspelt_name_is_an_error_for_programs_and_type_checkers() -> None:
    with pytest.raises(ImportError, match="CognitveRuntime"):
        from cognitive import CognitveRuntime  # type: ignore[attr-defined]  # noqa: F401
