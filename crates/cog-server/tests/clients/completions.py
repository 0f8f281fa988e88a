"""OpenAI's clients against a real server: the Python SDK, and LangChain.

Started by `cargo xtask clients`, which installs what it needs and reports in COG and COG_MOCK where it is.
"""

import json

import openai
import pydantic
from langchain_openai import ChatOpenAI
from servers import ANSWER, PNG, TOKEN, serve

DATA = ANSWER["data"]
MODEL = "module:m"
QUESTION = [{"role": "user", "content": "why?"}]
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}


class Answer(pydantic.BaseModel):
    """The data of the module as a type of the client."""

    result: str
    rationale: str


def refused(kind, call):
    """The error of a call that fails."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def python_sdk(address):
    client = openai.OpenAI(base_url=f"{address}/v1", api_key=TOKEN, max_retries=0)
    chat = client.chat.completions
    assert MODEL in [model.id for model in client.models.list()]
    completion = chat.create(model=MODEL, messages=QUESTION)
    assert json.loads(completion.choices[0].message.content) == DATA
    assert completion.usage.total_tokens > 0 and completion.cognitive["meta"]["risk"] == "low"
    parsed = chat.parse(model="m", messages=QUESTION, response_format=Answer)
    assert parsed.choices[0].message.parsed == Answer(**DATA)
    parts = [{"type": "text", "text": "what is it?"}, IMAGE]
    seen = chat.create(model=MODEL, messages=[{"role": "user", "content": parts}])
    assert seen.cognitive["meta"]["media_processed"]
    error = refused(openai.BadRequestError, lambda: chat.create(model=MODEL, messages=QUESTION, n=2))
    assert (error.code, error.param, error.type) == ("E1004", "n", "invalid_request_error"), error
    error = refused(openai.NotFoundError, lambda: chat.create(model="gpt-4", messages=QUESTION))
    assert error.code == "E4006" and "gpt-4" in error.message, error
    stranger = client.with_options(api_key="wrong")
    assert refused(openai.AuthenticationError, lambda: stranger.chat.completions.create(model=MODEL, messages=QUESTION))
    print("  OpenAI's Python SDK", flush=True)


def langchain(address):
    model = ChatOpenAI(base_url=f"{address}/v1", api_key=TOKEN, model=MODEL, max_retries=0)
    message = model.invoke("why?")
    assert json.loads(message.content) == DATA and message.usage_metadata["total_tokens"] > 0
    assert model.with_structured_output(Answer, method="json_schema").invoke("why?") == Answer(**DATA)
    assert json.loads(model.invoke([("user", [{"type": "text", "text": "what is it?"}, IMAGE])]).content) == DATA
    error = refused(openai.BadRequestError, lambda: model.invoke([("system", "be kind"), ("user", "why?")]))
    assert error.code == "E1004" and error.param == "messages[0].role", error
    print("  LangChain", flush=True)


with serve(token=True) as url:
    python_sdk(url)
    langchain(url)
