"""The rows that every contender runs, the answer of the mock, and the programs that cog needs for it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MODULE = "code-reviewer"
MODEL = "gpt-5-mini"
#: Rows that run at the same time.
CONCURRENCY = 64
#: Bytes of a row, and of an answer.
SIZE = 1_000
#: Different texts in the rows.
TEXTS = 2_000


def code(chance: random.Random) -> str:
    """A text of three quarters to five quarters of the size."""
    lines = []
    missing = chance.randint(SIZE * 3 // 4, SIZE * 5 // 4)
    while missing > 0:
        name, other = (chance.choice(("total", "index", "found", "rest", "limit", "buffer")) for _ in range(2))
        lines.append(f"let {name}_{chance.randint(0, 99)} = {other}.get({chance.randint(0, 9999)});")
        missing -= len(lines[-1]) + 2  # a line break is two bytes in JSON
    return "\n".join(lines)


def write_rows(path: Path, count: int) -> None:
    """Writes so many rows as JSON Lines. No two are equal."""
    chance = random.Random(1)
    texts = [json.dumps(code(chance))[1:] for _ in range(min(count, TEXTS))]
    with path.open("w") as file:
        file.writelines(f'{{"code": "// file {row}\\n{texts[row % TEXTS]}}}\n' for row in range(count))


def answer() -> dict[str, Any]:
    issue = {"category": "correctness", "risk": "low", "problem": "The value can be missing.", "remedy": "Check it first."}
    issues = [{"title": f"Unchecked value in line {line}", **issue, "line": line} for line in range(1, 5)]
    meta = {"confidence": 0.9, "risk": "low", "explain": "Four values are not checked."}
    found = {"ok": True, "meta": meta, "data": {"verdict": "approve", "issues": issues, "rationale": ""}}
    text = "Each value comes from a call that can fail. "
    missing = SIZE - len(json.dumps(found))
    found["data"] = {"verdict": "approve", "issues": issues, "rationale": (text * missing)[:missing]}
    return found


def check(envelopes: Iterable[dict[str, Any]], rows: int) -> None:
    """Fails unless there is one good answer for each row."""
    expected = answer()["data"]
    count = 0
    for count, envelope in enumerate(envelopes, 1):
        if envelope["ok"] is not True or envelope["data"] != expected:
            raise SystemExit(f"another answer than that of the mock: {envelope}")
    if count != rows:
        raise SystemExit(f"{count} answers for {rows} rows")


def environment(url: str | None) -> dict[str, str]:
    """The environment of programs that call the mock, or without its URL, that of programs which call no provider."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("COG_", "LLM_", "OPENAI_"))}
    given |= {"HOME": "/nonexistent", "COG_DETECT_OLLAMA": "off", "OPENAI_API_KEY": "none"}
    given |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0", "DAFT_ANALYTICS_ENABLED": "0"}
    return given | ({} if url is None else {"OPENAI_BASE_URL": f"{url}/v1"})


@contextmanager
def mock(program: str, usage: tuple[int, int]) -> Iterator[tuple[int, str]]:
    """A provider that sends the same answer to every request at once, in one piece, and stores no request."""
    script = {"text": json.dumps(answer()), "chunk_size": 1 << 20, "model": MODEL, "usage": usage}
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(script))
        process.stdin.close()
        yield process.pid, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


@contextmanager
def server(cog: str, url: str) -> Iterator[tuple[int, str, float]]:
    """`cog serve` without a limit of the rate, its URL, and the seconds until it is ready."""
    command = [cog, "serve", "--port", "0", "--provider", "openai", "--model", MODEL]
    command += ["--requests-per-second", "0", "--max-streams-per-client", str(10 * CONCURRENCY)]
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment(url), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        while " at http://" not in (line := process.stderr.readline()):
            if not line:
                raise SystemExit("cog serve ended")
        address = line.split(" at ")[1].split()[0]
        urllib.request.urlopen(f"{address}/ready").close()
        yield process.pid, address, time.perf_counter() - began
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
