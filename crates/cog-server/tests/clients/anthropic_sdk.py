"""Anthropic's clients against a real server: the SDKs for Python and TypeScript.

Started by `cargo xtask clients`, which installs what it needs and reports in COG, COG_MOCK and NODE_PATH where it is.
"""

import json
import os
import pathlib
import subprocess

import anthropic
import pydantic
from servers import ANSWER, BROKEN, LIVE, PNG, TOKEN, refused, serve

NODE = str(pathlib.Path(os.environ["NODE_PATH"], "node", "bin", "node"))
DATA = ANSWER["data"]
QUESTION = {"model": "module:m", "max_tokens": 64, "messages": [{"role": "user", "content": "why?"}]}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}


class Answer(pydantic.BaseModel):
    """The data of the module as a type of the client."""

    result: str
    rationale: str


def messages(client):
    message = client.messages.create(**QUESTION)
    text = message.content[0].text
    assert json.loads(text) == DATA and message.stop_reason == "end_turn", message
    assert message.usage.output_tokens > 0 and message.cognitive["meta"]["risk"] == "low", message
    assert message.id == f"msg_{message._request_id}", (message.id, message._request_id)
    events = list(client.messages.create(**QUESTION, stream=True))
    deltas = [event.delta.text for event in events if event.type == "content_block_delta"]
    assert "".join(deltas) == text and len(deltas) > 4, deltas
    with client.messages.stream(**QUESTION) as stream:
        assert "".join(stream.text_stream) == text
        final = stream.get_final_message()
    assert (final.content[0].text, final.usage.output_tokens) == (text, message.usage.output_tokens), final
    assert client.messages.parse(**QUESTION, output_format=Answer).parsed_output == Answer(**DATA)
    told = client.messages.create(**QUESTION, system="be kind", extra_body={"temperature": 0.5})
    assert [warning["code"] for warning in told.cognitive["_warnings"]] == ["W4030"] * 2, told.cognitive
    counted = client.messages.count_tokens(model="module:m", messages=QUESTION["messages"])
    longer = client.messages.count_tokens(model="module:m", messages=[{"role": "user", "content": "why? " * 100}])
    assert 0 < counted.input_tokens < longer.input_tokens - 90, (counted, longer)
    content = [IMAGE, {"type": "text", "text": "what is it?"}]
    seen = client.messages.create(**QUESTION | {"messages": [{"role": "user", "content": content}]})
    assert seen.cognitive["meta"]["media_processed"], seen


def errors(client, broken):
    tool = {"name": "f", "input_schema": {"type": "object"}}
    error = refused(anthropic.BadRequestError, lambda: client.messages.create(**QUESTION, tools=[tool]))
    assert error.body["error"]["code"] == "E1004" and error.body["error"]["param"] == "tools", error.body
    error = refused(anthropic.NotFoundError, lambda: client.messages.create(**QUESTION | {"model": "claude"}))
    assert error.body["error"]["type"] == "not_found_error", error.body
    stranger = client.with_options(api_key="wrong")
    error = refused(anthropic.AuthenticationError, lambda: stranger.messages.create(**QUESTION))
    assert error.body["error"]["type"] == "authentication_error", error.body
    stream = client.with_options(base_url=broken).messages.create(**QUESTION, stream=True)
    error = refused(anthropic.APIStatusError, lambda: list(stream))
    assert error.body["error"]["code"] == "E2010", error.body


with serve(token=True, **LIVE) as url, serve(token=True, reply=BROKEN, **LIVE) as url_of_broken:
    sdk = anthropic.Anthropic(base_url=url, api_key=TOKEN, max_retries=0)
    assert "module:m" in [model.id for model in sdk.models.list()]
    messages(sdk)
    errors(sdk, url_of_broken)
    print("  Anthropic's Python SDK", flush=True)
    script = str(pathlib.Path(__file__).with_name("anthropic_sdk.cjs"))
    subprocess.run([NODE, script, url, url_of_broken, TOKEN, json.dumps(DATA)], check=True, timeout=120)
