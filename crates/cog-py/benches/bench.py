"""Measures the package, beside the Rust call and beside packages that do the same extraction. ``cargo xtask bench python``.

    bench.py MOCK REFERENCE WHEELS

Every figure is compared with a reference of the same run. The contenders take turns, and the best round of each counts.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path

WORKER = str(Path(__file__).with_name("worker.py"))
PEERS = ("instructor", "pydantic-ai", "baml-py")
ROUNDS = 10
#: The number of events of a streamed reply, and the bytes of each.
EVENTS, CHUNK = 134, 16


def reply() -> str:
    """An answer of the module `code-reviewer` with as many bytes as the events of a stream need."""
    answer = {
        "ok": True,
        "meta": {"confidence": 0.9, "risk": "none", "explain": "Nothing to report."},
        "data": {"verdict": "approve", "issues": [], "rationale": ""},
    }
    missing = EVENTS * CHUNK - len(json.dumps(answer))
    answer["data"] = {"verdict": "approve", "issues": [], "rationale": ("It is short. " * missing)[:missing]}
    return json.dumps(answer)


class Program:
    """A program that reads lines and answers each with a line."""

    def __init__(self, command: list[str], url: str | None = None) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("COG_", "LLM_"))}
        environment |= {"HOME": "/nonexistent", "COG_DETECT_OLLAMA": "off", "OPENAI_API_KEY": "none"}
        if url is not None:
            environment["OPENAI_BASE_URL"] = f"{url}/v1"
        self.name = command[-1]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self.close)

    def read(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended")
        return line

    def measure(self, name: str, count: int) -> tuple[float, ...]:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name} {count}\n")
        self.process.stdin.flush()
        return tuple(map(float, self.read().split()))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def memory(self) -> float:
        """The resident memory, in MB."""
        shown = subprocess.run(["ps", "-o", "rss=", "-p", str(self.process.pid)], capture_output=True, check=True)
        return int(shown.stdout) / 1000


def worker(name: str, url: str) -> Program:
    program = Program([sys.executable, WORKER, name], url)
    program.read()
    return program


def mock(program: str, delay: int = 0, chunk: int = EVENTS * CHUNK) -> tuple[Program, str]:
    """A server that sends the same reply to every request."""
    server = Program([program])
    assert server.process.stdin is not None
    server.process.stdin.write(json.dumps({"text": reply(), "chunk_size": chunk, "delay_ms": delay}))
    server.process.stdin.close()
    return server, server.read().strip()


class Table:
    """The figures with their bounds."""

    def __init__(self) -> None:
        self.missed: list[str] = []

    def add(self, what: str, found: float, most: float, note: str) -> None:
        is_met = found <= most
        if not is_met:
            self.missed.append(what)
        print(f"{what:<46} {found:8.2f}  (at most {most:g}: {'met' if is_met else 'MISSED'}; {note})", flush=True)


def best(programs: list[Program], name: str, count: int) -> list[float]:
    """The least seconds of one call for each program."""
    rounds = [[program.measure(name, count)[0] for program in programs] for _ in range(ROUNDS)]
    return [min(times) / count for times in zip(*rounds)]


def compared(table: Table, urls: dict[str, str], reference: str) -> None:
    for name, what, count, most in (
        ("execute", "a call", 200, 1.3),
        ("stream", f"a stream of {EVENTS} events", 50, 2.0),
    ):
        programs = [worker("cognitive", urls[name]), Program([reference], urls[name])]
        best(programs, name, count)  # warms up
        python, native = best(programs, name, count)
        table.add(f"{what} ÷ the Rust call", python / native, most, f"{python * 1e6:.0f} µs, {native * 1e6:.0f} µs")
        for program in programs:
            program.close()


def typed(table: Table, url: str) -> None:
    """A task, and an answer as a model of Pydantic."""
    program = worker("cognitive", url)
    for one, other, what, count, most in (
        ("task", "execute_task", "a call of a task ÷ execute", 200, 1.15),
        ("as_type", "validate", "as_type ÷ model_validate_json", 2_000, 2.0),
    ):
        rounds = [[program.measure(name, count)[0] / count for name in (one, other)] for _ in range(ROUNDS)]
        ours, reference = (min(times) for times in zip(*rounds))
        table.add(what, ours / reference, most, f"{ours * 1e6:.1f} µs, {reference * 1e6:.1f} µs")
    program.close()


def memory(table: Table, url: str) -> None:
    ours = worker("cognitive", url)
    ours.measure("execute", 2_000)
    before = ours.memory()
    ours.measure("execute", 10_000)
    table.add("MB that 10,000 calls leave", ours.memory() - before, 5, f"{before:.0f} MB before")
    ours.close()


def concurrency(table: Table, url: str, reference: str) -> None:
    ours, rust = worker("cognitive", url), Program([reference], url)
    times = [[program.measure("gather", 1_000)[0] for program in (ours, rust)] for _ in range(ROUNDS)]
    python, native = (min(column) for column in zip(*times))
    table.add("s for 1,000 concurrent runs of 50 ms", python, 0.25, f"Rust {native:.2f} s, ratio {python / native:.2f}")
    ours.close()
    rust.close()


def start(table: Table) -> None:
    def once(program: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", program], check=True)
        return time.perf_counter() - began

    rounds = [(once("import cognitive"), once("pass")) for _ in range(3 * ROUNDS)]
    loaded = "import cognitive, sys; sys.exit('pydantic' in sys.modules)"
    subprocess.run([sys.executable, "-c", loaded], check=True)
    ours, bare = (sorted(times)[len(times) // 2] * 1000 for times in zip(*rounds))
    table.add("ms of `import cognitive`", ours - bare, 30, f"{ours:.1f} ms, bare interpreter {bare:.1f} ms")


def peers(url: str) -> None:
    """Prints the calls a second and the processor time of a call for each package."""
    names = ("cognitive", *PEERS)
    programs = [worker(name, url) for name in names]
    for program in programs:
        program.measure("execute", 50)
    rounds = [[program.measure("execute", 100) for program in programs] for _ in range(ROUNDS)]
    print(f"\n{'the same extraction':<46} {'calls/s':>8} {'ms of processor':>16} {'ratio':>6}")
    reference = min(times[0][1] for times in rounds)
    for index, name in enumerate(names):
        wall, spent = (min(times[index][place] for times in rounds) for place in (0, 1))
        print(f"{name:<46} {100 / wall:8.0f} {spent * 10:16.2f} {spent / reference:6.1f}", flush=True)
        programs[index].close()


def originals() -> None:
    """Prints the lines of five programs, and those of the same ones on the migration page."""
    page = (Path(__file__).parents[3] / "docs/python-migration.md").read_text()
    programs = re.findall(r"\n## (.+?)\n.*?```python\n(.*?)```", page, re.DOTALL)
    names = ("receipt", "tickets", "page", "agent", "history")
    print()
    for name, (heading, ours) in zip(names, programs, strict=True):
        theirs = Path(__file__).with_name("originals").joinpath(f"{name}.py").read_text()
        print(f"{heading:<60} {lines(theirs):3} lines in {name}.py, {lines(ours):3} with cognitive", flush=True)


def lines(program: str) -> int:
    return sum(bool(line.strip()) for line in program.splitlines())


def main() -> None:
    program, reference, wheels = sys.argv[1:]
    (wheel,) = Path(wheels).glob("*.whl")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    table = Table()
    _, url = mock(program)
    _, streaming = mock(program, chunk=CHUNK)
    _, slow = mock(program, delay=50)
    compared(table, {"execute": url, "stream": streaming}, reference)
    typed(table, url)
    memory(table, url)
    concurrency(table, slow, reference)
    start(table)
    table.add("MB of the wheel", wheel.stat().st_size / 1e6, 15, wheel.name)
    peers(url)
    originals()
    if table.missed:
        raise SystemExit(f"missed: {', '.join(table.missed)}")


if __name__ == "__main__":
    main()
