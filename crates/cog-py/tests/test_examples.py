"""The examples run as they are."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest


def test_tour_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "tour.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.startswith("<CognitiveRuntime: offline")
    assert "input.code: JSON has no form for object" in printed and "10 runs and" in printed


def test_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[1] / "README.md").read_text(), re.DOTALL)
    exec(blocks[0], {})
    assert capsys.readouterr().out.strip() in {"approve", "change", "reject"}
