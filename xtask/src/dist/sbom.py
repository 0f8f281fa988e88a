"""Prints what is part of a program as CycloneDX 1.6 (SBOM): sbom.py TARGET PACKAGE VERSION TIME METADATA.

METADATA is a file with what `cargo metadata` prints, and TIME the seconds since 1970 of the commit: equal sources give equal files.
"""

import json
import sys
import tomllib
import uuid
from datetime import UTC, datetime
from pathlib import Path

from notices import compiled


def reference(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version']}"


def checksums(lock: Path) -> dict[tuple[str, str], str]:
    packages = tomllib.loads(lock.read_text("utf-8"))["package"]
    return {(one["name"], one["version"]): one["checksum"] for one in packages if "checksum" in one}


def component(package: dict, checksum: str | None) -> dict:
    entry = {
        "type": "library",
        "bom-ref": reference(package),
        "name": package["name"],
        "version": package["version"],
        "purl": reference(package),
    }
    if package["license"]:
        # Old manifests separate licenses with a slash, which is no SPDX expression.
        expression = " OR ".join(part.strip() for part in package["license"].split("/"))
        entry["licenses"] = [{"expression": expression}]
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        entry["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return entry


def main(target: str, package: str, version: str, time: str, metadata: str) -> None:
    about = json.loads(Path(metadata).read_text("utf-8"))
    packages = {one["id"]: one for one in compiled(about, package)}
    sums = checksums(Path("Cargo.lock"))
    components = [component(one, sums.get((one["name"], one["version"]))) for one in packages.values()]
    (program,) = (one for one in components if one["name"] == package)
    components.remove(program)
    program["type"] = "application"
    dependencies = []
    for node in about["resolve"]["nodes"]:
        if node["id"] in packages:
            used = {reference(packages[one["pkg"]]) for one in node["deps"] if one["pkg"] in packages}
            dependencies.append({"ref": reference(packages[node["id"]]), "dependsOn": sorted(used)})
    if "linux" in target:
        license = [{"license": {"id": "LGPL-2.1-or-later"}}]
        components.append({"type": "library", "bom-ref": "glibc", "name": "glibc", "licenses": license})
        dependencies.append({"ref": "glibc", "dependsOn": []})
        next(one for one in dependencies if one["ref"] == program["bom-ref"])["dependsOn"].append("glibc")
    bom = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{target} {package} {version} {time}").urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(int(time), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": program,
            "properties": [{"name": "cog:target", "value": target}],
        },
        "components": components,
        "dependencies": sorted(dependencies, key=lambda one: one["ref"]),
    }
    print(json.dumps(bom, indent=1, ensure_ascii=False))


sys.stdout.reconfigure(encoding="utf-8", newline="\n")
main(*sys.argv[1:])
