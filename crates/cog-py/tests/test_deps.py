"""Objects of the program that tools and checks receive."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import pickle
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from scripted import ANSWER, INPUT, Scripted, agent, calls
from typing_extensions import assert_type

from cognitive import CognitiveError, CognitiveRuntime, Deps, ModelRequest, Pending, Result, Task, ToolCall, task, testing, tool


@dataclasses.dataclass
class Shop:
    stock: dict[str, int]
    asked: list[str] = dataclasses.field(default_factory=list)


class Named(Protocol):
    stock: dict[str, int]


def stock_of(article: str, shop: Deps[Shop]) -> int:
    """Returns how many are in stock."""
    shop.asked.append(article)
    return shop.stock[article]


@tool
async def stock_later(shop: Deps[Shop], article: str) -> int:
    """Returns how many are in stock."""
    await asyncio.sleep(0)
    return stock_of(article, shop)


@task(tools=[stock_of, stock_later], retries=1)
def sell(wish: str, shop: Deps[Shop]) -> str:
    """Choose the article that the customer wants."""
    raise NotImplementedError


@sell.check
def is_in_stock(article: str, wish: str, shop: Deps[Shop]) -> None:
    if not shop.stock.get(article):
        raise ValueError(f"{article!r} is sold out")


if TYPE_CHECKING:
    # mypy reports an unused comment, so that these must be errors.
    async def types(shop: Shop) -> None:
        assert_type(sell("x", shop), str)
        assert_type(sell.run(wish="x", shop=shop), Result[str | None])
        assert_type(await sell.aio("x", shop), str)
        async for partial in sell.stream("x", shop):
            assert_type(partial.value, str)
        assert_type(stock_of("x", shop), int)
        assert_type(await stock_later(shop, "x"), int)
        sell("x", 3)  # type: ignore[arg-type]
        sell("x")  # type: ignore[call-arg]
        await stock_later("x", shop)  # type: ignore[arg-type]


def with_model(*answers: Any) -> tuple[Task[[str, Shop], str], testing.TestModel]:
    model = testing.TestModel(*answers)
    return sell.with_options(runtime=testing.runtime(model)), model


def results(request: ModelRequest) -> list[Any]:
    """The results of tools that a model received."""
    return [json.loads(message["content"])["result"] for message in request.messages if message["role"] == "tool"]


def test_tools_and_checks_receive_the_object_of_the_call() -> None:
    own, model = with_model(
        ToolCall(name="stock_of", arguments={"article": "pear"}), ToolCall(name="stock_later", arguments={"article": "fig"}), "pear", "fig"
    )
    shop = Shop({"pear": 0, "fig": 3})
    assert own("a sweet one", shop) == "fig"
    assert shop.asked == ["pear", "fig"] and model.calls == 4
    assert "'pear' is sold out" in model.last_input
    assert results(model.requests[2]) == [0, 3]


def test_model_and_contract_do_not_see_it() -> None:
    own, model = with_model("fig")
    own("x", Shop({"fig": 1}))
    assert model.last_input == '{"wish":"x"}'
    assert [list(one["parameters"]["properties"]) for one in model.requests[0].tools] == [["article"], ["article"]]
    assert list(sell.__cognitive_module__.input_schema or {}) and "shop" not in str(sell.files)


def test_every_way_to_run_has_it() -> None:
    own, _ = with_model("fig")
    shop = Shop({"fig": 1})
    assert own.run("x", shop).data == "fig"
    assert asyncio.run(own.aio("x", shop)) == "fig"
    assert [partial.value for partial in own.stream("x", shop)][-1] == "fig"
    assert own.with_options(deps=shop).map([{"wish": "x"}])[0].data == "fig"
    assert own.runtime.run(own, {"wish": "x"}, deps=shop).ok
    assert own.runtime.map(own, [{"wish": "x"}], deps=shop)[0].ok


def test_simultaneous_runs_have_their_own(tmp_path: Path) -> None:
    """Also of one task of one runtime, from threads and from one event loop."""
    own = task(tools=[stock_of])(choose)
    seen: dict[int, int] = {}

    def run(number: int) -> None:
        shop = Shop({"fig": number})
        model = testing.TestModel(ToolCall(name="stock_of", arguments={"article": "fig"}), "fig")
        own.with_options(runtime=testing.runtime(model), deps=shop)("x")
        (seen[number],) = results(model.requests[-1])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == {number: number for number in range(20)}

    async def many() -> list[str]:
        own, _ = with_model("fig")
        return await asyncio.gather(*(own.aio("x", Shop({"fig": number + 1})) for number in range(20)))

    assert asyncio.run(many()) == ["fig"] * 20


def choose(wish: str) -> str:
    """Choose."""
    raise NotImplementedError


def test_missing_or_wrong_object_is_an_error_before_the_call(tmp_path: Path) -> None:
    own, model = with_model("fig")
    needs = r"stock_of\(shop\): needs deps of the type Shop, "
    with pytest.raises(TypeError, match=needs + r"the run has none; pass deps=\.\.\."):
        own.runtime.run(own, {"wish": "x"}, **own._options)
    with pytest.raises(TypeError, match=needs + "found int"):
        own.with_options(deps=3).map([{"wish": "x"}])
    with pytest.raises(TypeError, match=r"is_in_stock\(shop\): needs deps"):
        own.runtime.run(own, {"wish": "x"})
    with pytest.raises(TypeError, match=r"sell\(shop\): needs deps of the type Shop, found str"):
        own("x", "no shop")  # type: ignore[arg-type]
    assert model.calls == 0


def test_tool_of_the_runtime_reports_it_to_the_model(tmp_path: Path) -> None:
    model = Scripted(calls(("stock_of", {"article": "fig"})), ANSWER)
    runtime = CognitiveRuntime(providers={"scripted": model}, tools=[stock_of])
    result = runtime.run(str(agent(tmp_path)), INPUT)
    assert result.ok and "needs deps of the type Shop" in str(model.results()[0]) and isinstance(result.exceptions[0], TypeError)
    assert runtime.run(str(tmp_path / "agent"), INPUT, deps=Shop({"fig": 2})).ok


def test_runs_of_tools_do_not_inherit_it() -> None:
    inner = task(tools=[stock_of])(choose).with_options(runtime=testing.runtime("x"))

    def ask(wish: str, shop: Deps[Shop]) -> str:
        """Asks another one."""
        return inner(wish)

    outer = task(tools=[ask])(choose)
    model = testing.TestModel(ToolCall(name="ask", arguments={"wish": "x"}), "y")
    result = outer.with_options(runtime=testing.runtime(model), deps=Shop({})).run("x")
    assert result.data == "y" and "the run has none" in str(result.exceptions[0])


def test_optional_object_protocols_and_any() -> None:
    seen: list[Any] = []

    def note(text: str, maybe: Deps[Shop | None], named: Deps[Named], anything: Deps[Any]) -> None:
        """Notes a text."""
        seen.extend([maybe, named, anything])

    own = task(tools=[note])(choose)
    run = own.with_options(runtime=testing.runtime(ToolCall(name="note", arguments={"text": "x"}), "y"))
    shop = Shop({})
    assert run.with_options(deps=shop)("x") == "y" and seen == [shop] * 3
    with pytest.raises(TypeError, match=r"note\(named\): needs deps of the type Named, the run has none"):
        run("x")


def test_task_and_tool_with_it_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(sell)) is sell
    copied = pickle.loads(pickle.dumps(stock_later))
    assert copied is stock_later and asyncio.run(copied(Shop({"fig": 2}), "fig")) == 2


def test_approved_call_has_it() -> None:
    @tool(side_effects=True, confirm=True)
    def order(article: str, shop: Deps[Shop]) -> int:
        """Orders an article."""
        shop.stock[article] += 1
        return shop.stock[article]

    own = task(tools=[order], policies={"side_effects": "allow"})(choose)
    shop = Shop({"fig": 1})

    def halted() -> Pending[str | None]:
        runtime = testing.runtime(ToolCall(name="order", arguments={"article": "fig"}), "y")
        pending = own.with_options(runtime=runtime, deps=shop).run("x").pending
        assert pending is not None and shop.stock == {"fig": 1}
        return pending

    assert halted().deny().data == "y" and shop.stock == {"fig": 1}
    assert halted().approve().data == "y" and shop.stock == {"fig": 2}


def test_failing_call_keeps_its_error() -> None:
    own, _ = with_model("pear")
    with pytest.raises(CognitiveError, match="E3006: .*'pear' is sold out"):
        own("x", Shop({"pear": 0}))
