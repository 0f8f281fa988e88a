"""Compares what ``cog batch --plan`` expects for many rows with what the first rows of them cost.

The mock reports as usage what another tokenizer counts in the requests and in the answer. Costs are those of the list prices.
"""

from __future__ import annotations

import json
import subprocess
import time
from itertools import islice
from pathlib import Path
from typing import Any

import workload
from workload import MODEL, MODULE

#: The first rows, which run.
SAMPLE = 1_000
#: The encoding of the model.
ENCODING = "o200k_base"
PRICES = Path(__file__).parents[3] / "cog-provider/prices/openai.json"
PROVIDER = ["--provider", "openai", "--model", MODEL]


def rendered(cog: str, row: str, url: str | None = None) -> Any:
    """What a run of this row sends."""
    command = [cog, "render", MODULE, *PROVIDER, "--input-json", row]
    shown = subprocess.run(command, env=workload.environment(url), capture_output=True, text=True, check=True)
    return json.loads(shown.stdout)


def count(cog: str, rows: Path) -> tuple[int, int]:
    """The tokens of a request, on the average of the first rows, and those of the answer, as another tokenizer counts them."""
    import bpe_openai

    encoding = bpe_openai.get_encoding(ENCODING)

    def tokens(text: str) -> int:
        return len(encoding.encode(text))

    with rows.open() as lines:
        inputs = [line.rstrip("\n") for line in islice(lines, SAMPLE)]
    request = rendered(cog, inputs[0])
    system, user = (message["content"][0]["text"] for message in request["messages"])
    if json.loads(user) != json.loads(inputs[0]):
        raise SystemExit(f"the last message is not the input: {user[:200]}")
    schema = json.dumps(request["request"]["body"]["text"]["format"]["schema"], separators=(",", ":"))
    of_inputs = sum(tokens(json.dumps(json.loads(line), separators=(",", ":"))) for line in inputs) / len(inputs)
    return tokens(system) + tokens(schema) + round(of_inputs), tokens(json.dumps(workload.answer()))


def price(usage: tuple[float, float]) -> float:
    """The list price of these tokens in US dollars."""
    models = json.loads(PRICES.read_text())[0]["models"]
    (prices,) = (model["prices"] for model in models if model["id"] == MODEL)
    return (usage[0] * prices["input_mtok"] + usage[1] * prices["output_mtok"]) / 1e6


def compare(cog: str, url: str, directory: Path, rows: int, usage: tuple[int, int]) -> None:
    """Plans so many rows, runs the first of them, plans the others, and prints what a row takes."""
    path, out, summary = (directory / name for name in ("planned.jsonl", "planned.out.jsonl", "planned.json"))
    workload.write_rows(path, rows)
    batch = [cog, "batch", MODULE, str(path), *PROVIDER]

    def plan(*options: str) -> tuple[float, float, float, float, int]:
        began = time.perf_counter()
        # With the URL of the vendor, whose prices count. Nothing is sent.
        shown = subprocess.run(
            [*batch, "--plan=json", *options], env=workload.environment(None), capture_output=True, text=True, check=True
        )
        found = json.loads(shown.stdout)
        (live,) = (way["cost_usd"] for way in found["ways"] if way["name"] == "live")
        run = found["rows"]["run"]
        return found["input"]["per_row"], found["output"]["per_row"], live / run, time.perf_counter() - began, run

    before = plan()
    run = [*batch, "-o", str(out), "--sample", str(SAMPLE), "--summary", str(summary)]
    subprocess.run(run, env=workload.environment(url), check=True, stderr=subprocess.DEVNULL)
    ran = json.loads(summary.read_text())
    if ran["rows"]["ok"] != SAMPLE:
        raise SystemExit(f"the first {SAMPLE} rows: {ran['rows']}")
    after = plan("-o", str(out))
    real = ran["tokens"]["input"] / SAMPLE, ran["tokens"]["output"] / SAMPLE
    if real != usage:
        raise SystemExit(f"the summary has {real} tokens a row, the mock has sent {usage}")
    show(real, {f"plan of {rows} rows": before, f"plan of the others, after {SAMPLE}": after}, rows)


def show(real: tuple[float, float], plans: dict[str, tuple[float, float, float, float, int]], rows: int) -> None:
    head = f"{'input':>8} {'ratio':>6} {'output':>8} {'ratio':>6} {'US dollars':>11} {'ratio':>6} {'seconds':>8}"
    print(f"\n{f'tokens and cost of a row, {MODEL}':<46} {head}")
    cost = price(real)
    print(f"{f'run of the first {SAMPLE} rows':<46} {real[0]:8.1f} {1:6.2f} {real[1]:8.1f} {1:6.2f} {cost:11.6f} {1:6.2f}")
    for what, (input, output, live, seconds, _) in plans.items():
        ratios = input / real[0], output / real[1], live / cost
        print(f"{what:<46} {input:8.1f} {ratios[0]:6.2f} {output:8.1f} {ratios[1]:6.2f} {live:11.6f} {ratios[2]:6.2f} {seconds:8.1f}")
    for what, (_, _, live, _, run) in plans.items():
        total = live * run + (rows - run) * cost
        print(f"{what}: {total:.2f} US dollars for {rows} rows; {cost * rows:.2f} if each costs what the first {SAMPLE} did")
