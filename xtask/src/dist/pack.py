"""Packs a program under both of its names, and other files: pack.py ARCHIVE ROOT TIME PROGRAM FILE...

NAME=DIRECTORY packs the files below a directory, under this name. Equal files give equal archives: TIME, in seconds since 1970, is
the time of each file.
"""

import gzip
import sys
import tarfile
import time
import zipfile
from pathlib import Path


def named(file: str) -> list[tuple[str, Path]]:
    """Return the files that an argument names, each with its name in the archive."""
    name, _, directory = file.partition("=")
    if not directory:
        return [(Path(file).name, Path(file))]
    below = sorted(path for path in Path(directory).rglob("*") if path.is_file())
    return [(f"{name}/{path.relative_to(directory).as_posix()}", path) for path in below]


def tar(archive: Path, root: str, moment: int, program: Path, files: list[tuple[str, Path]]) -> None:
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=moment, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as out,
    ):
        for name, path in [(program.name, program), *files]:
            entry = tarfile.TarInfo(f"{root}/{name}")
            entry.size, entry.mtime = path.stat().st_size, moment
            entry.mode = 0o755 if path is program else 0o644
            with path.open("rb") as content:
                out.addfile(entry, content)
        second = tarfile.TarInfo(f"{root}/cogn")
        second.type, second.linkname = tarfile.LNKTYPE, f"{root}/{program.name}"
        second.mode, second.mtime = 0o755, moment
        out.addfile(second)


def zip_(archive: Path, root: str, moment: int, program: Path, files: list[tuple[str, Path]]) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for name, path in [(program.name, program), ("cogn.exe", program), *files]:
            entry = zipfile.ZipInfo(f"{root}/{name}", time.gmtime(moment)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, path.read_bytes())


archive, root, moment, program, *files = sys.argv[1:]
pack = zip_ if archive.endswith(".zip") else tar
pack(Path(archive), root, int(moment), Path(program), [entry for file in files for entry in named(file)])
