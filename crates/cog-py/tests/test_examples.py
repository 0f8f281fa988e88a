"""The examples run as they are."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from cognitive import _functions

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_tour_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "tour.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.startswith("<CognitiveRuntime: offline")
    assert "input.code: JSON has no form for object" in printed and "10 runs and" in printed
    assert "['a jacket'] of adviser/adviser-1; the model corrected: ['InvalidDays: Ask for" in printed


def run_readme(directory: Path, block: int) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (directory / "README.md").read_text(), re.DOTALL)
    exec(blocks[block], {})


def test_readme_of_the_package_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_functions, "_default", None)
    run_readme(Path(__file__).parents[1], 0)
    assert capsys.readouterr().out.strip()
    run_readme(Path(__file__).parents[1], 1)
    assert capsys.readouterr().out.strip() in {"approve", "change", "reject"}


def test_readme_of_the_project_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_readme(Path(__file__).parents[3], 0)
    assert capsys.readouterr().out.startswith("high ")


def test_tool_provider_and_module_work_together() -> None:
    ran = subprocess.run([sys.executable, str(EXAMPLES / "agent.py")], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == (
        "Advice(clothes=['a jacket'], temperature=21.5)\n"
        "the model corrected: UnknownCity: Use one of Bern, Oslo.\n"
    )
    assert ran.stderr == ""
