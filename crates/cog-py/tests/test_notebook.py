"""Cards and streams in notebooks."""

from __future__ import annotations

import html.parser
import json
import re
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest
from conftest import ANSWER, Mock

from cognitive import CognitiveRuntime, Result

def test_card_shows_the_cost() -> None:
    usage = {"input_tokens": 11, "output_tokens": 7, "cost": {"amount": 0.0123, "currency": "USD", "source": "genai-prices", "date": "2026-10-26"}}
    meta = {"confidence": 0.9, "risk": "low", "explain": "x", "usage": usage}
    card = Result(json.dumps({"ok": True, "meta": meta, "data": {"a": 1}}))._repr_html_()
    assert "11 + 7 tokens · 0.0123 USD" in card


NOTEBOOK = Path(__file__).parents[1] / "examples" / "notebook.ipynb"
SCRIPT = "<script>alert('x')</script>&\""


class Tags(html.parser.HTMLParser):
    """The tags that are open, and all texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style", "open"}, "a card loads nothing and runs nothing"
        assert tag in {"div", "span", "details", "summary", "pre", "table", "tr", "td"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def text(shown: Any) -> str:
    card = Tags(shown._repr_html_())
    assert card.open == []
    return card.text


def test_card_of_a_result_is_escaped() -> None:
    meta = {"confidence": 0.9, "risk": "low", "explain": SCRIPT, "model": SCRIPT, "processing_time_ms": 1200}
    warnings = [{"code": "W2001", "message": SCRIPT}]
    shown = text(Result(json.dumps({"ok": True, "meta": meta, "data": {SCRIPT: SCRIPT}, "_warnings": warnings})))
    assert shown.count("<script>alert('x')</script>") == 5
    assert shown.startswith("ok" + SCRIPT + "confidence 90% · risk low · ")
    assert "1,200 ms" in shown and "W2001" in shown


def test_card_of_a_failed_run(offline: CognitiveRuntime) -> None:
    result = offline.execute("code-reviewer", {"code": 1})
    assert result.error is not None
    assert text(result).startswith("E1003" + result.error.message)
    assert text(result.error) in text(result).replace("confidence 0% · risk high", "")
    meta = {"confidence": None, "risk": {"custom": "x", "reason": "y"}, "explain": "e"}
    error = {"code": "E5001", "message": SCRIPT, "suggestion": SCRIPT, "details": {"a": SCRIPT}}
    partial = {"rationale": SCRIPT}
    failed = Result(json.dumps({"ok": False, "meta": meta, "error": error, "partial_data": partial}))
    assert text(failed).count("<script>") == 4
    with pytest.raises(Exception, match="E5001") as raised:
        failed.raise_for_error()
    assert text(raised.value) == text(failed)


def test_card_of_a_module(offline: CognitiveRuntime, tmp_path: Path) -> None:
    shown = text(offline.load("code-reviewer"))
    assert shown.startswith("code-reviewer 1.0.0") and "The code to review" in shown and "language?" in shown
    module = tmp_path / "odd"
    module.mkdir()
    (module / "module.yaml").write_text(f"name: odd\nversion: 1.0.0\nresponsibility: {json.dumps(SCRIPT)}\ntier: exec\n")
    (module / "prompt.md").write_text("Echo.\n")
    fields = {SCRIPT: {"type": ["string", "null"], "description": SCRIPT}, "b": {"enum": ["x"]}, "c": True}
    schema = {"input": {"type": "object", "properties": fields}, "data": {"type": "object"}}
    (module / "schema.json").write_text(json.dumps(schema))
    shown = text(offline.load(module))
    assert shown.count("<script>") == 3 and "string | null" in shown and str(module) in shown


def test_card_of_a_long_answer_is_shortened() -> None:
    result = Result(json.dumps({**ANSWER, "data": {"a": "x" * 100_000}}))
    assert "80,013 more characters" in text(result)
    assert len(result._repr_html_()) < 30_000


def test_stream_needs_a_notebook_to_be_shown(offline: CognitiveRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(ImportError, match="needs IPython"):
        offline.execute_stream("code-reviewer", "x").display()


def test_notebook_runs(mock: Mock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", mock.url)
    mock.pause = 0.01
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(shown), "every cell shows something"
    cards = [output["data"]["text/html"] for outputs in shown for output in outputs if "text/html" in output.get("data", {})]
    assert len(cards) == 4, "a module, a result, an error and a stream"
    assert all(Tags(card).open == [] for card in cards)
    assert re.search("approve", cards[-1]), "the stream ends with its result"
    nbformat.write(notebook, tmp_path / "notebook.ipynb")
