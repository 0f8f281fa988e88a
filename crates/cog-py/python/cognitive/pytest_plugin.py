"""Fixtures for pytest, which finds them by itself.

Tests do not call the models of vendors: a run that would do so raises ``ModelCallRefused``. The marker ``model_calls`` allows it for a
test, and ``cognitive_calls = "allow"`` in the settings of pytest for all.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .testing import TestModel


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the setting and the option."""
    parser.addini("cognitive_calls", 'whether tests may call the models of vendors: "allow" or "refuse"', default="refuse")
    parser.addoption("--cognitive-record", action="store_true", help="call models, and record the cassettes of tests again")


def pytest_configure(config: pytest.Config) -> None:
    """Adds the marker."""
    config.addinivalue_line("markers", "model_calls: the test may call the models of vendors")


@pytest.fixture(autouse=True)
def _cognitive_calls(request: pytest.FixtureRequest) -> Iterator[None]:
    is_allowed = request.config.getini("cognitive_calls") == "allow" or request.node.get_closest_marker("model_calls")
    if is_allowed:
        yield
        return
    from . import testing

    with testing.refuse_calls():
        yield


@pytest.fixture
def cognitive_cassette(request: pytest.FixtureRequest) -> Iterator[pathlib.Path]:
    """A cassette of the test: ``cassettes/FILE/TEST`` next to its file. ``pytest --cognitive-record`` calls the models, and records it."""
    from . import testing

    name = re.sub(r"[^\w\[\].-]", "_", request.node.name)
    directory = request.path.parent / "cassettes" / request.path.stem / name
    records = bool(request.config.getoption("--cognitive-record"))
    with contextlib.ExitStack() as stack:
        if records:
            stack.enter_context(testing.allow_calls())
        stack.enter_context(testing.cassette(directory, record=records))
        yield directory


@pytest.fixture
def cognitive_model() -> Iterator[TestModel]:
    """A model that answers all tasks and functions of modules with examples, or with ``cognitive_model.answers = (...,)``."""
    from . import testing

    with testing.use() as model:
        yield model
