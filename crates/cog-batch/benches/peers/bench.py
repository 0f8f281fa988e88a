"""Runs the same rows with ``cog batch`` and with other programs, then compares a plan with a run. ``cargo xtask bench batch``.

    bench.py MOCK COG [ROWS [PLANNED_ROWS]]

Each contender sends the rows to the same mock, which answers at once, and every answer is checked. What counts is the ratios of
one run. A few rows run first: what they take is the start-up, and the figures are those of the other rows. The processor time
has all processes of the contender and of cog, without the mock. The best round of each counts.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import meter
import plan
import workload
from workload import CONCURRENCY, MODEL, MODULE

WORKER = str(Path(__file__).with_name("worker.py"))
ROWS, PLANNED_ROWS = 10_000, 1_000_000
#: One process for each row takes long, so it has a part of the rows.
ROWS_OF_XARGS = 1 / 20
ROUNDS = 3
#: What runs, as `cog` has it among its arguments.
PROVIDER = ["--provider", "openai", "--model", MODEL]

#: Runs the rows of a file into an empty directory, and returns the seconds and the processor time.
Round = Callable[[Path, Path], tuple[float, float]]


@dataclass
class Result:
    """The seconds of a round, those of the processor, and those of the processor of the mock."""

    wall: float
    spent: float
    mock: float


@dataclass
class Bench:
    """What all contenders share."""

    cog: str
    url: str
    mock: int
    directory: Path

    def rows(self, count: int) -> Path:
        path = self.directory / f"{count}.jsonl"
        if not path.exists():
            workload.write_rows(path, count)
        return path

    def once(self, run: Round, count: int) -> Result:
        out = self.directory / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        of_mock = meter.Meter(self.mock)
        wall, spent = run(self.rows(count), out)
        result = Result(wall, spent, of_mock.stop())
        workload.check(answers(out), count)
        return result

    def best(self, run: Round, count: int) -> Result:
        rounds = [self.once(run, count) for _ in range(ROUNDS)]
        return Result(*(min(getattr(result, name) for result in rounds) for name in ("wall", "spent", "mock")))

    def row(self, run: Round, count: int) -> tuple[Result, float]:
        """What a row takes after the first ones, and the seconds that these take."""
        self.once(run, CONCURRENCY)  # warms up
        few, all_rows = self.best(run, CONCURRENCY), self.best(run, CONCURRENCY + count)
        each = ((getattr(all_rows, name) - getattr(few, name)) / count for name in ("wall", "spent", "mock"))
        return Result(*each), few.wall

    def batch(self, rows: Path, out: Path) -> tuple[float, float]:
        command = [self.cog, "batch", MODULE, str(rows), "-o", str(out / "answers.jsonl"), *PROVIDER]
        return meter.run([*command, "--concurrency", str(CONCURRENCY)], workload.environment(self.url))

    def xargs(self, rows: Path, out: Path) -> tuple[float, float]:
        command = ["xargs", "-d", "\\n", "-P", "2", "-n", "1", self.cog, "run", MODULE, *PROVIDER, "--input-json"]
        return meter.run(command, workload.environment(self.url), stdin=str(rows), stdout=str(out / "answers.jsonl"))


def answers(out: Path) -> Iterator[dict[str, Any]]:
    """The envelopes that a contender has written, as JSON or as texts in a column. Two of `xargs` may be in one line."""
    decoder = json.JSONDecoder()
    for path in out.rglob("*.json*"):
        text, place = path.read_text().strip(), 0
        while place < len(text):
            row, place = decoder.raw_decode(text, place)
            yield json.loads(row["answer"]) if "answer" in row else row
            while text[place : place + 1].isspace():
                place += 1


@contextmanager
def program(name: str, url: str, body: str, *others: int) -> Iterator[tuple[Round, float]]:
    """A Python program, with the programs that it calls; and the seconds until it is ready."""
    began = time.perf_counter()
    command = [sys.executable, WORKER, name, url, body]
    errors = tempfile.TemporaryFile("w+")
    process = subprocess.Popen(
        command, env=workload.environment(None), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def wait() -> None:
        if not stdout.readline():
            errors.seek(0)
            raise SystemExit(f"{errors.read()}\n{name} ended")

    def run(rows: Path, out: Path) -> tuple[float, float]:
        spent = meter.Meter(process.pid, *others)
        began = time.perf_counter()
        print(json.dumps([str(rows), str(out)]), file=stdin, flush=True)
        wait()
        return time.perf_counter() - began, spent.stop()

    try:
        wait()
        yield run, time.perf_counter() - began
    finally:
        stdin.close()  # it ends, with the processes that it has started
        try:
            process.wait(60)
        finally:
            process.kill()
            errors.close()


def compare(bench: Bench, rows: int, body: str) -> None:
    """Prints the table."""
    few = max(CONCURRENCY, int(rows * ROWS_OF_XARGS))
    head = f"{'rows/s':>8} {'ratio':>6} {'processor µs':>13} {'ratio':>6} {'mock µs':>8} {'start-up s':>11}"
    print(f"{f'{rows} rows, {CONCURRENCY} at the same time':<46} {head}", flush=True)
    reference, start_up = bench.row(bench.batch, rows)

    def show(what: str, found: Result, start_up: float) -> None:
        wall, spent = reference.wall / found.wall, found.spent / reference.spent
        rates = f"{1 / found.wall:8.0f} {wall:6.2f} {found.spent * 1e6:13.0f} {spent:6.1f} {found.mock * 1e6:8.0f}"
        print(f"{what:<46} {rates} {start_up:11.2f}", flush=True)

    def measure(what: str, run: Round, count: int, ready: float = 0) -> None:
        found, start_up = bench.row(run, count)
        show(what, found, ready + start_up)

    show("cog batch", reference, start_up)
    measure(f"xargs -P 2 -n 1 cog run, {few} rows", bench.xargs, few)
    with program("asyncio", bench.url, body) as (run, ready):
        measure("Python asyncio with the SDK of the vendor", run, rows, ready)
    with workload.server(bench.cog, bench.url) as (pid, url, listening):
        for name, what in (("ray", "Ray Data, calls to cog serve"), ("daft", "Daft, calls to cog serve")):
            with program(name, url, body, pid) as (run, ready):
                measure(what, run, rows, listening + ready)


def main() -> None:
    program, cog, *counts = sys.argv[1:]
    rows, planned = [int(count) for count in counts] + [ROWS, PLANNED_ROWS][len(counts) :]
    with tempfile.TemporaryDirectory(prefix="cog-") as name:
        directory = Path(name)
        sample = directory / "sample.jsonl"
        workload.write_rows(sample, plan.SAMPLE)
        usage = plan.count(cog, sample)
        with workload.mock(program, usage) as (pid, url):
            with sample.open() as lines:
                body = json.dumps(plan.rendered(cog, lines.readline(), url)["request"]["body"])
            compare(Bench(cog, url, pid, directory), rows, body)
            plan.compare(cog, url, directory, planned, usage)


if __name__ == "__main__":
    main()
