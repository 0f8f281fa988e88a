"""The clients of docs/clients.md in Go, Java and C#, compiled and run: the same answer as one envelope and as a stream, and errors.

Started by `cargo xtask clients`, which installs what it needs and says in COG and COG_MOCK where the programs are.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile

from servers import ANSWER, LIVE, TOKEN, serve

PAGE = pathlib.Path(__file__).parents[4] / "docs" / "clients.md"
# By the name of the block: the file, the command that compiles it, and the command that runs it.
LANGUAGES = {
    "go": ("client.go", ["go", "build", "-o", "client", "client.go"], ["./client"]),
    "java": ("Client.java", ["javac", "Client.java"], ["java", "Client"]),
    "csharp": (
        "Client.cs",
        ["mcs", "-r:System.Net.Http", "-r:System.Runtime.Serialization", "-r:System.Xml", "-r:System.Xml.Linq", "Client.cs"],
        ["mono", "Client.exe"],
    ),
}


def compiled(language, directory):
    """The command of a client, which is compiled in this directory."""
    file, compile_, run = LANGUAGES[language]
    source = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)
    (directory / file).write_text(source)
    subprocess.run(compile_, cwd=directory, env=environment(directory), check=True)
    return run


def environment(directory, token=None):
    """The variables of a client."""
    own = {"PATH": os.environ["PATH"], "HOME": str(directory), "LC_ALL": "C.UTF-8", "GO111MODULE": "off"}
    return own | ({"COG_TOKEN": token} if token else {})


def called(run, directory, address, input_, module="m", token=TOKEN):
    """What a client prints for an input."""
    command = [*run, address, module, json.dumps(input_)]
    return subprocess.run(command, cwd=directory, env=environment(directory, token), capture_output=True, text=True)


def fails(output, code):
    """The client ends with the code of the error."""
    assert output.returncode == 1 and code in output.stderr, output


def check(language):
    """The client against a server that has tokens."""
    with tempfile.TemporaryDirectory() as name, serve(token=True, **LIVE) as address:
        directory = pathlib.Path(name)
        run = compiled(language, directory)
        output = called(run, directory, address, {"query": "why?"})
        assert output.returncode == 0, output.stderr
        lines = [line.partition(" ")[::2] for line in output.stdout.split("\n")]
        # The client in Go prints the data, the others the envelope.
        answers = [json.loads(rest) for name, rest in lines if name == "answer"]
        assert [answer.get("data", answer) for answer in answers] == [ANSWER["data"]] * 2, output.stdout
        chunks = [json.loads(rest) for name, rest in lines if name == "chunk"]
        assert len(chunks) > 5, output.stdout
        fails(called(run, directory, address, {}), "E1002")
        fails(called(run, directory, address, {"query": "why?"}, module="nothing"), "E4006")
        fails(called(run, directory, address, {"query": "why?"}, token=None), "E4007")
    print(f"  {language}: the same answer twice, {len(chunks)} chunks, three errors", flush=True)


for language in LANGUAGES:
    check(language)
