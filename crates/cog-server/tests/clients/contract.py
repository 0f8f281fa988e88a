"""`schemathesis` against the server's own OpenAPI document: every operation, so many examples of what fits the document
and of what does not, and chains of them.

Started by `cargo xtask test`, which says in COG where the program is.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from servers import process

EXAMPLES = "300"


def main():
    here = pathlib.Path(__file__).parent
    # Many requests of one client in a moment are meant here, and no model is asked.
    command = [os.environ["COG"], "serve", "--port", "0", "--provider", "offline", "--requests-per-second", "0"]
    with tempfile.TemporaryDirectory() as directory:
        environment = {"PATH": os.environ["PATH"], "HOME": directory}
        stderr = subprocess.PIPE
        with process(command, r"http://127\.0\.0\.1:\d+", stderr=stderr, cwd=directory, env=environment) as address:
            tool = [str(pathlib.Path(sys.executable).with_name("st")), "--config-file", str(here / "schemathesis.toml")]
            run = [*tool, "run", f"{address}/openapi.json", "--max-examples", EXAMPLES]
            hooks = os.environ | {"SCHEMATHESIS_HOOKS": str(here / "hooks.py")}
            return subprocess.run(run, cwd=directory, env=hooks).returncode


if __name__ == "__main__":
    sys.exit(main())
