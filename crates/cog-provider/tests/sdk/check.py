"""Validates our wire formats with the vendors' own Python clients.

Requests: each `../wire/*/request-*.snap` must match the client's types, without unknown fields other than those in EXTRAS.
Batches: entries and jobs in `../batch` must match the client's types, and those of the mock too.
Replies: each recording is served to the client, which must read the same text and tool calls as our decoder. The mock's recordings must
also match the types strictly.

With a directory, requests of runs with media are validated too: DIRECTORY/VENDOR/NAME.json, which the tests of crates/cog write.
Each request is also changed to be invalid, in one field at a time, and every change must be rejected.

Needs: openai, anthropic, google-genai, ollama. Usage: python check.py [DIRECTORY]
"""

import json
import re
import sys
import threading
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anthropic
import ollama
import openai
from anthropic.types import Message, ModelInfo, RawMessageStreamEvent
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import BatchCreateParams as AnthropicBatchParams
from google import genai
from google.genai import batches as gemini_batches
from google.genai import types as gemini_types
from openai import types as openai_types
from openai.types import ImagesResponse
from openai.types.batch_create_params import BatchCreateParams
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from openai.types.image_generate_params import ImageGenerateParamsNonStreaming
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

WIRE = Path(__file__).parent.parent / "wire"
BATCH = Path(__file__).parent.parent / "batch"

# Fields of a vendor that the types of the client do not have.
EXTRAS = {
    "minimax": {"reasoning_split"},
    "mistral": {"random_seed"},
    "openrouter": {"provider", "modalities"},
    "ollama": {"truncate", "shift"},
}

# Members of a message that the types of the client do not have.
MESSAGE_EXTRAS = {"reasoning_content", "reasoning_details"}

# Members that may contain any object, after the first level.
FREE = {"schema", "parameters", "input_schema", "parametersJsonSchema", "input", "args", "response", "arguments"}

# Recordings that the vendor's own client reads differently: other formats, incomplete replies, errors, unknown fields.
NOT_FOR_CLIENTS = {
    "array", "base_resp", "comment_as_data", "continuation", "done", "done_only", "error_in_stream", "error_text", "gateway_error",
    "image_incomplete", "image_unknown", "incomplete", "index_counts_tokens", "item_twice", "linked", "llamacpp_probabilities",
    "nested_error", "only_final", "unknown",
}


def main() -> int:
    checks = [*request_checks(), *reply_checks(), *list_checks(), *batch_checks()]
    if len(sys.argv) > 1:
        checks += media_checks(Path(sys.argv[1]))
    failed = 0
    for name, check in checks:
        try:
            check()
        except Exception as error:  # any error of any client is a failed check
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", file=sys.stderr)
    print(f"{len(checks) - failed} of {len(checks)} checks against the vendors' clients passed")
    return 1 if failed or len(checks) < 40 else 0


# --- requests


def request_checks():
    for path in sorted(WIRE.glob("*/request-*.snap")):
        body = json.loads(path.read_text().split("\n---\n", 1)[1])["body"]
        vendor = re.match(r"request-([a-z]+)", path.name).group(1)
        name, check = f"{path.parent.name}/{path.name}", partial(check_request, path.parent.name, vendor)
        yield name, partial(check, json.loads(json.dumps(body)))
        yield from spoiled(name, check, body)


def check_request(protocol, vendor, body):
    body = {key: value for key, value in body.items() if key not in EXTRAS.get(vendor, set())}
    check = {
        "openai": openai_request,
        "openai_responses": responses_request,
        "openai_images": partial(fits, ImageGenerateParamsNonStreaming),
        "anthropic": anthropic_request,
        "gemini": gemini_request,
        "ollama": ollama_request,
    }
    check[protocol](body)


def openai_request(body):
    messages = [{key: value for key, value in message.items() if key not in MESSAGE_EXTRAS} for message in body["messages"]]
    body = {**body, "messages": messages}
    fits(CompletionCreateParamsStreaming if body["stream"] else CompletionCreateParamsNonStreaming, body)


def responses_request(body):
    fits(ResponseCreateParamsStreaming if body["stream"] else ResponseCreateParamsNonStreaming, body)


def anthropic_request(body):
    fits(MessageCreateParamsStreaming, body)


def gemini_request(body):
    for content in body.pop("contents"):
        fits_model(gemini_types.Content, content)
    if "systemInstruction" in body:
        fits_model(gemini_types.Content, body.pop("systemInstruction"))
    for tool in body.pop("tools", []):
        fits_model(gemini_types.Tool, tool)
    if "toolConfig" in body:
        fits_model(gemini_types.ToolConfig, body.pop("toolConfig"))
    if "generationConfig" in body:
        fits_model(gemini_types.GenerationConfig, body.pop("generationConfig"))
    # A member of the request in the API, but of the configuration in the client.
    if "serviceTier" in body:
        same(body.pop("serviceTier") in {tier.value for tier in gemini_types.ServiceTier}, True)
    same(body, {})


def ollama_request(body):
    # Its request type accepts any object as a message; its message type contains the client's own image type.
    for message in body["messages"]:
        images = [{"value": image} for image in message.get("images", [])]
        read = fits_model(ollama.Message, {**message, "images": images})
        same(read.model_dump(exclude_unset=True), {"images": [], **message})
    # Its type for the schema of a tool has no `additionalProperties`.
    for tool in body.get("tools", []):
        fits_model(ollama.Tool, {**tool, "function": {**tool["function"], "parameters": {}}})
    fits_model(ollama._types.ChatRequest, {key: value for key, value in body.items() if key != "tools"})


def fits_model(kind, body):
    """Validates a body strictly, as JSON. Unknown fields fail."""
    return kind.model_validate_json(json.dumps(body), strict=True, extra="forbid")


def fits(kind, body):
    """Validates a body. Unknown fields are dropped, so the comparison fails."""
    adapter = TypeAdapter(kind)  # must outlive the lazy iterators in the value
    same(plain(adapter.validate_python(body)), body)


def plain(value):
    """Returns a validated value with its lazy iterators consumed, which validates their items."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes)):
        return [plain(inner) for inner in value]
    return value


def same(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


# --- requests of runs with media


def media_checks(directory: Path):
    paths = sorted(directory.glob("*/*.json"))
    same({path.parent.name for path in paths}, {"openai", "openai_responses", "anthropic", "gemini", "ollama"})
    for path in paths:
        name, vendor, body = f"{path.parent.name}/{path.name}", path.parent.name, json.loads(path.read_text())
        check = partial(check_request, "openai_images" if "prompt" in body else vendor, vendor)
        yield name, lambda check=check, path=path: check(json.loads(path.read_text()))
        yield from spoiled(name, check, body)


def spoiled(name, check, body):
    for path, copy in invalid_copies(body):
        yield f"{name} invalid at {path}", partial(rejects, check, copy)


def rejects(check, body):
    try:
        check(body)
    except Exception:  # any error of the client
        return
    raise AssertionError("an invalid request passed")


def invalid_copies(body):
    """Yields copies of a body, each with one member of another type or with one unknown member."""
    yield "unknown_member", changed(body, ("unknown_member",), 1)
    for part in {"messages", "contents", "prompt", "input", "text", "tools"} & set(body):
        for path, value in members((part,), body[part]):
            if isinstance(value, dict):
                yield (*path, "unknown_member"), changed(body, (*path, "unknown_member"), 1)
            elif isinstance(value, str):
                yield path, changed(body, path, 1)


def members(path, value):
    """Yields every value inside a value, with its path, except where the types allow anything."""
    if path[-1] in MESSAGE_EXTRAS or (len(path) > 1 and path[-1] in FREE and isinstance(value, dict)):
        return
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from members((*path, key), item)


def changed(value, path, new):
    """Returns a copy of a value with a new value at a path. The other members are shared."""
    if not path:
        return new
    copy = value.copy()
    key = path[0]
    copy[key] = changed(value[key], path[1:], new) if path[1:] else new
    return copy


# --- replies


def reply_checks():
    for path in sorted(WIRE.glob("*/*")):
        if path.suffix not in {".sse", ".ndjson", ".json"} or path.stem in NOT_FOR_CLIENTS:
            continue
        name = f"{path.parent.name}/{path.name}"
        yield name, lambda path=path: same(read_by_client(path), read_by_us(path))
        if path.stem in {"mock", "mock_tools"}:
            yield f"{name} strictly", lambda path=path: fits_strictly(path)


def list_checks():
    """The mock's lists of models must match the types strictly."""
    kinds = {
        "openai": openai_types.Model,
        "openai_responses": openai_types.Model,
        "anthropic": ModelInfo,
        "gemini": gemini_types.Model,
        "ollama": ollama.ListResponse.Model,
    }
    for path in sorted(WIRE.glob("*/models.list")):
        adapter = TypeAdapter(kinds[path.parent.name])
        body = json.loads(path.read_text())
        models = body.get("models") or body["data"]
        yield f"{path.parent.name}/{path.name}", lambda adapter=adapter, models=models: [check_listed(adapter, model) for model in models]


def check_listed(adapter, model):
    # The client of Gemini renames the first field, and the client of Ollama does not read the second.
    model = {key: value for key, value in model.items() if key != "supportedGenerationMethods"}
    known = adapter.validate_json(json.dumps(model))
    unknown = set(model) - {field.alias or name for name, field in type(known).model_fields.items()} - {"name"}
    if unknown:
        raise AssertionError(f"the client does not know {unknown}")


# --- batches


def batch_checks():
    """Our requests for batch jobs, and the mock's replies, must match the types."""
    for directory in sorted(BATCH.iterdir()):
        for path in sorted(directory.glob("*.snap")):
            values = json.loads(path.read_text().split("\n---\n", 1)[1])
            check = batch_reply if path.name.startswith("reply-") else batch_requests if path.stem == "requests" else batch_entry
            for index, value in enumerate(values):
                if "error" not in value or path.name.startswith("reply-"):
                    name = f"{directory.name}/{path.stem} {index}"
                    yield f"batch {name}", partial(check, directory.name, value)
                    if check is batch_entry:
                        broken = {**value, "unknown_member": 1}
                        yield f"batch {name} invalid", partial(rejects, partial(check, directory.name), broken)


def batch_entry(protocol, entry):
    entry = dict(entry)
    if protocol == "anthropic":
        fits(AnthropicBatchParams, {"requests": [entry]})
        fits(MessageCreateParamsNonStreaming, entry["params"])
        same(re.fullmatch("[a-zA-Z0-9_-]{1,64}", entry["custom_id"]) is not None, True)
    elif protocol == "gemini":
        gemini_request(entry.pop("request"))
        fits_model(gemini_types.InlinedRequest, entry)  # the client has its members under other names
        same(set(entry), {"metadata"})
    else:
        body = entry.pop("body")
        same("stream" in body, False)
        check = {"openai": CompletionCreateParamsNonStreaming, "openai_responses": ResponseCreateParamsNonStreaming}
        fits(ImageGenerateParamsNonStreaming if "prompt" in body else check[protocol], body)
        url = entry.pop("url")
        same(url in {"/v1/chat/completions", "/v1/responses", "/v1/images/generations"}, True)
        same(entry.pop("method"), "POST")
        same(set(entry), {"custom_id"})


def batch_requests(protocol, request):
    body = request["body"]
    if body is None:
        return
    if protocol == "anthropic":
        fits(AnthropicBatchParams, body)
    elif protocol == "gemini":
        batch = body.pop("batch")
        same(body, {})
        same(isinstance(batch.pop("displayName"), str), True)
        for entry in batch.pop("inputConfig")["requests"]["requests"]:
            batch_entry(protocol, entry)
        same(batch, {})
    else:
        fits(BatchCreateParams, body)


def batch_reply(protocol, value):
    if protocol == "anthropic":
        batches = value["data"] if "data" in value else [value]
        for batch in batches:
            kind = MessageBatchIndividualResponse if "custom_id" in batch else MessageBatch
            TypeAdapter(kind).validate_json(json.dumps(batch))
    elif protocol == "gemini":
        for operation in value.get("operations", [value]):
            job = gemini_types.BatchJob.model_validate(gemini_batches._BatchJob_from_mldev(operation), strict=False)
            same(job.state.name.startswith("JOB_STATE_") and bool(job.display_name and job.name), True)
            results = (job.dest and job.dest.inlined_responses) or []
            same(all(result.metadata["key"] for result in results), True)
            same(bool(results), job.done)
    elif "custom_id" in value:
        response = value["response"]
        same((response is None) != (value["error"] is None), True)
        if response and response["status_code"] == 200:
            kind = {"openai": ChatCompletion, "openai_responses": Response}[protocol]
            TypeAdapter(kind).validate_json(json.dumps(response["body"]))
    else:
        for batch in value["data"] if "data" in value else [value]:
            TypeAdapter(openai_types.Batch).validate_json(json.dumps(batch))


def read_by_us(path: Path) -> str:
    """Returns the text of the answer, its tool calls and the base64 of its media, from the snapshot of our decoder's events."""
    lines = path.with_name(path.name + ".snap").read_text().splitlines()
    media = re.compile(r'Media\(.* data: "([^"]*)"')
    call = re.compile(r'ToolCall\(.* name: (None|Some\(("[^"]*")\)), arguments: ("(?:[^"\\]|\\.)*")')
    texts = []
    for line in lines:
        if line.startswith("Text("):
            texts.append(json.loads(line[len("Text(") : -1]))
        elif part := media.match(line):
            texts.append(part[1])
        elif part := call.match(line):
            texts += [json.loads(part[2] or '""'), json.loads(part[3])]
    return "".join(texts)


def compact(value) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def read_by_client(path: Path) -> str:
    read = {
        "openai": openai_text,
        "openai_responses": responses_text,
        "openai_images": openai_images,
        "anthropic": anthropic_text,
        "gemini": gemini_text,
        "ollama": ollama_text,
    }
    with serving(path) as url:
        return "".join(text or "" for text in read[path.parent.name](url, path.suffix != ".json"))


def openai_text(url: str, stream: bool) -> Iterator[str]:
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    reply = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}], stream=stream)
    for chunk in reply if stream else [reply]:
        for choice in chunk.choices:
            part = choice.delta if stream else choice.message
            content = part.content if choice.index == 0 else None
            if isinstance(content, list):  # Mistral's blocks
                yield from (block.get("text") for block in content)
            else:
                yield content
            for call in part.tool_calls or []:
                yield call.function.name
                yield call.function.arguments
            if audio := getattr(part, "audio", None):
                yield audio.transcript
                yield audio.data
            for image in getattr(part, "images", None) or []:  # OpenRouter's images, which the types do not have
                yield image["image_url"]["url"].split(",")[1]


def responses_text(url: str, stream: bool) -> Iterator[str]:
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    reply = client.responses.create(model="m", input="?", stream=stream)
    if not stream:
        for item in reply.output:
            if item.type == "message" and item.phase != "commentary":
                yield from (part.text for part in item.content if part.type == "output_text")
            if item.type == "function_call":
                yield item.name + item.arguments
        return
    commentary = set()
    for event in reply:
        if event.type == "response.output_item.added" and getattr(event.item, "phase", None) == "commentary":
            commentary.add(event.output_index)
        if event.type == "response.output_item.added" and event.item.type == "function_call":
            yield event.item.name
        if event.type == "response.function_call_arguments.delta":
            yield event.delta
        if event.type == "response.output_text.delta" and event.output_index not in commentary:
            yield event.delta


def openai_images(url: str, stream: bool) -> Iterator[str]:
    client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    for image in client.images.generate(model="m", prompt="?").data:
        yield image.b64_json
        yield image.revised_prompt


def anthropic_text(url: str, stream: bool) -> Iterator[str]:
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    messages = [{"role": "user", "content": "?"}]
    reply = client.messages.create(model="m", max_tokens=9, messages=messages, stream=stream)
    if not stream:
        for block in reply.content:
            if block.type == "text":
                yield block.text
            if block.type == "tool_use":
                yield block.name + compact(block.input)
        return
    for event in reply:
        if event.type == "content_block_start" and event.content_block.type == "text":
            yield event.content_block.text
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            yield event.content_block.name
        if event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            yield event.delta.partial_json
        if event.type == "content_block_delta" and event.delta.type == "text_delta":
            yield event.delta.text


def gemini_text(url: str, stream: bool) -> Iterator[str]:
    client = genai.Client(api_key="none", http_options=gemini_types.HttpOptions(base_url=url))
    models = client.models
    replies = models.generate_content_stream(model="m", contents="?") if stream else [models.generate_content(model="m", contents="?")]
    for reply in replies:
        for candidate in reply.candidates or []:
            parts = (candidate.content and candidate.content.parts) or []
            for part in parts:
                if not part.thought:
                    yield part.text
                    yield b64encode(part.inline_data.data).decode() if part.inline_data else None
                if call := part.function_call:
                    yield call.name + compact(call.args)


def ollama_text(url: str, stream: bool) -> Iterator[str]:
    reply = ollama.Client(host=url).chat(model="m", messages=[{"role": "user", "content": "?"}], stream=stream)
    for chunk in reply if stream else [reply]:
        yield chunk.message.content
        for call in chunk.message.tool_calls or []:
            yield call.function.name + compact(call.function.arguments)


def fits_strictly(path: Path):
    kinds = {
        ("openai", True): ChatCompletionChunk,
        ("openai", False): ChatCompletion,
        ("openai_responses", True): ResponseStreamEvent,
        ("openai_responses", False): Response,
        ("openai_images", False): ImagesResponse,
        ("anthropic", True): RawMessageStreamEvent,
        ("anthropic", False): Message,
        ("gemini", True): gemini_types.GenerateContentResponse,
        ("gemini", False): gemini_types.GenerateContentResponse,
        ("ollama", True): ollama.ChatResponse,
        ("ollama", False): ollama.ChatResponse,
    }
    streamed = path.suffix != ".json"
    adapter = TypeAdapter(kinds[path.parent.name, streamed])
    texts = [line.removeprefix("data: ") for line in path.read_text().splitlines()]
    chunks = [text for text in texts if text.startswith("{")]
    if not chunks:
        raise AssertionError("no chunks were found")
    for chunk in chunks:
        if '"type":"ping"' not in chunk:  # the client drops pings before validation
            adapter.validate_json(chunk)


class serving:
    """Serves one file as the response to every request, while the block runs."""

    TYPES = {".sse": "text/event-stream", ".ndjson": "application/x-ndjson", ".json": "application/json"}

    def __init__(self, path: Path):
        body, kind = path.read_bytes(), self.TYPES[path.suffix]

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("content-length") or 0))
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


if __name__ == "__main__":
    sys.exit(main())
