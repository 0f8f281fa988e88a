"""OpenAI's clients against a real server: the SDKs for Python and TypeScript, LangChain, and the AI SDK.

Started by `cargo xtask clients`, which installs what it needs and reports in COG, COG_MOCK and NODE_PATH where it is.
"""

import json
import os
import pathlib
import subprocess

import openai
import pydantic
from langchain_openai import ChatOpenAI
from servers import ANSWER, BROKEN, LIVE, PNG, TOKEN, refused, serve

NODE = str(pathlib.Path(os.environ["NODE_PATH"], "node", "bin", "node"))
DATA = ANSWER["data"]
MODEL = "module:m"
QUESTION = [{"role": "user", "content": "why?"}]
IMAGE_URL = f"data:image/png;base64,{PNG}"
IMAGE = {"type": "image_url", "image_url": {"url": IMAGE_URL}}
SYSTEM = [("system", "be kind"), ("user", "why?")]


class Answer(pydantic.BaseModel):
    """The data of the module as a type of the client."""

    result: str
    rationale: str


def chat_completions(client):
    chat = client.chat.completions
    completion = chat.create(model=MODEL, messages=QUESTION)
    content = completion.choices[0].message.content
    assert json.loads(content) == DATA
    assert completion.usage.total_tokens > 0 and completion.cognitive["meta"]["risk"] == "low"
    chunks = list(chat.create(model=MODEL, messages=QUESTION, stream=True, stream_options={"include_usage": True}))
    deltas = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert "".join(deltas) == content and len(deltas) > 4, deltas
    assert chunks[-1].usage == completion.usage, chunks[-1]
    parsed = chat.parse(model="m", messages=QUESTION, response_format=Answer)
    assert parsed.choices[0].message.parsed == Answer(**DATA)
    with chat.stream(model=MODEL, messages=QUESTION, response_format=Answer) as stream:
        assert stream.get_final_completion().choices[0].message.parsed == Answer(**DATA)
    parts = [{"type": "text", "text": "what is it?"}, IMAGE]
    seen = chat.create(model=MODEL, messages=[{"role": "user", "content": parts}])
    assert seen.cognitive["meta"]["media_processed"]
    error = refused(openai.BadRequestError, lambda: chat.create(model=MODEL, messages=QUESTION, n=2))
    assert (error.code, error.param, error.type) == ("E1004", "n", "invalid_request_error"), error
    error = refused(openai.NotFoundError, lambda: chat.create(model="gpt-4", messages=QUESTION))
    assert error.code == "E4006" and "gpt-4" in error.message, error


def responses(client):
    create = client.responses.create
    response = create(model=MODEL, input="why?")
    assert json.loads(response.output_text) == DATA and response.usage.total_tokens > 0
    events = list(create(model=MODEL, input=QUESTION, stream=True))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == response.output_text and len(deltas) > 4, deltas
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[-1].type == "response.completed" and events[-1].response.usage == response.usage
    assert client.responses.parse(model=MODEL, input="why?", text_format=Answer).output_parsed == Answer(**DATA)
    with client.responses.stream(model=MODEL, input="why?", text_format=Answer) as stream:
        assert stream.get_final_response().output_parsed == Answer(**DATA)
    parts = [{"type": "input_text", "text": "what is it?"}, {"type": "input_image", "image_url": IMAGE_URL}]
    seen = create(model=MODEL, input=[{"role": "user", "content": parts}])
    assert seen.cognitive["meta"]["media_processed"]
    told = create(model=MODEL, input="why?", instructions="be kind", temperature=0)
    assert [warning["code"] for warning in told.cognitive["_warnings"]] == ["W4030"] * 2, told.cognitive
    error = refused(openai.BadRequestError, lambda: create(model=MODEL, input="why?", background=True))
    assert (error.code, error.param) == ("E1004", "background"), error


def broken_streams(client):
    stream = client.chat.completions.create(model=MODEL, messages=QUESTION, stream=True)
    assert refused(openai.APIError, lambda: list(stream)).code == "E2010"
    stream = client.responses.create(model=MODEL, input="why?", stream=True)
    assert refused(openai.APIError, lambda: list(stream)).code == "E2010"


def python_sdk(address, broken):
    client = openai.OpenAI(base_url=f"{address}/v1", api_key=TOKEN, max_retries=0)
    assert MODEL in [model.id for model in client.models.list()]
    chat_completions(client)
    responses(client)
    broken_streams(client.with_options(base_url=f"{broken}/v1"))
    stranger = client.with_options(api_key="wrong")
    for call in [
        lambda: stranger.chat.completions.create(model=MODEL, messages=QUESTION),
        lambda: stranger.responses.create(model=MODEL, input="why?"),
    ]:
        assert refused(openai.AuthenticationError, call).type == "authentication_error"
    print("  OpenAI's Python SDK", flush=True)


def langchain(address, broken, **api):
    settings = {"api_key": TOKEN, "model": MODEL, "max_retries": 0} | api
    model = ChatOpenAI(base_url=f"{address}/v1", **settings)
    message = model.invoke("why?")
    assert json.loads(message.text) == DATA and message.usage_metadata["total_tokens"] > 0
    parts = [chunk.text for chunk in model.stream("why?") if chunk.text]
    assert "".join(parts) == message.text and len(parts) > 4, parts
    assert model.with_structured_output(Answer, method="json_schema").invoke("why?") == Answer(**DATA)
    assert json.loads(model.invoke([("user", [{"type": "text", "text": "what is it?"}, IMAGE])]).text) == DATA
    assert json.loads(model.invoke(SYSTEM).text) == DATA
    stream = ChatOpenAI(base_url=f"{broken}/v1", **settings).stream("why?")
    assert refused(openai.APIError, lambda: list(stream)).code == "E2010"
    print(f"  LangChain {api or ''}", flush=True)


def typescript(address, broken):
    script = str(pathlib.Path(__file__).with_name("openai.cjs"))
    subprocess.run([NODE, script, address, broken, TOKEN, PNG, json.dumps(DATA)], check=True, timeout=120)


with serve(token=True, **LIVE) as url, serve(token=True, reply=BROKEN, **LIVE) as url_of_broken:
    python_sdk(url, url_of_broken)
    langchain(url, url_of_broken)
    langchain(url, url_of_broken, use_responses_api=True)
    typescript(url, url_of_broken)
