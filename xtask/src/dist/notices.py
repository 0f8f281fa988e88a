"""Prints the licences of everything that is part of a program: notices.py TARGET PACKAGE METADATA.

METADATA is a file with what `cargo metadata` prints.

Files of crates are named LICENSE, LICENCE, COPYING, NOTICE or UNLICENSE, with any ending. Equal texts are printed once.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

NAMES = ("license", "licence", "copying", "notice", "unlicense")
GLIBC = """The C library of this program is the GNU C Library, under the GNU Lesser General Public License, version 2.1 or later.
Its source is published by the GNU project and by the Linux distribution that built this program. With the source of
this program, anyone can link it with another version of the library.
"""


def reachable(metadata: dict, package: str) -> list[dict]:
    """The packages from elsewhere that are compiled into a package."""
    return [one for one in compiled(metadata, package) if one["source"]]


def compiled(metadata: dict, package: str) -> list[dict]:
    """The packages that are compiled into a package, with itself: no build scripts, no macros, no tests."""
    packages = {one["id"]: one for one in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [key for key, one in packages.items() if one["name"] == package]
    seen = set(waiting)
    while waiting:
        for dependency in nodes[waiting.pop()]["deps"]:
            is_inside = any(kind["kind"] is None for kind in dependency["dep_kinds"])
            macro = any("proc-macro" in target["kind"] for target in packages[dependency["pkg"]]["targets"])
            if is_inside and not macro and dependency["pkg"] not in seen:
                seen.add(dependency["pkg"])
                waiting.append(dependency["pkg"])
    return sorted((packages[key] for key in seen), key=lambda one: (one["name"], one["version"]))


def texts(package: dict) -> list[str]:
    files = sorted(Path(package["manifest_path"]).parent.iterdir())
    found = [file for file in files if file.is_file() and file.name.lower().startswith(NAMES)]
    return [file.read_text("utf-8", "replace").strip() for file in found]


def main(target: str, package: str, metadata: str) -> None:
    if "linux" in target:
        print(GLIBC)
    packages = reachable(json.loads(Path(metadata).read_text("utf-8")), package)
    users = defaultdict(list)
    print("The following libraries are part of this program.\n")
    for one in packages:
        name = f"{one['name']} {one['version']}"
        print(f"  {name}: {one['license'] or 'see below'}")
        for text in texts(one):
            users[text].append(name)
    for text, names in users.items():
        print(f"\n{'-' * 80}\n{', '.join(names)}\n\n{text}")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    main(*sys.argv[1:])
