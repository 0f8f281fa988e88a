"""Modules made from functions and types, what they would send, and whether documents follow the specification."""

from __future__ import annotations

import asyncio
import inspect
import json
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy
import PIL.Image
import pydantic
import pytest
from scripted import ANSWER, INPUT, Scripted, agent, calls

from cognitive import (
    Budget,
    CognitiveError,
    CognitiveRuntime,
    DataError,
    ModelRequest,
    ModuleFiles,
    Provider,
    Result,
    _functions,
    task,
    tool,
)


@dataclass
class Summary:
    """Summarize the text."""

    title: str
    sentences: Annotated[list[str], "One element each."]


@task
def summarize(text: str, sentences: int = 2) -> Summary:
    """Summarize the text in so many sentences.

    Keep names and numbers.
    """
    raise AssertionError("a function that becomes a module is never called")


def summarize_it(text: str) -> Summary:
    """Summarize."""
    raise AssertionError


def _named(kind: type[Any]) -> type[Any]:
    part = pydantic.create_model("Part", value=(kind, ...))
    return pydantic.create_model("Named", part=(part, ...))


NamedLeft: Any = _named(int)
NamedRight: Any = _named(str)


REPLY = json.dumps({
    "ok": True,
    "meta": {"confidence": 0.95, "risk": "none", "explain": "Summarized."},
    "data": {"title": "A day", "sentences": ["It rained."], "rationale": "The text says so."},
})


def test_function_becomes_a_module() -> None:
    model = Scripted(REPLY)
    own = CognitiveRuntime(providers={"mine": model}, provider="mine")
    result = own.execute(summarize, {"text": "It rained all day."})
    assert result.ok and result.data["title"] == "A day"
    assert result.as_type(Summary) == Summary("A day", ["It rained."])
    assert "Keep names and numbers." in str(model.requests[0].messages)
    loaded = own.load(summarize)
    assert (loaded.name, loaded.responsibility) == ("summarize", "Summarize the text in so many sentences.")
    assert loaded.input_schema is not None and loaded.input_schema["required"] == ["text"]
    assert loaded.data_schema is not None
    assert loaded.data_schema["properties"]["sentences"]["description"] == "One element each."
    wrong = own.execute(summarize, {"text": 5})
    assert wrong.error is not None and wrong.error.code == "E1003"


def model_with(*replies: Any) -> CognitiveRuntime:
    return CognitiveRuntime(providers={"mine": Scripted(*replies)})


def test_call_returns_the_type_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Scripted(REPLY)
    own = summarize.with_options(runtime=CognitiveRuntime(providers={"mine": model}))
    expected = Summary("A day", ["It rained."])
    assert own("It rained.") == own(text="It rained.", sentences=3) == expected
    assert '"sentences":2' in str(model.requests[0].messages).replace(" ", "")
    assert asyncio.run(own.aio(text="It rained.")) == expected
    result = own.run(text="It rained.")
    assert result.data == expected and result.meta["confidence"] == 0.95 and result.pending is None
    assert pickle.loads(pickle.dumps(result)).data == expected
    assert list(own.chunks(text="It rained."))[-1]["data"]["title"] == "A day"
    monkeypatch.setattr(_functions, "_default", model_with(REPLY))
    assert summarize(text="It rained.") == expected
    assert str(inspect.signature(summarize)) == "(text: 'str', sentences: 'int' = 2) -> 'Summary'"
    assert summarize.__name__ == "summarize" and "Keep names" in (summarize.__doc__ or "")
    with pytest.raises(TypeError, match="missing a required argument: 'text'"):
        summarize(txt="It rained.")  # type: ignore[call-arg]


def test_call_raises_the_error_of_the_run() -> None:
    own = summarize.with_options(runtime=model_with(REPLY))
    with pytest.raises(CognitiveError, match="E1003") as raised:
        own(text=5)  # type: ignore[arg-type]
    assert raised.value.result.data is None
    failed = own.run(text=5)  # type: ignore[arg-type]
    assert failed.data is None and failed.error is not None and failed.error.code == "E1003"
    wrong = summarize_it_as_number.with_options(runtime=model_with(REPLY))
    with pytest.raises(CognitiveError, match="E3001"):
        wrong(text="It rained.")


@task
def summarize_it_as_number(text: str) -> int:
    """Count the sentences."""
    raise NotImplementedError


def test_asynchronous_function_is_awaited() -> None:
    @task(name="later", tier="exploration")
    async def later(text: str, note: str | None = None) -> Summary:
        """Summarize the text."""
        raise NotImplementedError

    model = Scripted(REPLY)
    own = later.with_options(runtime=CognitiveRuntime(providers={"mine": model}))
    assert asyncio.run(own(text="It rained.")) == Summary("A day", ["It rained."])
    # A default of None is absent.
    assert "note" not in str(model.requests[0].messages[-1])


def test_type_of_the_answer_is_called_with_fields() -> None:
    short = task(Summary).with_options(runtime=model_with(REPLY))
    assert short(query="It rained.").title == "A day"
    with pytest.raises(TypeError, match="keyword arguments"):
        short("It rained.")


def test_task_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(summarize)) is summarize
    copy = pickle.loads(pickle.dumps(summarize.with_options(timeout=1)))
    assert copy.files == summarize.files and not callable(copy)


def test_rows_are_mapped_in_order() -> None:
    class Slow(Provider):
        """Answers with its row; the first ones take the longest."""

        model = "slow-1"
        now, most = 0, 0

        async def complete(self, request: ModelRequest) -> str:
            self.now += 1
            self.most = max(self.most, self.now)
            number = int(str(request.messages[-1]["content"]).split("row ")[1].split(" ")[0])
            await asyncio.sleep((9 - number) / 500)
            self.now -= 1
            return reply({"title": f"{number}", "sentences": [], "rationale": "It is so."})

    model = Slow()
    runtime = CognitiveRuntime(providers={"slow": model})
    rows: list[Any] = [{"text": f"row {number} ."} for number in range(8)]
    rows[3] = {"text": 3}
    rows[5] = {"text": object()}
    results = runtime.map(summarize, iter(rows), concurrency=2)
    assert [result.data and result.data["title"] for result in results] == ["0", "1", "2", None, "4", None, "6", "7"]
    assert [result.error.code for result in results if result.error] == ["E1003", "E1003"] and model.most == 2
    typed = summarize.with_options(runtime=runtime).map(rows[:3], concurrency=3)
    assert [result.data.title for result in typed if result.data] == ["0", "1", "2"]
    later = asyncio.run(runtime.amap(summarize, rows, concurrency=3))
    assert [result.to_dict()["data"] if result.ok else None for result in later] == [result.data for result in results]
    assert runtime.map(summarize, []) == []
    with pytest.raises(ValueError, match="concurrency: found 0"):
        runtime.map(summarize, rows, concurrency=0)
    with pytest.raises(CognitiveError, match="E4006"):
        runtime.map("no-such-module", rows)


def test_pending_call_is_approved_or_denied() -> None:
    deleted: list[str] = []

    @tool(confirm=True, side_effects=True)
    def delete(name: str) -> str:
        """Deletes it."""
        deleted.append(name)
        return "gone"

    @task(tools=["delete"])
    def clean(text: str) -> Summary:
        """Delete what is old."""
        raise NotImplementedError

    files = {**clean.files, "module.yaml": clean.files["module.yaml"].replace(
        '{"tools_allowed": true}', '{"tools_allowed": true, "side_effects": allow}'
    )}
    made = ModuleFiles("clean", files)

    def halted() -> Result:
        own = CognitiveRuntime(
            providers={"mine": Scripted(calls(("delete", {"name": "old"})), REPLY)}, tools=[delete]
        )
        return own.run(made, {"text": "x"})

    first = halted()
    pending = first.pending
    assert pending is not None and first.error is not None and pending.id == first.error.details["halted"]["id"]
    (call,) = pending.calls
    assert (call.tool, call.arguments, call.part) == ("delete", {"name": "old"}, None)
    done = pending.approve()
    assert done.ok and done.pending is None and deleted == ["old"]
    with pytest.raises(CognitiveError, match="E4014"):
        pending.approve()
    typed = halted().typed(Summary).pending
    assert typed is not None and typed.deny().data == Summary("A day", ["It rained."])
    waiting = halted()

    async def decide() -> list[Result]:
        approved, denied = waiting.pending, halted().pending
        assert approved is not None and denied is not None
        return [await approved.approve_async(), await denied.deny_async()]

    assert all(result.ok for result in asyncio.run(decide())) and deleted == ["old", "old"]
    without_runtime = pickle.loads(pickle.dumps(waiting)).pending
    with pytest.raises(RuntimeError, match=f"continue_run\\('{without_runtime.id}'"):
        without_runtime.approve()


@tool(network=True)
def fetch(url: str) -> str:
    """Fetches a page."""
    return f"the page {url}"


def test_tools_of_a_task_are_functions() -> None:
    def answer(question: str) -> Summary:
        """Answer. Fetch pages."""
        raise NotImplementedError

    with pytest.raises(ValueError, match=r"answer: the tool 'fetch' needs the policy network; pass policies=\{'network': 'allow'\}"):
        task(answer, tools=[fetch])
    with pytest.raises(ValueError, match="policies: found net='allow'; allowed: network, filesystem_write"):
        task(answer, tools=[fetch], policies={"net": "allow"})  # type: ignore[call-overload]
    model = Scripted(calls(("fetch", {"url": "a"})), REPLY)
    own = task(answer, tools=[fetch], policies={"network": "allow"}).with_options(runtime=CognitiveRuntime(providers={"mine": model}))
    assert own(question="x").title == "A day"
    assert model.results()[0]["result"] == "the page a"


def test_withheld_tool_is_a_warning() -> None:
    @task(tools=["fetch"])
    def answer(question: str) -> Summary:
        """Answer. Fetch pages."""
        raise NotImplementedError

    runtime = CognitiveRuntime(providers={"mine": Scripted(REPLY)}, tools=[fetch])
    (warning,) = answer.with_options(runtime=runtime).run("x").warnings
    assert warning["code"] == "W4017"
    assert "`fetch`, which cannot be called: it uses the network, and `policies.network` denies that" in warning["message"]


class Seeing(Scripted):
    images = True


@pytest.mark.parametrize("kind", [PIL.Image.Image, bytes, Path])
def test_picture_is_a_parameter(kind: Any, tmp_path: Path) -> None:
    image = PIL.Image.new("RGB", (4, 4), "red")
    image.save(tmp_path / "a.png")
    value = {bytes: (tmp_path / "a.png").read_bytes(), Path: tmp_path / "a.png"}.get(kind, image)

    def describe(image: Any, hint: str = "") -> str:
        """Describe the image."""
        raise NotImplementedError

    describe.__annotations__["image"] = kind
    model = Seeing(reply({"result": "red", "rationale": "It is."}))
    own = task(describe).with_options(runtime=CognitiveRuntime(providers={"mine": model}))
    assert own.runtime.validate(own).valid
    assert own(value) == "red"
    assert "image_url" in str(model.requests[0].messages[-1]["content"])
    if kind is PIL.Image.Image:
        assert own(numpy.zeros((2, 2, 3), "uint8"), hint="an array") == "red"


def test_pictures_of_a_model_are_media() -> None:
    class Page(pydantic.BaseModel, arbitrary_types_allowed=True):
        number: int
        scan: PIL.Image.Image
        more: list[bytes] = []

    def read(page: Any, cover: PIL.Image.Image | None = None) -> str:
        """Read the page."""
        raise NotImplementedError

    read.__annotations__.update(page=Page, cover=PIL.Image.Image | None)
    model = Seeing(reply({"result": "red", "rationale": "It is."}))
    own = task(read).with_options(runtime=CognitiveRuntime(providers={"mine": model}))
    image = PIL.Image.new("RGB", (4, 4), "red")
    assert own(Page(number=1, scan=image), image) == "red"
    assert str(model.requests[0].messages[-1]["content"]).count("'image_url': {") == 2
    assert own(Page(number=1, scan=image)) == "red"


def test_picture_where_no_field_takes_one_is_refused(tmp_path: Path) -> None:
    def describe(image: Any) -> str:
        """Describe the image."""
        raise NotImplementedError

    (tmp_path / "a.txt").write_text("a")
    own = task(describe).with_options(runtime=model_with(reply({"result": "red"})))
    for value, path in ((PIL.Image.new("RGB", (4, 4)), "input.image"), ({"a": [tmp_path / "a.txt"]}, "input.image.a[0]")):
        error = own.run(value).error
        assert error is not None and error.code == "E1003"
        assert error.message == f"{path}: found a picture or file; the field takes no media"


def test_options_of_a_task_reach_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Scripted(REPLY)
    runtime = CognitiveRuntime(providers={"mine": model})
    history: list[Any] = [{"role": "user", "content": "It snowed."}, {"role": "assistant", "content": '{"title": "Snow"}'}]
    own = task(summarize_it, temperature=0.25, max_tokens=100, seed=7, stop="END", effort="low", messages=history)
    own.with_options(runtime=runtime)(text="It rained.")
    assert model.requests[0].parameters == {"temperature": 0.25, "max_tokens": 100, "seed": 7, "stop": ["END"], "effort": "low"}
    messages = model.requests[0].messages
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[1]["content"] == "It snowed." and "It rained." in str(messages[3])
    own.with_options(runtime=runtime, temperature=1.0, messages=None)(text="It rained.")
    assert model.requests[1].parameters["temperature"] == 1.0 and len(model.requests[1].messages) == 2
    result = own.with_options(runtime=runtime, trace_id="0af7651916cd43dd8448eb211c80319c", instructions="Be kind.").run(text="x")
    assert result.meta["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert "Be kind." in str(model.requests[2].messages[-1])


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"temperature": "hot"}, TypeError, "temperature: found 'hot'; allowed: a number"),
        ({"temperature": 3}, ValueError, "temperature: found 3; allowed: 0 to 2"),
        ({"max_tokens": 0}, ValueError, "max_tokens: found 0; allowed: a whole number from 1"),
        ({"max_tokens": -1}, TypeError, "max_tokens: found -1; allowed: a whole number from 1"),
        ({"seed": 0.5}, TypeError, "seed: found 0.5; allowed: a whole number"),
        ({"stop": [1]}, TypeError, r"stop: found \[1\]; allowed: strings"),
        ({"budget": 3}, TypeError, "budget: found 3; allowed: a Budget"),
        ({"retries": 10}, ValueError, "retries: found 10; allowed: 0 to 9"),
        ({"retries": 1, "max_attempts": 2}, ValueError, "retries: max_attempts says the same"),
        ({"messages": [{"role": "system", "content": "x"}]}, ValueError, r"messages\[0\].role: found system; the prompt of"),
        ({"messages": [{"role": "robot", "content": "x"}]}, ValueError, r"messages\[0\].role: "),
        ({"messages": "x"}, ValueError, "messages: found"),
        ({"temprature": 1}, TypeError, "found no option 'temprature'; did you mean 'temperature'"),
    ],
)
def test_option_that_is_wrong_is_named(options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        model_with(REPLY).run(summarize, {"text": "x"}, **options)


def test_option_of_a_task_that_does_not_exist_is_named() -> None:
    with pytest.raises(TypeError, match="found no option 'temprature'; did you mean 'temperature'"):
        task(summarize_it, temprature=1)  # type: ignore[call-overload]


def test_runs_share_a_budget() -> None:
    budget = Budget(max_calls=2)
    own = summarize.with_options(runtime=model_with(REPLY), budget=budget)
    results = own.map([{"text": "x"}] * 4, concurrency=1)
    assert [result.ok for result in results] == [True, True, False, False]
    assert results[2].error is not None and results[2].error.code == "E4002"
    assert budget.spent["calls"] == 2 and repr(budget).startswith("Budget(calls=2, ")
    with pytest.raises(ValueError, match="a budget needs a limit: max_cost, max_tokens or max_calls"):
        Budget()
    with pytest.raises(ValueError, match="max_cost: allowed: US dollars, 0 and more"):
        Budget(max_cost=-1)


def test_tool_is_pickled_by_its_name_or_its_function() -> None:
    assert pickle.loads(pickle.dumps(fetch)) is fetch
    copy = pickle.loads(pickle.dumps(tool(name="again", confirm=True)(look_up)))
    assert (copy.name, copy.function, copy._options["confirm"]) == ("again", look_up, True)


def look_up(key: str) -> str:
    """Looks up."""
    return key


def test_module_is_saved_as_a_directory(offline: CognitiveRuntime, tmp_path: Path) -> None:
    directory = summarize.save(tmp_path)
    assert directory == tmp_path / "summarize"
    report = offline.validate(directory, level="v2.2")
    assert report.valid, str(report)
    assert offline.load(directory).input_schema == offline.load(summarize).input_schema
    with pytest.raises(FileExistsError):
        summarize.save(tmp_path)


def test_type_of_the_answer_becomes_a_module(offline: CognitiveRuntime) -> None:
    made = task(Summary, name="short", tier="exploration", version="2.0.0", excludes=["opinions"])
    assert repr(made) == "Task(name='short')"
    loaded = offline.load(made)
    assert (loaded.name, loaded.version, loaded.tier) == ("short", "2.0.0", "exploration")
    assert loaded.input_schema is not None and loaded.input_schema["required"] == ["query"]
    named = task(prompt="Do it.", input=dict[str, int])(Summary)
    assert named.name == "summary" and '"additionalProperties"' in named.files["schema.json"]


def test_answer_that_is_no_object_is_its_result(offline: CognitiveRuntime) -> None:
    def count_words(text: str) -> int:
        """Count the words."""
        return 0

    schema = offline.load(task(count_words)).data_schema
    assert schema is not None and schema["properties"]["result"] == {"type": "integer"}
    assert task(count_words).name == "count-words"


def reply(data: Any) -> str:
    return json.dumps({"ok": True, "meta": {"confidence": 0.9, "risk": "none", "explain": "Done."}, "data": data})


def test_answer_that_is_no_object_is_unwrapped() -> None:
    def list_issues(text: str) -> list[Summary]:
        """List the issues."""
        return []

    class Titles(pydantic.RootModel[list[str]]):
        """List the titles."""

    data = {"result": [{"title": "A", "sentences": []}], "rationale": "It is so."}
    own = CognitiveRuntime(providers={"mine": Scripted(reply(data))}, provider="mine")
    result = own.execute(task(list_issues), {"text": "x"})
    assert result.as_type(list[Summary]) == [Summary("A", [])]
    assert result.as_type(dict[str, Any]) == data
    with pytest.raises(DataError, match=r"^data\.result\[0\]: expected int"):
        result.as_type(list[int])
    titles = CognitiveRuntime(providers={"mine": Scripted(reply({"result": ["A"], "rationale": "So."}))}, provider="mine")
    assert titles.execute(task(Titles), "x").as_type(Titles).root == ["A"]
    either = CognitiveRuntime(providers={"mine": Scripted(reply({"result": None, "rationale": "So."}))}, provider="mine")
    optional: Any = task(prompt="Find it.", name="find")(Summary)
    assert either.execute(_optional(), {"text": "x"}).as_type(Summary | None) is None
    assert optional.name == "find"


def _optional() -> ModuleFiles:
    def find(text: str) -> Summary | None:
        """Find the summary."""

    return task(find)


class Strict(pydantic.BaseModel, extra="forbid"):
    """Name the title."""

    title: str
    reason: str = pydantic.Field(default="", alias="why")


def test_model_that_forbids_other_fields_takes_the_answer() -> None:
    insights = {"insights": [{"text": "a", "suggested_mapping": "data.b"}]}
    data = {"title": "A", "why": "b", "rationale": "It is so.", "extensions": insights}
    own = CognitiveRuntime(providers={"mine": Scripted(reply(data))}, provider="mine")
    result = own.execute(task(Strict), "x")
    assert result.as_type(Strict) == Strict(title="A", why="b")
    with pytest.raises(DataError, match=r"data\.more: Extra inputs"):
        Result(reply({**data, "more": 1})).as_type(Strict)


def test_made_module_streams(offline: CognitiveRuntime) -> None:
    chunks = list(offline.execute_stream(summarize, {"text": "It rained."}))
    assert len(chunks) > 2 and "W4010" not in json.dumps(chunks)
    result = offline.execute(summarize, {"text": "It rained."})
    assert result.ok and "W4010" not in [warning["code"] for warning in result.warnings]


def test_halted_run_of_a_made_module_continues() -> None:
    deleted: list[str] = []

    @tool(confirm=True, side_effects=True)
    def delete(name: str) -> str:
        """Deletes it."""
        deleted.append(name)
        return "gone"

    @task(tools=["delete"])
    def clean(text: str) -> Summary:
        """Delete what is old."""
        raise AssertionError

    files = {**clean.files, "module.yaml": clean.files["module.yaml"].replace(
        '{"tools_allowed": true}', '{"tools_allowed": true, "side_effects": allow}'
    )}
    made = ModuleFiles("clean", files)
    model = Scripted(calls(("delete", {"name": "old"})), REPLY, calls(("delete", {"name": "older"})), REPLY)
    own = CognitiveRuntime(providers={"mine": model}, provider="mine", tools=[delete])
    halted = [own.execute(made, {"text": "x"}).error for _ in range(1)]
    assert halted[0] is not None and halted[0].code == "E4007", halted
    name = halted[0].details["halted"]["id"]
    with pytest.raises(CognitiveError, match="E4006"):
        own.continue_run(name, confirm="YES").raise_for_error()
    assert own.continue_run(name, confirm="YES", module=made).raise_for_error().ok and deleted == ["old"]

    async def later() -> Result:
        error = (await own.execute_async(made, {"text": "x"})).error
        assert error is not None
        return await own.continue_run_async(error.details["halted"]["id"], confirm="YES", module=made)

    assert asyncio.run(later()).ok and deleted == ["old", "older"]


def test_what_makes_no_module_is_named() -> None:
    def silent(text: str) -> None: ...

    def endless(text: str):  # type: ignore[no-untyped-def]
        """Talk."""

    with pytest.raises(ValueError, match="silent: the model needs a prompt; write a docstring"):
        task(silent)
    with pytest.raises(TypeError, match="endless: the function has no return type"):
        task(endless)
    def same(one: NamedLeft) -> NamedRight:
        """Compare."""
        raise AssertionError

    with pytest.raises(TypeError, match="summarize: input is for a type; a function gives the input by its parameters"):
        task(summarize_it, name="summarize", input=Summary)
    with pytest.raises(TypeError, match="same: answer: two different types have the name Part"):
        task(same)
    with pytest.raises(CognitiveError, match="E4008"):
        task(Summary, name="Not A Name")
    with pytest.raises(CognitiveError, match="E4008"):
        ModuleFiles("empty", {})


def test_render_sends_nothing(tmp_path: Path, runtime: CognitiveRuntime, mock: Any) -> None:
    rendered = runtime.render("code-reviewer", {"code": "fn main() {}"})
    assert [message["role"] for message in rendered["messages"]] == ["system", "user"]
    assert rendered["request"]["url"].endswith("/chat/completions") and rendered["provider"] == "openai"
    assert "sk-test" not in json.dumps(rendered) and mock.requests == []
    model = Scripted()
    own = CognitiveRuntime(providers={"mine": model}, provider="mine")
    assert own.render(agent(tmp_path), INPUT)["provider"] == "mine" and model.requests == []
    with pytest.raises(CognitiveError, match="E1003"):
        runtime.render("code-reviewer", {"code": 1})


def test_verify_is_the_command(offline: CognitiveRuntime, tmp_path: Path) -> None:
    answer = json.loads(ANSWER)
    for document in (ANSWER, ANSWER.encode(), answer):
        verdict = offline.verify(document)
        assert (verdict.valid, verdict.kind, verdict.violations) == (True, "envelope", []), verdict.to_dict()
    folder = agent(tmp_path)
    assert offline.verify(answer, module=folder).valid
    del answer["data"]["text"]
    verdict = offline.verify(answer, kind="envelope", module=folder)
    assert not verdict.valid and verdict.violations[0]["path"] == "data.text"
    assert repr(verdict) == "Verdict(valid=False, violations=1)"
    assert not offline.verify(b"\xff").valid and not offline.verify("{").valid
    assert offline.verify(offline.execute("code-reviewer", {"code": "x"})).valid
    with pytest.raises(ValueError, match='kind: found "letter"; allowed: envelope'):
        offline.verify(answer, kind="letter")  # type: ignore[arg-type]
    with pytest.raises(CognitiveError, match="E4006"):
        offline.verify(answer, module="no-such-module")
    with pytest.raises(TypeError, match="path.read_bytes"):
        offline.verify(tmp_path)
    with pytest.raises(TypeError, match=r"use verdict\.valid"):
        assert verdict
