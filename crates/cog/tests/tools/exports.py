"""The exports of every shipped module, read by other people's validators.

Started by the tests of `exports`, with the program as its argument, in an empty directory.
"""

import importlib.resources
import json
import logging
import pathlib
import subprocess
import sys

import jsonschema
import yaml
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import MessageToDict
from openapi_spec_validator import OpenAPIV31SpecValidator
from skills_ref import read_properties, validate

COG = sys.argv[1]
# The keys that Claude Code adds to those of Agent Skills.
CLAUDE_CODE = {"argument-hint", "disable-model-invocation", "user-invocable"}


def cog(*arguments):
    """The output of the program."""
    done = subprocess.run([COG, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


def skill(name):
    cog("export", name, "--as", "skill")
    directory = pathlib.Path(name)
    problems = validate(directory)
    assert not problems, (name, problems)
    properties = read_properties(directory)
    assert properties.name == name and properties.metadata["version"], properties
    program = pathlib.Path(sys.executable).parent / "agentskills"
    done = subprocess.run([program, "validate", name], capture_output=True, text=True)
    assert done.returncode == 0 and "Valid skill" in done.stdout, (name, done)


def claude_code(name):
    directory = pathlib.Path(cog("export", name, "--as", "claude-code").strip())
    assert directory == pathlib.Path(".claude/skills") / name, directory
    problems = [problem for problem in validate(directory) if "Unexpected fields" not in problem]
    assert not problems, (name, problems)
    _, head, body = (directory / "SKILL.md").read_text().split("---\n", 2)
    own = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert set(yaml.safe_load(head)) <= own | CLAUDE_CODE, head
    assert "$ARGUMENTS" in body and f'cog run "${{CLAUDE_SKILL_DIR}}/assets/{name}"' in body, body


def agent_card(name):
    text = json.loads(cog("export", name, "--as", "agent-card", "--url", "https://cog.example"))
    card = parse_agent_card(text)
    validate_proto_required_fields(card)
    assert [skill.id for skill in card.skills] == [name] and card.supported_interfaces[0].url, card
    schemas = MessageToDict(card.capabilities.extensions[0].params)["skills"][name]
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def openapi(name):
    document = json.loads(cog("export", name, "--as", "openapi"))
    OpenAPIV31SpecValidator(document).validate()
    assert list(document["paths"]) == [f"/v1/modules/{name}/execute"], document["paths"]


def server_json(name, schema):
    for more in [[], ["--image", "ghcr.io/example/cog:1.0.0"], ["--url", "https://cog.example"]]:
        entry = json.loads(cog("export", name, "--as", "mcp-server-json", "--namespace", "com.example", *more))
        errors = [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(entry)]
        assert not errors, (name, errors)
        assert entry["$schema"] == schema["$id"], entry


def promptfoo(name):
    config = yaml.safe_load(cog("export", name, "--as", "promptfoo"))
    assert config["prompts"] == ["{{input}}"] and config["tests"], config
    for test in config["tests"]:
        json.loads(test["vars"]["input"])
        for one in config["defaultTest"]["assert"] + test["assert"]:
            if one["type"] == "is-json":
                # promptfoo parses a text as YAML.
                schema = yaml.safe_load(one["value"]) if isinstance(one["value"], str) else one["value"]
                jsonschema.Draft7Validator.check_schema(schema)


def imported(name):
    cog("import", f"{name}/SKILL.md", "-o", "imported")
    cog("validate", f"./imported/{name}")
    found = json.loads(cog("info", f"./imported/{name}", "--format", "json"))
    shipped = json.loads(cog("info", name, "--format", "json"))
    for place in (found, shipped):
        del place["path"], place["tests"]
    assert found == shipped, (name, found, shipped)


def main():
    logging.disable(logging.WARNING)
    place = importlib.resources.files("skillsaw") / "schemas/mcp_registry/v2025_12_11/server.schema.json"
    registry = json.loads(place.read_text())
    names = [module["name"] for module in json.loads(cog("list", "--format", "json"))]
    assert len(names) > 15, names
    pathlib.Path("imported").mkdir()
    for name in names:
        skill(name)
        claude_code(name)
        agent_card(name)
        openapi(name)
        server_json(name, registry)
        promptfoo(name)
        imported(name)
    # Lints every skill that was written here.
    done = subprocess.run([sys.executable, "-m", "skillsaw", "lint", "."], capture_output=True, text=True)
    assert done.returncode == 0 and f"Skills:    {2 * len(names)}" in done.stdout, done.stdout
    print(len(names))


main()
