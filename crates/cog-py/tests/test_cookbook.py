"""The programs of the cookbook and of the page about other packages run as they are."""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from fastapi.testclient import TestClient
from test_host import pdf

from cognitive import ToolCall, _functions, testing

DOCS = Path(__file__).parents[3] / "docs"


def programs(page: str) -> Iterator[tuple[str, str]]:
    """Yields the headings of a page with their programs."""
    for section in (DOCS / page).read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            yield heading, code


def receipt(total: float) -> Any:
    return {"shop": "Corner", "items": [{"name": "tea", "price": 1.5}, {"name": "cake", "price": 2.5}], "total": total}


def echo(request: Any) -> Any:
    return str(request.messages[-1]["content"]).upper()


def language(request: Any) -> Any:
    text = str(request.messages[-1]["content"])
    return "de" if "Guten" in text else "fr" if "Bonjour" in text else "en"


COOKBOOK: dict[str, tuple[tuple[Any, ...], str]] = {
    "A receipt whose sums are checked": ((receipt(5), receipt(4)), "4.0\n"),
    "Triage of tickets": (({"kind": "billing", "urgency": "high", "reply": "Sorry."},), "billing high 0.9\n"),
    "Extraction from a PDF": (
        ({"parties": ["Ada", "Bo"], "signed": "2026-11-01", "notice_months": 3},),
        "['Ada', 'Bo'] 3\n",
    ),
    "Streaming to a terminal or a page": (
        ({"title": "Rain", "paragraphs": ["It rained.", "It stopped."]},),
        "\rRain\nIt rained.\nIt stopped.\n",
    ),
    "An agent with tools and approval": (
        (
            ToolCall(name="find_orders", arguments={"customer": "Ada"}),
            ToolCall(name="refund", arguments={"order": "A7"}),
            "It is refunded.",
        ),
        "wants to call ('refund', {'order': 'A7'})\nIt is refunded.\n",
    ),
    "A data frame": (({"mood": "glad", "score": 1},), "NaN"),
    "A batch that continues": ((echo,), "3 0 3\n0\n"),
    "An evaluation": ((language,), "3 of 3 are right, True\n"),
    "Images": ((["a red square"],), "['a red square']\n"),
    "Examples and history": (("six", "seven"), "six\nseven\n"),
    "Stored answers": (("Water that falls.",), "False\nTrue\nFalse\n"),
    "A service, and its tests": (("not called",), "the tests pass\n"),
}


def run(code: str) -> dict[str, Any]:
    """Runs a program as a file of its own."""
    Path("recipe.py").write_text(code)
    return runpy.run_path("recipe.py", run_name="recipe")


@pytest.mark.parametrize(("heading", "code"), list(programs("python-cookbook.md")), ids=lambda value: value[:20])
def test_program_of_the_cookbook_runs(
    heading: str, code: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, expected = COOKBOOK[heading]
    Path("contract.pdf").write_bytes(pdf("The notice period is three months."))
    PIL.Image.new("RGB", (8, 8)).save("receipt.png")
    monkeypatch.setattr(_functions, "_default", None)
    if heading == "Stored answers":
        monkeypatch.setenv("COG_CACHE_DIRECTORY", "answers")
    with testing.use(*answers):
        run(code)
    printed = capsys.readouterr().out
    assert printed == expected if heading != "A data frame" else "glad" in printed and "E1002" in printed


STORY = {"title": "Rain", "text": "It rained."}
MIGRATIONS: dict[str, tuple[Any, ...]] = {
    "A receipt with a validator, three tries": tuple(
        {"shop": "Corner", "at": "2026-11-01T08:30:00", "prices": [1.5, 2.5], "total": total} for total in (5, 6, 4)
    ),
    "Tickets of a data frame": ({"kind": "bug", "reply": "Sorry."},),
    "Server-sent events": (STORY,),
    "An agent whose tool is tried again, with a test": ("not called",),
    "Examples, history and temperature": ("six",),
}
PRINTED = {
    "A receipt with a validator, three tries": "4.0\n",
    "Server-sent events": "",
    "An agent whose tool is tried again, with a test": "",
    "Examples, history and temperature": "six\n",
}


@pytest.mark.parametrize(("heading", "code"), list(programs("python-migration.md")), ids=lambda value: value[:20])
def test_program_of_the_migration_page_runs(
    heading: str, code: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_functions, "_default", None)
    with testing.use(*MIGRATIONS[heading]) as model:
        made = run(code)
        if "app" in made:
            lines = TestClient(made["app"]).get("/story", params={"topic": "rain"}).text.split("\n\n")
            assert json.loads(lines[-2].removeprefix("data: ")) == {**STORY, "": ""} and model.calls == 1
    printed = capsys.readouterr().out
    assert printed == PRINTED[heading] if heading in PRINTED else "bug" in printed and "E1002" in printed


def test_lines_of_the_migration_page_are_counted() -> None:
    table = dict(re.findall(r"^\| \[(.+?)\].*\| (\d+ \| \d+) \|$", (DOCS / "python-migration.md").read_text(), re.MULTILINE))
    names = ("receipt", "tickets", "page", "agent", "history")
    for name, (heading, code) in zip(names, programs("python-migration.md")):
        original = (Path(__file__).parents[1] / f"benches/originals/{name}.py").read_text()
        theirs, ours = map(int, table.pop(heading).split(" | "))
        assert (theirs, ours) == (lines(original), lines(code)), heading
        assert ours < theirs
    assert not table


def lines(program: str) -> int:
    return sum(bool(line.strip()) for line in program.splitlines())


def test_every_program_has_its_expectation() -> None:
    assert [heading for heading, _ in programs("python-cookbook.md")] == list(COOKBOOK)
    assert json.dumps(len(COOKBOOK)) == "12"
