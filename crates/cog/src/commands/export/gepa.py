"""Improves the prompt of a module with GEPA on its golden tests. Written by `cog export --as gepa`.

    pip install gepa litellm
    python THIS_FILE --provider openai --with openai/gpt-5.5 --calls 150

It runs the cases with `cog test`, and prints the best prompt. Compare it on the held-out cases before you use it.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import gepa
from gepa import EvaluationBatch

MODULE: the directory of the module
TRAINING: the cases that prompts are written from
VALIDATION: the cases that prompts are compared on
HELD_OUT: the cases that no prompt was written from or chosen by


class Module:
    """Runs the golden tests of the module with another prompt."""

    propose_new_texts = None

    def __init__(self, options):
        self.options = options

    def evaluate(self, batch, candidate, capture_traces=False):
        cases = self.test([case["name"] for case in batch], candidate["prompt"])
        found = [cases.get(case["name"], {"verdict": "error", "mismatches": []}) for case in batch]
        return EvaluationBatch(
            outputs=[case.get("answer") for case in found],
            scores=[1.0 if case["verdict"] == "passed" else 0.0 for case in found],
            trajectories=list(zip(batch, found)) if capture_traces else None,
        )

    def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
        def entry(case, found):
            wrong = [f"{one['path']} ({one['rule']}): {one['message']}" for one in found["mismatches"]]
            return {
                "Inputs": case["input"],
                "Generated Outputs": json.dumps(found.get("answer")),
                "Feedback": "\n".join(wrong) or "The answer is right.",
            }

        return {name: [entry(*one) for one in eval_batch.trajectories] for name in components_to_update}

    def test(self, names, prompt):
        with tempfile.TemporaryDirectory() as directory:
            copy = pathlib.Path(directory) / pathlib.Path(MODULE).name
            shutil.copytree(MODULE, copy)
            (copy / "prompt.md").write_text(prompt, encoding="utf-8")
            command = [self.options.cog, "test", str(copy), "--provider", self.options.provider, "--format", "json"]
            command += ["--model", self.options.model] if self.options.model else []
            command += [word for name in names for word in ("--case", name)]
            report = subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout
        return {case["name"]: case for case in json.loads(report)["modules"][0]["cases"]}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--provider", required=True, help="provider of the module, as for cog test")
    options.add_argument("--model", help="model of the module")
    options.add_argument("--with", dest="reflection", required=True, help="model that writes prompts, as litellm names it")
    options.add_argument("--calls", type=int, required=True, help="maximum number of runs of cases")
    options.add_argument("--cog", default="cog", help="the program")
    options = options.parse_args()
    result = gepa.optimize(
        seed_candidate={"prompt": (pathlib.Path(MODULE) / "prompt.md").read_text(encoding="utf-8")},
        trainset=TRAINING,
        valset=VALIDATION,
        adapter=Module(options),
        reflection_lm=options.reflection,
        max_metric_calls=options.calls,
    )
    print(result.best_candidate["prompt"])
    print("held-out cases: " + " ".join(HELD_OUT), file=sys.stderr)


if __name__ == "__main__":
    main()
