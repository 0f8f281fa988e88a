"""Converts histories that the vendors' own Python clients made, each into each, and validates the results with their types.

Each history must convert to Harmony without loss, pass `cog verify`, come back unchanged, and fit the types of every other client.

Needs: openai, anthropic, google-genai, and target/debug/cog. Usage: python check.py
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from anthropic.types import Message, MessageParam
from google.genai import types as gemini
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageParam
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseInputItemParam,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from pydantic import TypeAdapter

COG = Path(__file__).parents[4] / "target/debug/cog"

PNG = "iVBORw0KGgo="


def main() -> int:
    checks = failed = 0
    for source, history in histories().items():
        for target in ["harmony", "openai-chat", "openai-responses", "anthropic", "gemini"]:
            for verify in [check, check_trimmed]:
                checks += 1
                try:
                    verify(source, history, target)
                except Exception as error:  # any error of any client is a failed check
                    failed += 1
                    print(f"FAILED {verify.__name__} {source} to {target}: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"{checks - failed} of {checks} conversions of the clients' histories passed")
    return 1 if failed or checks < 40 else 0


def check(source, history, target):
    text = json.dumps(history)
    harmony, lost = convert(text, "harmony", source)
    same(lost, [])
    same(cog(["verify", "-", "--kind", "messages"], json.dumps(harmony))["valid"], True)
    there, _ = convert(text, target)
    fits(target, there)
    if target in (source, "harmony"):
        back, lost = convert(json.dumps(there), source, target)
        fits(source, back)
        same((normal(back), lost), (normal(history), []))


def check_trimmed(source, history, target):
    """A trimmed history is valid, and fits the types of every client."""
    harmony, _ = convert(json.dumps(history), "harmony", source)
    harmony.append({"role": "user", "content": [{"type": "text", "text": "And what is behind it?"}]})
    done = run(["messages", "trim", "-", "--max-tokens", "60", "--model", "gpt-4o"], json.dumps(harmony))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) != harmony, "nothing was trimmed"
    same(cog(["verify", "-", "--kind", "messages"], done.stdout)["valid"], True)
    fits(target, convert(done.stdout, target, "harmony")[0])


def convert(text, target, source=None):
    command = [COG, "messages", "convert", "-", "--to", target, *(["--from", source] if source else [])]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout), done.stderr.splitlines()


def cog(arguments, text):
    return json.loads(run(arguments, text).stdout)


def run(arguments, text):
    return subprocess.run([COG, *arguments], input=text, capture_output=True, text=True)


# --- histories


def histories():
    """Returns what a program sends after a reply of each vendor, with the reply as the client returned it."""
    return {
        "openai-chat": openai_chat(),
        "openai-responses": openai_responses(),
        "anthropic": anthropic(),
        "gemini": google(),
    }


def openai_chat():
    reply = ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"page": 1}'}},
                {"id": "call_2", "type": "function", "function": {"name": "look", "arguments": '{"page": 2}'}},
            ],
        }
    )
    return [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is on it?"}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}}]},
        reply.model_dump(exclude_none=True) | {"content": None},
        {"role": "tool", "tool_call_id": "call_1", "content": "a cat"},
        {"role": "tool", "tool_call_id": "call_2", "content": '{"status":"error","error_type":"NotFound","message":"no page 2"}'},
        {"role": "assistant", "content": "A cat."},
    ]


def openai_responses():
    reasoning = ResponseReasoningItem(id="rs_1", type="reasoning", summary=[], encrypted_content="abc")
    message = ResponseOutputMessage.model_validate(
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "I look.", "annotations": []}]}
    )
    call = ResponseFunctionToolCall(type="function_call", id="fc_1", call_id="call_1", name="look", arguments='{"page":1}', status="completed")
    return [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "input_text", "text": "What is on it?"}, {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "auto"}]},
        *(item.model_dump(exclude_none=True) for item in (reasoning, message, call)),
        {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "a cat"}, {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "high"}]},
        {"role": "assistant", "content": "A cat."},
    ]


def anthropic():
    reply = Message.model_validate(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [
                {"type": "thinking", "thinking": "A page.", "signature": "sig"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"page": 1}},
            ],
        }
    )
    return {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is on it?"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}]},
            {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in reply.content]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "a cat"}, {"type": "image", "source": {"type": "url", "url": "https://example.com/b.png"}}]}]},
            {"role": "assistant", "content": "A cat."},
        ],
    }


def google():
    part = gemini.Part
    contents = [
        gemini.Content(role="user", parts=[part(text="What is on it?"), part.from_bytes(data=b"\x89PNG", mime_type="image/png")]),
        gemini.Content(
            role="model",
            parts=[
                part(text="A page.", thought=True),
                part(function_call=gemini.FunctionCall(id="call_1", name="look", args={"page": 1}), thought_signature=b"sig"),
            ],
        ),
        gemini.Content(role="user", parts=[part(function_response=gemini.FunctionResponse(id="call_1", name="look", response={"output": "a cat"}))]),
        gemini.Content(role="model", parts=[part(text="A cat.")]),
    ]
    system = gemini.Content(parts=[part(text="Be brief.")])
    dump = lambda content: content.model_dump(mode="json", exclude_none=True, by_alias=True)
    return {"systemInstruction": dump(system), "contents": [dump(content) for content in contents]}


# --- types


def fits(kind, history):
    if kind == "openai-chat":
        fits_all(ChatCompletionMessageParam, history)
    elif kind == "openai-responses":
        fits_all(ResponseInputItemParam, history)
    elif kind == "anthropic":
        fits_all(MessageParam, history["messages"])
    elif kind == "gemini":
        for content in [*history["contents"], history["systemInstruction"]]:
            gemini.Content.model_validate_json(json.dumps(content), strict=True, extra="forbid")


def fits_all(kind, items):
    """Validates items. Unknown members are dropped, so the comparison fails."""
    adapter = TypeAdapter(kind)
    for item in items:
        same(plain(adapter.validate_python(item)), item)


def plain(value):
    """Returns a validated value with its lazy iterators consumed, which validates their items."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [plain(inner) for inner in value]
    return value


def normal(history):
    """Reads arguments as JSON: white space in them may change."""
    if isinstance(history, dict):
        return {key: json.loads(value) if key == "arguments" else normal(value) for key, value in history.items()}
    return [normal(item) for item in history] if isinstance(history, list) else history


def same(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


if __name__ == "__main__":
    sys.exit(main())
