"""What the operator's machine adds to runs: readers of documents, and MCP servers."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import subprocess
import sys
import wave
from pathlib import Path
from typing import Any

import pytest
from conftest import Mock
from scripted import ANSWER, INPUT, MANIFEST, SCHEMA, Scripted, agent, calls

from cognitive import CognitiveRuntime

SERVER = Path(__file__).parents[2] / "cog/tests/tools/mcp_server.py"


def pdf(text: str) -> bytes:
    """A PDF of one page."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 5 0 R "
        "/Resources << /Font << /F1 3 0 R >> >> >>",
        f"<< /Length {len(content)} >>\nstream\n{content}\nendstream",
    ]
    out, table = "%PDF-1.7\n", f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    for number, body in enumerate(objects, 1):
        table += f"{len(out):010} 00000 n \n"
        out += f"{number} 0 obj\n{body}\nendobj\n"
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return (out + table + trailer).encode()


def wav(seconds: float) -> bytes:
    """A sound file of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(bytes(int(seconds * 16000)))
    return file.getvalue()


def film(directory: Path) -> Path:
    """A video of two seconds with a tone."""
    path = directory / "film.mp4"
    inputs = "-f lavfi -i testsrc=d=2:s=64x48:r=10 -f lavfi -i sine=d=2"
    subprocess.run(["ffmpeg", "-loglevel", "error", *inputs.split(), str(path)], check=True)
    return path


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """A module that reads documents, audio and video."""
    module = agent(tmp_path, MANIFEST + "modalities: { input: [text, document, audio, video] }\n")
    schema = json.loads(json.dumps(SCHEMA))
    schema["input"]["properties"]["file"] = {"$ref": "#/$defs/MediaInput"}
    (module / "schema.json").write_text(json.dumps(schema))
    return module


def test_document_is_read_in_a_process_of_its_own(reader: Path, tmp_path: Path) -> None:
    contract = tmp_path / "contract.pdf"
    contract.write_bytes(pdf("The notice period is three months."))
    model = Scripted()
    own = CognitiveRuntime(providers={"mine": model}, provider="mine")
    for file in (contract, contract.read_bytes()):
        result = own.execute(reader, {"query": "How long?", "file": file})
        assert result.ok, result.error
        assert "The notice period is three months." in str(model.requests[-1].messages)


@pytest.mark.parametrize(
    ("name", "value"), [("frozen", True), ("executable", "/opt/app/app"), ("executable", "/usr/bin/uwsgi")]
)
def test_program_that_is_no_interpreter_is_not_started(
    reader: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(sys, name, value, raising=False)
    own = CognitiveRuntime(providers={"mine": Scripted()}, provider="mine")
    result = own.execute(reader, {"query": "How long?", "file": pdf("Three months.")})
    assert result.error is not None and result.error.code == "E4011", result.error
    assert "no process that could read it" in result.error.message


def test_sources_are_not_installed_on_another_interpreter() -> None:
    backend = Path(__file__).parents[1]
    program = "import platform; platform.python_implementation = lambda: 'PyPy'; import build_backend"
    done = subprocess.run([sys.executable, "-c", program], cwd=backend, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("cognitive needs CPython, and this is PyPy: the native module uses")


def test_damaged_document_is_an_error(reader: Path) -> None:
    own = CognitiveRuntime(providers={"mine": Scripted()}, provider="mine")
    result = own.execute(reader, {"query": "How long?", "file": b"%PDF-1.7\nnothing"})
    assert result.error is not None and result.error.code == "E1013", result.error


def test_audio_is_sent_to_a_model_that_takes_it(
    reader: Path, tmp_path: Path, mock: Mock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", mock.url)
    mock.reply = ANSWER
    call = tmp_path / "call.wav"
    call.write_bytes(wav(0.5))
    own = CognitiveRuntime(provider="openai", model="gpt-audio")
    for file in (call, call.read_bytes()):
        result = own.execute(reader, {"query": "What is said?", "file": file})
        assert result.ok, result.error
        audio = [part["input_audio"] for part in mock.requests[-1]["messages"][-1]["content"] if "input_audio" in part]
        assert [(one["format"], base64.b64decode(one["data"])[:4]) for one in audio] == [("wav", b"RIFF")]


def test_audio_is_checked_before_a_model_is_called(reader: Path) -> None:
    model = Scripted()
    own = CognitiveRuntime(providers={"mine": model}, provider="mine")
    for file, code in ((wav(601), "E1011"), (b"RIFF\x24\0\0\0WAVEnothing", "E1013"), (wav(1), "E4011")):
        result = own.execute(reader, {"query": "What is said?", "file": file})
        assert result.error is not None and result.error.code == code, (code, result.error)
    assert model.requests == []


def test_video_becomes_frames_for_a_model_that_takes_images(reader: Path, tmp_path: Path) -> None:
    model = Scripted()
    model.images = True
    own = CognitiveRuntime(providers={"mine": model}, provider="mine")
    path = film(tmp_path)
    for file in (path, path.read_bytes()):
        result = own.execute(reader, {"query": "What happens?", "file": file})
        assert result.ok, result.error
        assert str(model.requests[-1].messages).count("data:image/jpeg;base64,") == 2


def settings(text: str) -> None:
    file = Path.home() / ".config/cog/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)


def test_tools_of_a_server_are_called(tmp_path: Path) -> None:
    settings(f"[mcp.test]\ncommand = {json.dumps(sys.executable)}\nargs = [{json.dumps(str(SERVER))}, \"stdio\"]\n")
    requested = calls(("test__add", {"a": 1, "b": 2}), ("test__fail", {"reason": "no"}))
    model = Scripted(requested, ANSWER, requested, ANSWER)
    own = CognitiveRuntime(providers={"mine": model}, provider="mine")
    module = agent(tmp_path)
    for _ in range(2):
        assert own.execute(module, INPUT).ok
        added, failed = model.results()
        assert added["status"] == "success" and "3" in json.dumps(added)
        assert failed["status"] == "error" and failed["error_type"] == "ToolError"


def test_required_server_that_cannot_be_started_is_an_error_of_modules_with_its_tools(tmp_path: Path) -> None:
    settings('[mcp.test]\ncommand = "/nowhere/server"\nrequired = true\n')
    own = CognitiveRuntime(providers={"mine": Scripted()}, provider="mine")
    assert own.execute("code-reviewer", {"code": "x"}, provider="offline").ok
    result = own.execute(agent(tmp_path), INPUT)
    assert result.error is not None and result.error.code == "E4001"
    assert "/nowhere/server" in result.error.message


def test_run_goes_on_without_a_server_that_cannot_be_started(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings('[mcp.test]\ncommand = "/nowhere/server"\n')
    own = CognitiveRuntime(providers={"mine": Scripted()}, provider="mine")
    assert own.execute(agent(tmp_path), INPUT).ok
    assert "/nowhere/server" in caplog.text


def log() -> list[dict[str, Any]]:
    file = Path.home() / ".local/state/cog/logs/runs.ndjson"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_runs_are_in_the_log(tmp_path: Path) -> None:
    own = CognitiveRuntime(providers={"mine": Scripted()}, provider="mine")
    module = agent(tmp_path)
    assert own.execute(module, INPUT).ok
    asyncio.run(own.execute_async(module, INPUT))
    list(own.execute_stream(module, INPUT))
    assert not own.execute(module, {"query": 5}).ok
    logged = log()
    assert [entry["ok"] for entry in logged] == [True, True, True, False]
    assert [entry["module"] for entry in logged] == ["agent"] * 4
    assert logged[0]["requested_provider"] == "mine" and logged[0]["model"] == "mine/scripted-1"
    assert logged[3]["code"] == "E1003" and "contents" not in logged[0]


def test_log_has_what_the_run_requested(tmp_path: Path) -> None:
    own = CognitiveRuntime(providers={"mine": Scripted(), "other": Scripted()}, provider="mine", model="usual")
    module = agent(tmp_path)
    for options in ({}, {"provider": "other"}, {"provider": "other", "model": "large"}, {"model": "small"}):
        own.execute(module, INPUT, **options)  # type: ignore[arg-type]
    requested = [(entry["requested_provider"], entry.get("requested_model")) for entry in log()]
    assert requested == [("mine", "usual"), ("other", None), ("other", "large"), ("mine", "small")]


def test_settings_turn_the_log_off_and_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COG_LOGS_ENABLED", "off")
    assert CognitiveRuntime(provider="offline").execute("code-reviewer", {"code": "x"}).ok
    assert log() == []
    monkeypatch.delenv("COG_LOGS_ENABLED")
    settings("[logs]\ncontents = true\n")
    assert CognitiveRuntime(provider="offline").execute("code-reviewer", {"code": "x"}).ok
    assert log()[0]["contents"]["input"] == {"code": "x"} and log()[0]["contents"]["envelope"]["ok"]
