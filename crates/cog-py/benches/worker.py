"""One contender of ``bench.py``: the package, or a peer that does the same extraction.

Reads lines from standard input, such as ``execute 200``, does so many calls, and prints the seconds and the processor time.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

CODE = "fn main() {}"


def cognitive() -> dict[str, Callable[[int], None]]:
    from cognitive import CognitiveRuntime

    runtime = CognitiveRuntime(provider="openai", model="mock-1")
    module = runtime.load("code-reviewer")
    review = task_of().with_options(runtime=runtime)
    result = runtime.execute(module, CODE)
    model: Any = envelope().model_fields["data"].annotation
    text = json.dumps(result.data)

    def execute(count: int) -> None:
        for _ in range(count):
            assert runtime.execute(module, CODE).ok

    def stream(count: int) -> None:
        for _ in range(count):
            assert len(list(runtime.execute_stream(module, CODE))) > 2

    async def all_at_once(count: int) -> None:
        results = await asyncio.gather(*(runtime.execute_async(module, CODE) for _ in range(count)))
        assert all(result.ok for result in results)

    def task(count: int) -> None:
        for _ in range(count):
            review(CODE)

    def execute_task(count: int) -> None:
        for _ in range(count):
            assert runtime.execute(review, {"code": CODE}).ok

    def as_type(count: int) -> None:
        for _ in range(count):
            result.as_type(model)

    def validate(count: int) -> None:
        for _ in range(count):
            model.model_validate_json(text)

    return {
        "execute": execute,
        "stream": stream,
        "gather": lambda count: asyncio.run(all_at_once(count)),
        "task": task,
        "execute_task": execute_task,
        "as_type": as_type,
        "validate": validate,
    }


@dataclass
class Issue:
    title: str
    risk: str


@dataclass
class Review:
    verdict: Literal["approve", "change", "reject"]
    issues: list[Issue]
    rationale: str


def task_of() -> Any:
    """The module ``code-reviewer`` as a task."""
    from cognitive import task

    @task
    def review(code: str) -> Review:
        """Review the code."""
        raise NotImplementedError

    return review


def envelope() -> Any:
    """The contract of the module ``code-reviewer`` as a Pydantic model."""
    from pydantic import BaseModel, Field, create_model

    risk = Literal["none", "low", "medium", "high"]
    text = Annotated[str, Field(min_length=1)]
    issue: Any = create_model("Issue", title=(text, ...), category=(text, ...), risk=(risk, ...), problem=(text, ...), remedy=(text, ...))
    verdict = Literal["approve", "change", "reject"]
    data: Any = create_model("Data", verdict=(verdict, ...), issues=(list[issue], ...), rationale=(text, ...))
    confidence = Annotated[float, Field(ge=0, le=1)]
    explain = Annotated[str, Field(max_length=280)]
    meta: Any = create_model("Meta", confidence=(confidence, ...), risk=(risk, ...), explain=(explain, ...))
    assert issubclass(data, BaseModel)
    return create_model("Envelope", ok=(bool, ...), meta=(meta, ...), data=(data, ...))


def instructor() -> dict[str, Callable[[int], None]]:
    import instructor
    import openai

    client = instructor.from_openai(openai.OpenAI(), mode=instructor.Mode.JSON)
    model = envelope()
    messages: Any = [{"role": "user", "content": CODE}]

    def execute(count: int) -> None:
        for _ in range(count):
            answer: Any = client.chat.completions.create(model="mock-1", response_model=model, messages=messages)
            assert answer.ok

    return {"execute": execute}


def pydantic_ai() -> dict[str, Callable[[int], None]]:
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel

    agent: Any = Agent(OpenAIChatModel("mock-1"), output_type=NativeOutput(envelope()))

    def execute(count: int) -> None:
        for _ in range(count):
            assert agent.run_sync(CODE).output.ok

    return {"execute": execute}


BAML = """
client<llm> Mock {
  provider "openai-generic"
  options {
    base_url env.OPENAI_BASE_URL
    api_key "none"
    model "mock-1"
  }
}
class Issue {
  title string
  category string
  risk "none" | "low" | "medium" | "high"
  problem string
  remedy string
}
class Data {
  verdict "approve" | "change" | "reject"
  issues Issue[]
  rationale string
}
class Meta {
  confidence float @assert(range, {{ this >= 0 and this <= 1 }})
  risk "none" | "low" | "medium" | "high"
  explain string
}
class Envelope {
  ok bool
  meta Meta
  data Data
}
function Review(code: string) -> Envelope {
  client Mock
  prompt #"
    {{ _.role("user") }} Review the code.
    {{ ctx.output_format }}
    {{ code }}
  "#
}
generator client {
  output_type "python/pydantic"
  output_dir "../"
  version "VERSION"
}
"""


def baml_py() -> dict[str, Callable[[int], None]]:
    from importlib import import_module, metadata

    os.environ["BAML_LOG"] = "off"
    directory = Path(tempfile.mkdtemp())
    source = directory / "baml_src"
    source.mkdir()
    (source / "main.baml").write_text(BAML.replace("VERSION", metadata.version("baml-py")))
    generate = [str(Path(sys.executable).with_name("baml-cli")), "generate", "--from", str(source)]
    subprocess.run(generate, check=True, stdout=sys.stderr)
    sys.path.insert(0, str(directory))
    client: Any = import_module("baml_client.sync_client").b

    def execute(count: int) -> None:
        for _ in range(count):
            assert client.Review(CODE).ok

    return {"execute": execute}


def main() -> None:
    contenders = {"cognitive": cognitive, "instructor": instructor, "pydantic-ai": pydantic_ai, "baml-py": baml_py}
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    calls = contenders[sys.argv[1]]()
    print("ready", flush=True)
    for line in sys.stdin:
        name, count = line.split()
        start, spent = time.perf_counter(), time.process_time()
        calls[name](int(count))
        print(time.perf_counter() - start, time.process_time() - spent, flush=True)


if __name__ == "__main__":
    main()
