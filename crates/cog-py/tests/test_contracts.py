"""Types of modules in other languages, and conformance levels."""

from __future__ import annotations

import socket

import pytest

from cognitive import CognitiveError, CognitiveRuntime, check_conformance, module_types


def test_types_of_a_module_are_printed(offline: CognitiveRuntime) -> None:
    module = offline.load("code-reviewer")
    python = module_types([module])
    assert "class CodeReviewerInput(TypedDict):" in python
    assert "def code_reviewer(" in python
    compile(python, "code_reviewer.py", "exec")
    assert "export interface CodeReviewerInput" in module_types([module], "typescript", functions=False)
    assert "pub mod code_reviewer" in module_types([module], "rust")
    with pytest.raises(ValueError, match='unknown language "go"'):
        module_types([module], "go")  # type: ignore[arg-type]


def test_runtime_that_does_not_respond_has_no_level() -> None:
    with socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        port: int = used.getsockname()[1]
    with pytest.raises(CognitiveError, match="does not respond") as failure:
        check_conformance("http://127.0.0.1:9", mock_port=port)
    assert failure.value.code == "E4001"
