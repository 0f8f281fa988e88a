"""The same answers through orjson and jsonschema-rs, compared with the rates that `cargo bench` left.

Run by `cargo xtask bench`, or by hand after `cargo bench -p cog-schema`.
"""

import json
import sys
import time
from pathlib import Path

import jsonschema_rs
import orjson

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
RATES = HERE.parents[3] / "target" / "bench" / "cog-schema.json"
# How many times as fast as this peer ours must be.
LEAST = {"answer": 1.9}


def rate(validator, text):
    """Checks a second, the best of many rounds."""
    best = 0.0
    for _ in range(100):
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < 0.01:
            for _ in range(16):
                assert validator.is_valid(orjson.loads(text))
            count += 16
        best = max(best, count / (time.perf_counter() - start))
    return best


def main():
    schema = orjson.loads((DATA / "envelope.schema.json").read_bytes())
    validator = jsonschema_rs.Draft7Validator(schema)
    ours = json.loads(RATES.read_text())
    kept = True
    for name in ("answer", "envelope"):
        theirs = rate(validator, (DATA / f"{name}.json").read_bytes())
        ratio, least = ours[name] / theirs, LEAST.get(name)
        verdict = "" if least is None else f" (at least {least}: {'kept' if ratio >= least else 'NOT KEPT'})"
        kept = kept and (least is None or ratio >= least)
        print(f"{name}: orjson with jsonschema-rs {theirs:.0f}/s, ours {ratio:.2f} times that{verdict}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
