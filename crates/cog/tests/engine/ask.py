"""Asks an engine the questions of a task directly, without cog: the baseline of `cargo xtask bench answers`.

Usage: python ask.py URL TASK CASES FORM. FORM is `question`, whose answer is a JSON object with the fields of the module's data, or
`label`, whose answer is the value of its only field and nothing else. Prints {"seconds", "answers": [{"data", "tokens", "cut"}]}.
"""

import json
import pathlib
import sys
import time
import urllib.request

# A model that repeats itself ends here.
MAX_TOKENS = 400


def main() -> None:
    url, task, count, form = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    fields = json.loads((task / "schema.json").read_text("utf-8"))["data"]["properties"]
    template = (task / "question.txt").read_text("utf-8").strip()
    lines = (task / "cases.jsonl").read_text("utf-8").splitlines()[:count]
    questions = [fill(template, json.loads(line)["input"]) for line in lines]
    held = {"grammar": label_grammar(fields)} if form == "label" else {"response_format": response_format(fields)}
    call(url, questions[0], held)  # loads the model
    started = time.monotonic()
    answers = [answer(*call(url, question, held), fields, form) for question in questions]
    print(json.dumps({"seconds": time.monotonic() - started, "answers": answers}))


def fill(template: str, values: dict | str) -> str:
    """The question with an input: its fields, or its only text."""
    if isinstance(values, str):
        values = {"text": values}
    return template.format(**values)


def response_format(fields: dict) -> dict:
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def label_grammar(fields: dict) -> str:
    """The grammar of the plain value of one field: one of its words, or a number."""
    (field,) = fields.values()
    return "root ::= " + (" | ".join(map(json.dumps, field["enum"])) if "enum" in field else "[0-9]{1,7}")


def call(url: str, question: str, held: dict) -> tuple[str, int, bool]:
    """What the model writes, its tokens, and whether it was cut."""
    message = {"role": "user", "content": question}
    body = {"messages": [message], "temperature": 0, "max_tokens": MAX_TOKENS, **held}
    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request) as reply:
        answered = json.load(reply)
    choice = answered["choices"][0]
    return choice["message"]["content"], answered["usage"]["completion_tokens"], choice["finish_reason"] == "length"


def answer(text: str, tokens: int, cut: bool, fields: dict, form: str) -> dict:
    try:
        if form == "question":
            data = json.loads(text)
        else:
            (name,) = fields
            data = {name: text if "enum" in fields[name] else int(text)}
    except ValueError:
        data = None
    return {"data": data, "tokens": tokens, "cut": cut}


if __name__ == "__main__":
    main()
