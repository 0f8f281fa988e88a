"""Batches whose results are in a file, and that continue where they were interrupted."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

from ._cognitive import Call, Result
from ._map import Progress, _length, run_rows

#: The seconds after which new results are certainly on the disk.
_SYNC = 1.0


@dataclasses.dataclass(frozen=True)
class BatchReport:
    """What a batch did.

    Attributes:
        out: The file with a line for each row, in their order.
        ok: The rows that succeeded, also in former runs of this batch.
        failed: The rows that failed.
        ran: The rows that ran now; the others had results.
        stopped: Why it stopped before its end; None if every row has a result. The same call continues it.
    """

    out: pathlib.Path
    ok: int
    failed: int
    ran: int
    stopped: str | None = None


def run_batch(
    rows: Iterable[Any],
    out: str | os.PathLike[str],
    *,
    identity: Mapping[str, Any],
    concurrency: int,
    start: Callable[[Any, Callable[[Any], object]], Call],
    progress: bool,
    retry_failed: bool,
) -> BatchReport:
    """Runs the rows that have no result yet, and writes the results of all. ``identity`` is what makes it the same batch.

    Raises:
        ValueError: The journal belongs to another batch.
        BlockingIOError: Another process uses the journal.
    """
    path = pathlib.Path(out)
    with _Journal(path.with_name(f"{path.name}.journal"), identity) as journal, Progress(progress, _length(rows)) as bar:
        keys: list[str] = []
        ran = 0
        stopped: str | None = None

        def missing() -> Iterator[tuple[int, Any]]:
            for index, row in enumerate(rows):
                keys.append(_key(row))
                former = journal.result(index, keys[index])
                if former is None or (retry_failed and not former.ok):
                    yield index, row
                else:
                    bar.add(former)

        with contextlib.closing(run_rows(missing(), concurrency, start)) as results:  # type: ignore[type-var]
            for index, result in results:
                if (stopped := _spent(result)) is not None:
                    break
                journal.add(index, keys[index], result)
                ran += 1
                bar.add(result)
        if stopped is None:
            ok = journal.write(path, len(keys))
            return BatchReport(path, ok, len(keys) - ok, ran)
        return BatchReport(path, *journal.counts(), ran, stopped)


def _spent(result: Result) -> str | None:
    """Returns why no further row can run: a budget of several runs is spent."""
    error = result.error
    if error is None or error.code != "E4002" or error.details.get("reason") not in ("budget", "unknown_price"):
        return None
    return None if error.details.get("budget") == "this run" else error.message


class _Journal:
    """A file with the result of each row, in the order in which they arrived. Its first line says which batch it is."""

    def __init__(self, path: pathlib.Path, identity: Mapping[str, Any]) -> None:
        self._path = path
        self._file: IO[bytes] = open(path, "a+b")  # noqa: SIM115
        self._places: dict[int, tuple[str, int, bool]] = {}
        self._synced = time.monotonic()
        try:
            self._lock()
            self._read(identity)
        except BaseException:
            self._file.close()
            raise

    def result(self, index: int, key: str) -> Result | None:
        """Returns the result of a row, unless the row was another one then."""
        known, place, _ = self._places.get(index, ("", 0, False))
        return self._at(place) if known == key and key else None

    def add(self, index: int, key: str, result: Result) -> None:
        """Adds a result."""
        self._file.seek(0, os.SEEK_END)
        place = self._file.tell()
        line = {"row": index, "key": key, "result": result.to_dict()}
        self._file.write(json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n")
        self._places[index] = (key, place, result.ok)
        if time.monotonic() - self._synced >= _SYNC:
            self._sync()

    def counts(self) -> tuple[int, int]:
        """Returns how many rows succeeded and failed."""
        ok = sum(is_ok for _, _, is_ok in self._places.values())
        return ok, len(self._places) - ok

    def write(self, out: pathlib.Path, length: int) -> int:
        """Writes the results in the order of the rows, as ``cog batch`` does. Returns how many succeeded."""
        self._sync()
        part = out.with_name(f"{out.name}.part")
        ok = 0
        with open(part, "w", encoding="utf-8") as file:
            for index in range(length):
                envelope = self._envelope(self._places[index][1])
                ok += bool(envelope.get("ok"))
                file.write(json.dumps(_line(index, envelope), ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, out)
        return ok

    def _at(self, place: int) -> Result:
        return Result(json.dumps(self._envelope(place)))

    def _envelope(self, place: int) -> dict[str, Any]:
        self._file.seek(place)
        envelope: dict[str, Any] = json.loads(self._file.readline())["result"]
        return envelope

    def _read(self, identity: Mapping[str, Any]) -> None:
        self._file.seek(0)
        head = json.dumps({"batch": identity}, sort_keys=True, default=str).encode() + b"\n"
        first = self._file.readline()
        if not first.endswith(b"\n"):
            # Nothing was stored: the program ended while it wrote the first line.
            self._file.truncate(0)
            self._file.write(head)
            self._sync()
            return
        if first != head:
            former = json.loads(first).get("batch", {})
            changed = [name for name in identity if former.get(name) != json.loads(head)["batch"][name]]
            raise ValueError(
                f"{self._path}: the journal belongs to another batch ({', '.join(changed)} changed); delete it, or use another out"
            )
        place = self._file.tell()
        for line in self._file:
            if not line.endswith(b"\n"):
                self._file.truncate(place)  # the program ended while it wrote this one
                break
            stored = json.loads(line)
            self._places[stored["row"]] = (stored["key"], place, bool(stored["result"].get("ok")))
            place += len(line)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def _lock(self) -> None:
        """Lets no other process use the journal."""
        try:
            import fcntl
        except ImportError:
            return  # Windows
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(f"another batch uses {self._path}") from error

    def __enter__(self) -> _Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._sync()
        self._file.close()


def _line(index: int, envelope: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a line of the results: with the same keys for each row."""
    members = ("ok", "meta", "data", "error", "partial_data")
    line: dict[str, Any] = {"row": index, **{name: envelope.get(name) for name in members}}
    line["_warnings"] = envelope.get("_warnings") or []
    return {**line, "_emitted_context": envelope.get("_emitted_context"), "_handoff": envelope.get("_handoff")}


def _key(row: Any) -> str:
    """Returns a hash of an input; nothing for one that cannot be recognized later."""
    try:
        text = json.dumps(row, default=_shown, sort_keys=True)
    except (TypeError, ValueError):
        return ""
    return "" if " at 0x" in text else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _shown(value: Any) -> Any:
    if hasattr(value, "__pydantic_serializer__"):
        from ._pydantic import form

        return form(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return hashlib.sha256(value).hexdigest()
    if hasattr(value, "tobytes"):
        return hashlib.sha256(value.tobytes()).hexdigest()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return repr(value)
