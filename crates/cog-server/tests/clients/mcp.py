"""MCP clients against a real server: the conformance suite for both revisions and for skills, the TypeScript SDK, and
the Inspector.

Started by `cargo xtask clients`, which installs what it needs and reports in COG, COG_MOCK and NODE_PATH where it is. The Python
SDK is the client of the tests of `mcp_serve` in crates/cog/tests/tools.
"""

import json
import os
import pathlib
import subprocess
import tempfile

from servers import serve

PACKAGES = pathlib.Path(os.environ["NODE_PATH"])
NODE = str(PACKAGES / "node" / "bin" / "node")
HERE = pathlib.Path(__file__).parent

# The scenarios that a server with any tools can pass. The others need tools whose names no module can have, such as
# `test_simple_text`, or prompts, resources, completion, sampling, logging and tasks, which are not offered.
CURRENT = "@modelcontextprotocol/conformance"
SUITES = {
    CURRENT: {
        "server-stateless": 21,
        "tools-list": 4,
        "server-sse-multiple-streams": 1,
        "sep-2164-resource-not-found": 2,
        "dns-rebinding-protection": 2,
        "caching": 4,
        "input-required-result-missing-input-response": 1,
        "input-required-result-unsupported-methods": 2,
        "input-required-result-ignore-extra-params": 1,
        "input-required-result-validate-input": 3,
        "http-header-validation": 14,
        "sep-2640-skills-enumeration": 30,
        "sep-2640-skills-manifest": 4,
    },
    "conformance-2025-11-25": {
        "server-initialize": 1,
        "ping": 1,
        "tools-list": 1,
        "server-sse-multiple-streams": 0,
        "dns-rebinding-protection": 2,
    },
}
# Failures that are about what is not offered.
NOT_OFFERED = ("Not testable: ", "prompts/list returned", "resources/list returned", "resources/templates/list returned")


def checks(suite, scenario, url):
    """The checks of a scenario."""
    program = PACKAGES / suite / "dist" / "index.js"
    with tempfile.TemporaryDirectory() as results:
        command = [NODE, str(program), "server", "--url", url, "--scenario", scenario, "-o", results]
        command += ["--spec-version", "2026-07-28"] if suite == CURRENT else []
        # The suite skips the scenarios of extensions otherwise.
        command += ["--force"] if scenario.startswith("sep-2640") else []
        subprocess.run(command, capture_output=True, timeout=120)
        (found,) = pathlib.Path(results).rglob("checks.json")
        return json.loads(found.read_text())


def conformance(url):
    for suite, scenarios in SUITES.items():
        for scenario, expected in scenarios.items():
            found = checks(suite, scenario, url)
            failed = [check for check in found if check["status"] == "FAILURE"]
            failed = [check for check in failed if not check["errorMessage"].startswith(NOT_OFFERED)]
            assert not failed, (scenario, failed)
            passed = sum(check["status"] == "SUCCESS" for check in found)
            assert passed >= expected, (scenario, passed, found)
        print(f"  {suite}: {len(scenarios)} scenarios", flush=True)


def typescript(target):
    subprocess.run([NODE, str(HERE / "mcp.cjs"), target], check=True, timeout=120)
    print(f"  TypeScript SDK: {target}", flush=True)


def inspector(url):
    program = PACKAGES / ".bin" / "inspector"
    call = ["--method", "tools/call", "--tool-name", "m", "--tool-arg", "query=why?"]
    command = [NODE, str(program.resolve()), "--cli", url, "--transport", "http", *call]
    called = subprocess.run(command, check=True, capture_output=True, timeout=120)
    result = json.loads(called.stdout)
    assert result["structuredContent"]["ok"] is True, result
    print("  Inspector", flush=True)


if __name__ == "__main__":
    with serve("--mcp-skills") as address:
        conformance(address + "/mcp")
        typescript(address + "/mcp")
        inspector(address + "/mcp")
    typescript(os.environ["COG"])
