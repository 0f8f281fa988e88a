"""One contender of ``bench.py`` that is a Python program.

    worker.py NAME URL BODY

URL is that of the mock or of ``cog serve``, BODY what cog sends for a row. Prints a line when it is ready. Then each line of
standard input has the path of the rows and an empty directory: it runs the rows, writes the answers there, and prints a line.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from workload import CONCURRENCY, MODULE

#: Processes of Ray that call the server.
ACTORS = 2

Run = Callable[[str, Path], None]


def vendor(url: str, body: dict[str, Any]) -> Run:
    """A program with asyncio and the SDK of the vendor, which sends what cog sends."""
    from openai import AsyncOpenAI

    model = envelope()
    body = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
    *beginning, last = body.pop("messages")

    async def all_rows(rows: str, out: Path) -> None:
        limit = asyncio.Semaphore(CONCURRENCY)
        with (out / "answers.jsonl").open("w") as file:
            async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:

                async def one(line: str) -> None:
                    async with limit:
                        messages: Any = [*beginning, {**last, "content": line}]
                        reply: Any = await client.chat.completions.create(messages=messages, **body)
                        checked = model.model_validate_json(reply.choices[0].message.content)
                        file.write(json.dumps(checked.model_dump(exclude_unset=True)) + "\n")

                with open(rows) as lines:
                    await asyncio.gather(*(one(line.rstrip("\n")) for line in lines))

    return lambda rows, out: asyncio.run(all_rows(rows, out))


def envelope() -> Any:
    """The contract of the module as a Pydantic model."""
    from pydantic import Field, create_model

    risk = Literal["none", "low", "medium", "high"]
    text = Annotated[str, Field(min_length=1)]
    kind = Literal["security", "correctness", "concurrency", "resources", "performance", "design", "tests"]
    custom: Any = create_model("Custom", custom=(Annotated[text, Field(max_length=32)], ...), reason=(str, ...))
    issue: Any = create_model(
        "Issue",
        title=(Annotated[text, Field(max_length=120)], ...),
        category=(kind | custom, ...),
        risk=(risk, ...),
        line=(Annotated[int, Field(ge=1)] | None, None),
        problem=(text, ...),
        remedy=(text, ...),
        replacement=(str | None, None),
    )
    verdict = Literal["approve", "change", "reject"]
    data: Any = create_model("Data", verdict=(verdict, ...), issues=(list[issue], ...), rationale=(text, ...))
    confidence = Annotated[float, Field(ge=0, le=1)]
    explain = Annotated[str, Field(max_length=280)]
    meta: Any = create_model("Meta", confidence=(confidence, ...), risk=(risk, ...), explain=(explain, ...))
    return create_model("Envelope", ok=(Literal[True], ...), meta=(meta, ...), data=(data, ...))


class Server:
    """Calls `cog serve`, with so many calls at the same time."""

    def __init__(self, url: str, concurrency: int) -> None:
        self.url = f"{url}/v1/modules/{MODULE}/execute"
        self.concurrency = concurrency
        self.session: Any = None

    async def call(self, code: str) -> dict[str, Any]:
        if self.session is None:
            import aiohttp

            self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=self.concurrency))
        async with self.session.post(self.url, json={"input": {"code": code}}) as response:
            text = await response.text()
        return {"ok": json.loads(text)["ok"], "answer": text}


def ray(url: str, body: dict[str, Any]) -> Run:
    """Ray Data, whose actors call `cog serve`."""
    import ray as engine
    import ray.data

    class Actor:
        def __init__(self) -> None:
            self.server = Server(url, CONCURRENCY // ACTORS)
            self.loop = asyncio.new_event_loop()

        def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
            answers = self.loop.run_until_complete(self.all(batch["code"]))
            return {name: [answer[name] for answer in answers] for name in ("ok", "answer")}

        async def all(self, codes: Any) -> list[dict[str, Any]]:
            return await asyncio.gather(*(self.server.call(str(code)) for code in codes))

    engine.init(include_dashboard=False, log_to_driver=False, logging_level="error", object_store_memory=256 << 20)
    ray.data.DataContext.get_current().enable_progress_bars = False

    def run(rows: str, out: Path) -> None:
        data = ray.data.read_json(rows, lines=True, override_num_blocks=4 * ACTORS)
        data = data.map_batches(Actor, batch_size=256, compute=ray.data.ActorPoolStrategy(size=ACTORS), num_cpus=0.5)
        data.write_json(str(out))

    return run


def daft(url: str, body: dict[str, Any]) -> Run:
    """Daft, with an asynchronous function that calls `cog serve`."""
    import daft as engine

    kind = engine.DataType.struct({"ok": engine.DataType.bool(), "answer": engine.DataType.string()})

    @engine.cls(max_concurrency=CONCURRENCY)
    class Caller:
        def __init__(self) -> None:
            self.server = Server(url, CONCURRENCY)

        @engine.method(return_dtype=kind, unnest=True)
        async def call(self, code: str) -> dict[str, Any]:
            return await self.server.call(code)

    def run(rows: str, out: Path) -> None:
        table = engine.read_json(rows)
        table.select(Caller().call(table["code"])).write_json(str(out))

    return run


def main() -> None:
    name, url, body = sys.argv[1:]
    prepare = {"asyncio": vendor, "ray": ray, "daft": daft}[name]
    answers = sys.stdout
    sys.stdout = sys.stderr
    run = prepare(url, json.loads(body))
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        path, out = json.loads(line)
        run(path, Path(out))
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    main()
