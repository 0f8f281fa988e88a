"""The examples run as they are."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest


def test_tour_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parents[1] / "examples" / "tour.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.startswith("<CognitiveRuntime: offline")
    assert "input.code: JSON has no form for object" in printed and "10 runs and" in printed
