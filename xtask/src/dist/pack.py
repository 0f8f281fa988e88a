"""Packs a program under both of its names, and other files: pack.py ARCHIVE ROOT TIME PROGRAM FILE...

Equal files give equal archives: TIME, in seconds since 1970, is the time of each file.
"""

import gzip
import sys
import tarfile
import time
import zipfile
from pathlib import Path


def tar(archive: Path, root: str, moment: int, program: Path, files: list[Path]) -> None:
    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", mtime=moment, fileobj=raw) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as out,
    ):
        for path in [program, *files]:
            entry = tarfile.TarInfo(f"{root}/{path.name}")
            entry.size, entry.mtime = path.stat().st_size, moment
            entry.mode = 0o755 if path is program else 0o644
            with path.open("rb") as content:
                out.addfile(entry, content)
        second = tarfile.TarInfo(f"{root}/cogn")
        second.type, second.linkname = tarfile.LNKTYPE, f"{root}/{program.name}"
        second.mode, second.mtime = 0o755, moment
        out.addfile(second)


def zip_(archive: Path, root: str, moment: int, program: Path, files: list[Path]) -> None:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        names = [(path.name, path) for path in [program, *files]]
        for name, path in [*names, ("cogn.exe", program)]:
            entry = zipfile.ZipInfo(f"{root}/{name}", time.gmtime(moment)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, path.read_bytes())


archive, root, moment, program, *files = sys.argv[1:]
pack = zip_ if archive.endswith(".zip") else tar
pack(Path(archive), root, int(moment), Path(program), [Path(file) for file in files])
