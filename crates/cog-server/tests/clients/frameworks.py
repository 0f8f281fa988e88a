"""Frameworks that call OpenAI's interfaces, each with its default options, against a real server: a complete answer and a stream.

Started by `cargo xtask clients`, which installs what it needs and reports in COG, COG_MOCK and NODE_PATH where it is.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

import openai
import pydantic
from servers import ANSWER, LIVE, TOKEN, refused, serve

# `mcp.py` of this directory is not the package that a framework imports.
sys.path.remove(str(pathlib.Path(__file__).resolve().parent))
NODE = str(pathlib.Path(os.environ["NODE_PATH"], "node", "bin", "node"))
DATA = ANSWER["data"]
MODEL = "module:m"
QUESTION = [{"role": "user", "content": "why?"}]
SYSTEM = "Be kind."


class Answer(pydantic.BaseModel):
    """The data of the module as a type of the client."""

    result: str
    rationale: str


def same(text, parts=None):
    """Checks a complete text, and the parts of a streamed one."""
    assert json.loads(text) == DATA, text
    if parts is not None:
        assert "".join(parts) == text and len(parts) > 4, parts


def litellm(url):
    import litellm

    options = {"model": f"openai/{MODEL}", "api_base": f"{url}/v1", "api_key": TOKEN, "messages": QUESTION}
    text = litellm.completion(**options).choices[0].message.content
    parts = [chunk.choices[0].delta.content for chunk in litellm.completion(**options, stream=True)]
    same(text, [part for part in parts if part])


def litellm_proxy(url):
    """The proxy of LiteLLM, also as a bridge from Anthropic's interface to Responses."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    route = {"model_name": "m", "litellm_params": {"model": f"openai/{MODEL}", "api_base": f"{url}/v1", "api_key": TOKEN}}
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        config = pathlib.Path(directory, "config.yaml")
        config.write_text(json.dumps({"model_list": [route]}))
        log = stack.enter_context(open(pathlib.Path(directory, "log"), "w+"))
        program = str(pathlib.Path(sys.executable).with_name("litellm"))
        command = [program, "--config", str(config), "--port", str(port), "--host", "127.0.0.1"]
        key = "sk-" + "0123456789abcdef" * 4
        environment = os.environ | {"LITELLM_MASTER_KEY": key}
        proxy = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment))
        stack.callback(proxy.terminate)
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}", api_key=key, max_retries=0)
        create = client.chat.completions.create
        completion = retried(lambda: create(model="m", messages=QUESTION), openai.APIConnectionError)
        chunks = create(model="m", messages=QUESTION, stream=True)
        parts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
        same(completion.choices[0].message.content, [part for part in parts if part])
        message = {"model": "m", "max_tokens": 64, "messages": QUESTION, "system": SYSTEM}
        reply = client.post("/v1/messages", body=message, cast_to=object)
        same(reply["content"][0]["text"])


def retried(call, error):
    """The result of a call to a program that is starting."""
    for _ in range(600):
        with contextlib.suppress(error):
            return call()
        time.sleep(0.2)
    return call()


def llm(url):
    model = {"model_id": "m", "model_name": MODEL, "api_base": f"{url}/v1", "api_key_name": "cog"}
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "extra-openai-models.yaml").write_text(json.dumps([model]))
        pathlib.Path(directory, "keys.json").write_text(json.dumps({"cog": TOKEN}))
        command = [sys.executable, "-m", "llm", "-m", "m", "-s", SYSTEM]
        environment = os.environ | {"LLM_USER_PATH": directory}
        run = lambda *more: subprocess.run([*command, *more, "why?"], check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
        same(run())
        same(run("--no-stream"))


def instructor(url):
    import instructor

    client = openai.OpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0)
    for mode in [instructor.Mode.JSON, instructor.Mode.MD_JSON, instructor.Mode.JSON_SCHEMA]:
        wrapped = instructor.from_openai(client, mode=mode)
        options = {"model": MODEL, "messages": QUESTION, "response_model": Answer, "max_retries": 0}
        assert wrapped.create(**options).model_dump() == DATA, mode
        partial = list(wrapped.create_partial(**options))
        assert partial[-1].model_dump() == DATA and len(partial) > 4, (mode, partial)
    # These modes ask for the answer as a call of a tool.
    for mode in [instructor.Mode.TOOLS, instructor.Mode.RESPONSES_TOOLS]:
        wrapped = instructor.from_openai(client, mode=mode)
        error = refused(Exception, lambda: wrapped.create(model=MODEL, messages=QUESTION, response_model=Answer, max_retries=0))
        assert "`tool" in str(error) and "is not supported" in str(error), (mode, error)


def dspy(url):
    import dspy

    with dspy.context(lm=dspy.LM(f"openai/{MODEL}", api_base=f"{url}/v1", api_key=TOKEN, cache=False)):
        same(dspy.settings.lm("why?")[0])
        found = dspy.Predict("query -> result, rationale")(query="why?")
        assert (found.result, found.rationale) == (DATA["result"], DATA["rationale"]), found


def haystack(url):
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.dataclasses import ChatMessage
    from haystack.utils import Secret

    parts = []
    options = {"model": MODEL, "api_base_url": f"{url}/v1", "api_key": Secret.from_token(TOKEN)}
    messages = [ChatMessage.from_system(SYSTEM), ChatMessage.from_user("why?")]
    text = OpenAIChatGenerator(**options).run(messages)["replies"][0].text
    streamed = OpenAIChatGenerator(**options, streaming_callback=lambda chunk: parts.append(chunk.content))
    assert streamed.run(messages)["replies"][0].text == text
    same(text, [part for part in parts if part])


def llamaindex(url):
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai_like import OpenAILike

    model = OpenAILike(model=MODEL, api_base=f"{url}/v1", api_key=TOKEN, is_chat_model=True)
    messages = [ChatMessage(role="system", content=SYSTEM), ChatMessage(role="user", content="why?")]
    text = model.chat(messages).message.content
    same(text, [part.delta for part in model.stream_chat(messages) if part.delta])


def semantic_kernel(url):
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
    from semantic_kernel.contents import ChatHistory

    async def run():
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0)
        service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=client)
        history = ChatHistory(system_message=SYSTEM)
        history.add_user_message("why?")
        settings = OpenAIChatPromptExecutionSettings()
        text = str(await service.get_chat_message_content(history, settings))
        parts = [str(part) async for part in service.get_streaming_chat_message_content(history, settings)]
        same(text, [part for part in parts if part])

    asyncio.run(run())


def openai_agents(url):
    import agents

    async def run():
        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=TOKEN, max_retries=0)
        for model in [agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel]:
            for told in [{}, {"instructions": SYSTEM}]:
                agent = agents.Agent(name="a", model=model(model=MODEL, openai_client=client), **told)
                text = (await agents.Runner.run(agent, "why?")).final_output
                result = agents.Runner.run_streamed(agent, "why?")
                events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
                parts = [event.delta for event in events if event.type == "response.output_text.delta"]
                assert result.final_output == text
                same(text, parts)

    agents.set_tracing_disabled(True)
    asyncio.run(run())


def pydantic_ai(url):
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    class Other(pydantic.BaseModel):
        city: str

    async def stream(agent):
        async with agent.run_stream("why?") as result:
            return [part async for part in result.stream_text(delta=True, debounce_by=None)]

    provider = OpenAIProvider(base_url=f"{url}/v1", api_key=TOKEN)
    for kind in [OpenAIChatModel, OpenAIResponsesModel]:
        model = kind(MODEL, provider=provider)
        for told in [{}, {"instructions": SYSTEM}]:
            agent = Agent(model, **told)
            same(agent.run_sync("why?").output, asyncio.run(stream(agent)))
        assert Agent(model, output_type=NativeOutput(Answer)).run_sync("why?").output == Answer(**DATA)
        error = refused(Exception, lambda: Agent(model, output_type=NativeOutput(Other)).run_sync("why?"))
        assert "can fit" in str(error) and "400" in str(error), error


def javascript(url):
    script = str(pathlib.Path(__file__).with_name("frameworks.cjs"))
    subprocess.run([NODE, script, url, TOKEN, json.dumps(DATA)], check=True, timeout=120)


CLIENTS = [
    litellm,
    litellm_proxy,
    llm,
    instructor,
    dspy,
    haystack,
    llamaindex,
    openai_agents,
    pydantic_ai,
    javascript,
]
# Needs another version of the SDK of MCP than LiteLLM, so it runs in an environment of its own.
OTHERS = [semantic_kernel]


def main():
    chosen = sys.argv[1:]
    with serve(token=True, **LIVE) as url:
        for client in [one for one in CLIENTS + OTHERS if one.__name__ in chosen] if chosen else CLIENTS:
            client(url)
            print(f"  {client.__name__}", flush=True)


if __name__ == "__main__":
    main()
