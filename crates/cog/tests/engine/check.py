"""Runs the shipped modules on a real engine, llama.cpp, and counts the answers that are accepted.

A model with random weights writes anything that the engine's grammar allows. So an answer that is rejected shows a
requirement that the request does not express or the engine does not enforce.

Usage: COG=…/cog python check.py MODEL SEEDS [MINIMUM [FORM…]]. MODEL is `random`, `gemma` or a GGUF file; each module answers once for
each seed in each form, by default in the one that the runtime chooses. With MINIMUM the program fails if fewer answers of a module
are accepted at the first attempt.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import server

MODULES = pathlib.Path(__file__).parents[4] / "modules"
# The modules whose input is text.
NAMES = ["task-prioritizer", "code-reviewer", "code-simplifier", "api-designer"]
COLUMNS = ["answers", "first", "repaired", "gated", "retried", "failed"]
# The codes with which a gate refuses an answer that conforms to its contract: too little confidence, or a constraint.
GATES = {"E2001", "E3006"}


def main() -> int:
    model, seeds = sys.argv[1], int(sys.argv[2])
    minimum = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    forms = sys.argv[4:] or ["auto"]
    started = time.monotonic()
    with server.running(model) as url:
        results = {
            f"{name} {form}": [run(url, name, form, seed) for seed in range(seeds)] for form in forms for name in NAMES
        }
    report(results)
    print(f"{model}: {seeds} seeds for each module and form in {time.monotonic() - started:.0f} s")
    missed = [name for name, envelopes in results.items() if count(envelopes)["first"] < minimum]
    for name in missed:
        print(f"error: {name}: fewer than {minimum} of {seeds} answers were accepted at the first attempt")
    return 1 if missed else 0


def run(url: str, name: str, form: str, seed: int) -> dict:
    """The envelope of one run."""
    inputs = sorted((MODULES / name / "tests").glob("*.input.json"))
    flags = ["--provider", "llamacpp", "--ask", form, "--seed", str(seed), "--temperature", "1", "--max-tokens", "8000"]
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [os.environ["COG"], "run", name, inputs[seed % len(inputs)], *flags],
            env={"PATH": os.defpath, "HOME": home, "LLAMACPP_BASE_URL": url},
            cwd=home,
            capture_output=True,
            text=True,
        )
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{name}, seed {seed}: no envelope, exit {done.returncode}\n{done.stderr}") from None


def count(envelopes: list[dict]) -> dict:
    """How many answers conform at the first attempt, also with repairs, or refused by a gate; after a retry; and not."""
    accepted = [envelope for envelope in envelopes if is_accepted(envelope)]
    first = [envelope for envelope in accepted if "attempts" not in envelope["meta"]]
    return {
        "answers": len(envelopes),
        "first": len(first),
        "repaired": sum(bool(envelope["meta"].get("repairs")) for envelope in first),
        "gated": sum(not envelope["ok"] and envelope["error"]["code"] in GATES for envelope in first),
        "retried": len(accepted) - len(first),
        "failed": len(envelopes) - len(accepted),
    }


def is_accepted(envelope: dict) -> bool:
    """Whether the answer conforms to its contract: a success, an error that the model itself reports, or one for a gate.

    A run that failed before the model answered has no usage."""
    return "usage" in envelope["meta"] and (envelope["ok"] or not is_rejection(envelope["error"]))


def is_rejection(error: dict) -> bool:
    """Whether the answer violates its contract. A model is not offered E1000, E2003 and the codes of groups 3 and 4."""
    code = error["code"]
    return code not in GATES and (code in {"E1000", "E2003", "E2010", "E2011"} or code[:2] in {"E3", "E4"})


def report(results: dict[str, list[dict]]) -> None:
    print(f"{'module and form':40}" + "".join(f"{column:>10}" for column in COLUMNS))
    for name, envelopes in results.items():
        counted = count(envelopes)
        print(f"{name:40}" + "".join(f"{counted[column]:10}" for column in COLUMNS))
        rejected = [envelope["error"] for envelope in envelopes if not is_accepted(envelope)]
        for reason, times in collections.Counter(map(why, rejected)).most_common():
            print(f"  {times:4} {reason}")


def why(error: dict) -> str:
    """The code, and the location and rule of the first violation, without values."""
    violations = error.get("details", {}).get("violations")
    if not violations:
        return f"{error['code']} {error['message'][:100]}"
    return f"{error['code']} {violations[0]['path']} ({violations[0]['rule']})"


if __name__ == "__main__":
    sys.exit(main())
