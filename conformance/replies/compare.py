#!/usr/bin/env python3
"""Compares parsers on replies.jsonl: cog, json-repair (PyPI), jsonrepair (npm) and BAML (PyPI baml-py, without a network).

    pip install json-repair baml-py; npm install jsonrepair
    python3 conformance/replies/compare.py --cog target/release/cog

`read`: replies with a content that are read as exactly that content. `wrong`: replies with a content that are read as another
one. `invented`: replies without a readable content for which an object or a list is returned.
"""

import argparse
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).parent
BAML = """
client<llm> Unused {
  provider openai
  options {
    model "unused"
    api_key "unused"
  }
}

type Tree = int | float | bool | string | null | Tree[] | map<string, Tree>

function Read(text: string) -> map<string, Tree> {
  client Unused
  prompt #"{{ text }}"#
}
"""
NODE = """
const { jsonrepair } = require('jsonrepair')
const replies = JSON.parse(require('fs').readFileSync(0, 'utf8'))
const read = reply => { try { return { value: JSON.parse(jsonrepair(reply)) } } catch { return {} } }
console.log(JSON.stringify(replies.map(read)))
"""


def json_repair(replies):
    import json_repair as library

    return [{"value": library.loads(reply)} for reply in replies]


def jsonrepair(replies):
    run = subprocess.run(["node", "-e", NODE], input=json.dumps(replies), capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def baml(replies):
    import types

    from baml_py import BamlRuntime
    from baml_py.baml_py import BamlError

    runtime = BamlRuntime.from_files(".", {"main.baml": BAML}, {})
    context = runtime.create_context_manager()
    none = types.ModuleType("none")

    def read(reply):
        try:
            return {"value": runtime.parse_llm_response("Read", reply, none, none, none, False, context, None, None, {})}
        except BamlError:
            return {}

    return [read(reply) for reply in replies]


class Model(http.server.BaseHTTPRequestHandler):
    """A model whose next reply is `reply`."""

    reply = ""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": Model.reply}
        body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def cog(program, replies):
    """Runs each reply through a module of format v1, whose data are the reply as it is."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as place:
        module = pathlib.Path(place, "m")
        module.mkdir()
        front = "---\nname: m\nversion: 1.0.0\nresponsibility: read\nexcludes:\n  - nothing\n---\nRead.\n"
        (module / "MODULE.md").write_text(front)
        (module / "schema.json").write_text(json.dumps({"input": {}, "output": {}}))
        url = f"http://127.0.0.1:{server.server_port}/v1"
        env = {"PATH": os.environ["PATH"], "HOME": place, "LLM_PROVIDER": "openai", "OPENAI_API_KEY": "key-of-a-test"}
        env |= {"OPENAI_BASE_URL": url}
        command = [program, "run", str(module), "--input-json", "{}", "--max-attempts", "1"]

        def read(reply):
            Model.reply = reply
            run = subprocess.run(command, env=env, cwd=place, capture_output=True, text=True, check=False)
            envelope = json.loads(run.stdout)
            return {"value": envelope["data"]} if envelope["ok"] else {}

        return [read(reply) for reply in replies]


def count(lines, outcomes):
    read = wrong = invented = 0
    for line, outcome in zip(lines, outcomes, strict=True):
        found = outcome.get("value")
        is_container = isinstance(found, (dict, list))
        if line["expect"] == "refuse":
            invented += is_container and bool(found)
        elif is_same(found, line["value"]):
            read += 1
        elif "value" in outcome and found not in (None, ""):
            wrong += 1
    return read, wrong, invented


def is_same(found, expected):
    """Whether two values are equal; `1` and `1.0` are, `1` and `true` are not."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(is_same(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(is_same, found, expected))
    return isinstance(found, bool) == isinstance(expected, bool) and found == expected


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--cog", help="the program; without it only the others are compared")
    options = options.parse_args()
    lines = [json.loads(line) for line in (HERE / "replies.jsonl").read_text().splitlines()]
    replies = [line["reply"] for line in lines]
    readable = sum(line["expect"] == "value" for line in lines)
    parsers = {"json-repair": json_repair, "jsonrepair": jsonrepair, "BAML": baml}
    if options.cog:
        parsers = {"cog": lambda replies: cog(options.cog, replies), **parsers}
    print(f"{len(lines)} replies of {len({line['class'] for line in lines})} classes, {readable} with a content\n")
    print(f"{'':12} {'read':>6} {'wrong':>6} {'invented':>9}")
    failed = False
    for name, parser in parsers.items():
        read, wrong, invented = count(lines, parser(replies))
        print(f"{name:12} {read:6} {wrong:6} {invented:9}")
        failed |= name == "cog" and (read, wrong, invented) != (readable, 0, 0)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
