"""Providers that are Python classes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import ANSWER, INPUT, Scripted, agent

from cognitive import CognitiveError, CognitiveRuntime, ModelRequest, Provider, ProviderError, Reply


@pytest.fixture
def module(tmp_path: Path) -> Path:
    return agent(tmp_path)


def runtime(provider: Provider, **options: Any) -> CognitiveRuntime:
    return CognitiveRuntime(providers={"mine": provider}, provider="mine", **options)


def pieces(text: str) -> list[str]:
    return [text[start : start + 16] for start in range(0, len(text), 16)]


def test_text_is_the_reply(module: Path) -> None:
    model = Scripted()
    own = runtime(model)
    result = own.execute(module, INPUT)
    assert result.data == {"text": "done", "rationale": "The tools did it."}
    assert result.meta["model"] == "mine/scripted-1"
    assert repr(own).startswith("<CognitiveRuntime: calling mine")
    request = model.requests[0]
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert all(isinstance(message["content"], str) for message in request.messages)
    assert "Do what" in str(request.messages) and request.model == "scripted-1"
    assert request.tools == [] and request.timeout is not None and "messages=2" in repr(request)
    assert own.execute(module, INPUT, model="scripted-2").ok
    assert model.requests[1].model == "scripted-2"


def test_reply_has_usage_model_and_reasoning(module: Path) -> None:
    model = Scripted(Reply(ANSWER, input_tokens=10, output_tokens=5, model="other-1", reasoning="Hm."))
    meta = runtime(model, model="asked-1").execute(module, INPUT).meta
    assert model.requests[0].model == "asked-1"
    assert meta["usage"]["input_tokens"] == 10 and meta["usage"]["total_tokens"] == 15
    assert "other-1" in meta["model"]


def test_answer_is_checked_and_asked_for_again(module: Path) -> None:
    model = Scripted(ANSWER.replace('"text": "done"', '"text": 5'), ANSWER)
    assert runtime(model).execute(module, INPUT, max_attempts=2).ok
    assert len(model.requests) == 2
    result = runtime(Scripted("no JSON")).execute(module, INPUT, max_attempts=1)
    assert result.error is not None and result.error.code == "E1000"


class Streams(Provider):
    def __init__(self) -> None:
        self.started = threading.Event()
        self.closed = threading.Event()

    def stream(self, request: ModelRequest) -> Iterator[str | Reply]:
        try:
            yield from pieces(ANSWER)
            yield Reply(input_tokens=3, output_tokens=4)
        finally:
            self.closed.set()


class AsyncStreams(Provider):
    def __init__(self) -> None:
        self.closed = threading.Event()
        self.loop: Any = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | Reply]:
        self.loop = asyncio.get_running_loop()
        try:
            for piece in pieces(ANSWER):
                await asyncio.sleep(0)
                yield piece
        finally:
            self.closed.set()


class Later(Provider):
    async def complete(self, request: ModelRequest) -> str:
        await asyncio.sleep(0)
        return ANSWER


def test_stream_arrives_in_pieces(module: Path) -> None:
    for model in (Streams(), AsyncStreams()):
        stream = runtime(model).execute_stream(module, INPUT)
        chunks = list(stream)
        assert sum("chunk" in chunk for chunk in chunks) > 1, chunks
        assert stream.result is not None and stream.result.ok and model.closed.wait(30)
    assert runtime(Streams()).execute(module, INPUT).meta["usage"]["output_tokens"] == 4


def test_asynchronous_provider_runs_in_the_loop_of_the_caller(module: Path) -> None:
    async def main() -> None:
        model = AsyncStreams()
        assert (await runtime(model).execute_async(module, INPUT)).ok
        assert model.loop is asyncio.get_running_loop()
        assert (await runtime(Later()).execute_async(module, INPUT)).ok

    asyncio.run(main())
    assert runtime(Later()).execute(module, INPUT).ok


def test_dropped_stream_closes_the_generator(module: Path) -> None:
    class Endless(Streams):
        def stream(self, request: ModelRequest) -> Iterator[str | Reply]:
            try:
                self.started.set()
                yield from pieces(ANSWER[:-2])
                while True:
                    yield " "
            finally:
                self.closed.set()

    model = Endless()
    stream = runtime(model).execute_stream(module, INPUT)
    reader = threading.Thread(target=lambda: list(stream))
    reader.start()
    assert model.started.wait(30)
    stream.close()
    reader.join()
    assert model.closed.wait(30)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("wrong"), "E4001"),
        (ConnectionError("refused"), "E4001"),
        (TimeoutError("slow"), "E2002"),
        (ProviderError("busy", code="E4002"), "E4002"),
        (ProviderError("unknown code", code="E9999"), "E4001"),
    ],
)
def test_exception_is_the_cause_of_the_error(module: Path, error: Exception, code: str) -> None:
    class Failing(Provider):
        def complete(self, request: ModelRequest) -> str:
            raise error

    result = runtime(Failing()).execute(module, INPUT, max_attempts=1)
    assert result.error is not None and result.error.code == code
    assert str(error) in result.error.message
    assert result.exceptions == [error]
    with pytest.raises(CognitiveError) as raised:
        result.raise_for_error()
    assert raised.value.__cause__ is error


def test_status_of_a_client_is_the_code(module: Path) -> None:
    class RateLimitError(Exception):
        status_code = 429

    class Limited(Provider):
        async def complete(self, request: ModelRequest) -> str:
            raise RateLimitError("slow down")

    result = runtime(Limited()).execute(module, INPUT, max_attempts=1)
    assert result.error is not None and result.error.code == "E4002" and result.error.recoverable


def test_next_provider_is_called_after_a_failure(module: Path) -> None:
    class Failing(Provider):
        def complete(self, request: ModelRequest) -> str:
            raise ConnectionError("refused")

    other = Scripted()
    both = CognitiveRuntime(providers={"first": Failing(), "second": other}, provider="first,second")
    result = both.execute(module, INPUT)
    assert result.ok and result.meta["model"] == "second/scripted-1"
    assert isinstance(result.exceptions[0], ConnectionError)
    assert both.execute(module, INPUT, provider="second").ok and len(other.requests) == 2
    assert both.execute("code-reviewer", {"code": "x"}, provider="offline").ok
    unknown = both.execute(module, INPUT, provider="third")
    assert unknown.error is not None and unknown.error.code == "E1004"


def test_keyboard_interrupt_of_a_provider_ends_the_run(module: Path) -> None:
    class Stops(Provider):
        async def complete(self, request: ModelRequest) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        runtime(Stops()).execute(module, INPUT)


def test_reply_of_another_type_is_an_error(module: Path) -> None:
    class Wrong(Provider):
        def complete(self, request: ModelRequest) -> Any:
            return {"ok": True}

    result = runtime(Wrong()).execute(module, INPUT, max_attempts=1)
    assert result.error is not None
    assert "the provider 'mine' returned dict; allowed: str, Reply" in result.error.message
    result = runtime(Scripted(Reply(finish_reason="done"))).execute(module, INPUT)  # type: ignore[arg-type]
    assert result.error is not None and "finish_reason: found" in result.error.message


def test_what_is_not_a_provider_is_refused() -> None:
    class Nothing(Provider):
        pass

    with pytest.raises(TypeError, match="Nothing has neither complete nor stream"):
        runtime(Nothing())
    with pytest.raises(TypeError, match="providers: 'mine' is str; allowed: a subclass of Provider"):
        runtime("model")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='"openai" is a built-in provider'):
        CognitiveRuntime(providers={"openai": Scripted()})
    with pytest.raises(ValueError, match='"a,b" is not a valid name'):
        CognitiveRuntime(providers={"a,b": Scripted()})


def test_time_limit_of_a_run_ends_the_call(module: Path) -> None:
    cancelled = threading.Event()

    class Hangs(Provider):
        async def complete(self, request: ModelRequest) -> str:
            try:
                await asyncio.sleep(60)
            finally:
                cancelled.set()
            return ANSWER

    assert not runtime(Hangs()).execute(module, INPUT, timeout=0.2).ok
    assert cancelled.wait(30)


def test_keys_are_masked_in_the_errors_of_providers(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-the-operator")

    class Failing(Provider):
        def complete(self, request: ModelRequest) -> str:
            raise RuntimeError("Bearer sk-secret-of-the-operator was refused")

    result = CognitiveRuntime(providers={"mine": Failing()}, provider="mine").execute(module, INPUT)
    assert result.error is not None and "was refused" in result.error.message
    assert "sk-secret" not in result.to_json()
