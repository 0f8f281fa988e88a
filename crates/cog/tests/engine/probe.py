"""Calls an engine with small schemas, many times each, and counts the answers that violate them.

Usage: python probe.py URL ANSWERS PROBES. PROBES is a JSON file, and URL is the base URL of an OpenAI-compatible server, or `random` to start llama.cpp
with random_model.py. Prints {"engine", "version", "features": [{"feature", "valid", "invalid", "refused"}]} as JSON.
"""

import contextlib
import importlib.metadata
import json
import sys
import urllib.error
import urllib.request

import jsonschema_rs
import server

# What a probe may refer to.
DEFINITIONS = {"X": {"type": "integer", "minimum": 1, "maximum": 3}}


def main() -> None:
    url, answers = sys.argv[1], int(sys.argv[2])
    with open(sys.argv[3], encoding="utf-8") as file:
        probes = json.load(file)
    with server.running(url) if url in server.MODELS else contextlib.nullcontext(url) as url:
        engine = engine_of(url)
        features = [measure(url, probe, answers) for probe in probes]
    print(json.dumps({"engine": engine, "version": version(engine), "features": features}))


def engine_of(url: str) -> str:
    """The name that the server gives itself in its list of models: llamacpp, vllm, …"""
    with urllib.request.urlopen(f"{url}/models") as reply:
        return json.load(reply)["data"][0].get("owned_by", "unknown")


def version(engine: str) -> str:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return f"xllamacpp {importlib.metadata.version('xllamacpp')}" if engine == "llamacpp" else ""
    return ""


def measure(url: str, probe: dict, answers: int) -> dict:
    """Counts the answers to one schema. Answers that are not complete JSON do not count."""
    schema = {
        "type": "object",
        "properties": {"v": probe["schema"]},
        "required": ["v"],
        "additionalProperties": False,
        "$defs": DEFINITIONS,
    }
    # The modules' schemas are Draft-07.
    check = jsonschema_rs.Draft7Validator(schema, validate_formats=True)
    counted = {"feature": probe["feature"], "valid": 0, "invalid": 0, "refused": False}
    for seed in range(answers):
        try:
            answer = call(url, schema, seed)
        except urllib.error.HTTPError as error:
            if error.code != 400:
                raise
            return counted | {"refused": True}
        with contextlib.suppress(ValueError):
            counted["valid" if check.is_valid(json.loads(answer)) else "invalid"] += 1
    return counted


def call(url: str, schema: dict, seed: int) -> str:
    body = {
        "model": "default",
        "messages": [{"role": "user", "content": "x"}],
        "max_tokens": 400,
        "temperature": 1,
        "seed": seed,
        "response_format": {"type": "json_schema", "json_schema": {"name": "probe", "schema": schema}},
    }
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


if __name__ == "__main__":
    main()
