"""The processor time of programs while they run."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

#: Seconds between two readings. The last moments of a process that ends between them are missing.
INTERVAL = 0.1
TICKS = os.sysconf("SC_CLK_TCK")


def _processes() -> dict[int, tuple[int, str, int]]:
    """The parent, the start and the clock ticks of each process."""
    found = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                fields = (directory / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended
            found[int(directory.name)] = (int(fields[1]), fields[19], int(fields[11]) + int(fields[12]))
    return found


def _readings(roots: set[int]) -> dict[tuple[int, str], int]:
    """The clock ticks of these processes and of those that they have started."""
    processes = _processes()

    def belongs(pid: int) -> bool:
        while pid not in roots:
            if pid not in processes:
                return False
            pid = processes[pid][0]
        return True

    return {(pid, start): ticks for pid, (_, start, ticks) in processes.items() if belongs(pid)}


class Meter:
    """Measures processes, and those that they start, until it is stopped."""

    def __init__(self, *roots: int) -> None:
        self.roots = set(roots)
        self.before = _readings(self.roots)
        self.last = dict(self.before)
        self.is_stopped = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        while not self.is_stopped.wait(INTERVAL):
            self.last.update(_readings(self.roots))

    def stop(self) -> float:
        """The seconds of processor time."""
        self.is_stopped.set()
        self.thread.join()
        self.last.update(_readings(self.roots))
        return sum(ticks - self.before.get(process, 0) for process, ticks in self.last.items()) / TICKS


def run(command: list[str], environment: dict[str, str], stdin: str | None = None, stdout: str | None = None) -> tuple[float, float]:
    """Runs a program, and returns the seconds and the processor time, also of the programs that it has waited for."""
    open_files = [(os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    open_files.append((os.POSIX_SPAWN_OPEN, 0, stdin or os.devnull, os.O_RDONLY, 0))
    open_files.append((os.POSIX_SPAWN_OPEN, 1, stdout or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600))
    began = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, environment, file_actions=open_files)
    _, status, spent = os.wait4(pid, 0)
    elapsed = time.perf_counter() - began
    if status != 0:
        raise SystemExit(f"{' '.join(command)[:200]} failed: {os.waitstatus_to_exitcode(status)}")
    return elapsed, spent.ru_utime + spent.ru_stime
