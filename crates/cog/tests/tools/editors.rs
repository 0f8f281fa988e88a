//! `cog lsp` and the editors that start it.

use std::{fs, process::Command};

/// What Neovim does: it opens the schema, waits for the server, and asks it.
const SCRIPT: &str = r#"
local done = {}
local function wait(what)
  assert(vim.wait(20000, function() return done[what] end, 20), "no " .. what)
  return done[what]
end
vim.cmd("edit module.yaml")
local client = vim.lsp.start_client({ name = "cog", cmd = { "cog", "lsp" }, root_dir = vim.fn.getcwd() })
vim.lsp.buf_attach_client(0, client)
vim.wait(20000, function() return #vim.diagnostic.get(0) > 0 end, 20)
for _, found in ipairs(vim.diagnostic.get(0)) do print(found.code .. " " .. found.lnum + 1) end

-- Correct the key as a person would, and see the diagnostic go.
vim.api.nvim_buf_set_lines(0, 2, 3, false, { "tier: decision" })
vim.wait(20000, function() return #vim.diagnostic.get(0) == 0 end, 20)
print("left " .. #vim.diagnostic.get(0))
vim.cmd("write")

local function ask(method, parameters)
  vim.lsp.buf_request_all(0, method, parameters, function(answers)
    done[method] = answers[client].result or {}
  end)
  return wait(method)
end
vim.api.nvim_buf_set_lines(0, -1, -1, false, { "che" })
vim.api.nvim_win_set_cursor(0, { vim.api.nvim_buf_line_count(0), 3 })
for _, item in ipairs(ask("textDocument/completion", vim.lsp.util.make_position_params())) do
  if item.label == "checks" then print("offers checks") end
end
vim.cmd("undo | edit schema.json")
vim.lsp.buf_attach_client(0, client)
vim.fn.search('"label"', "w")
vim.fn.search("label", "", vim.fn.line("."))
local parameters = vim.lsp.util.make_position_params()
parameters.newName = "sentiment"
vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", parameters), "utf-16")
vim.cmd("wall | qall!")
"#;

#[test]
fn neovim_completes_and_renames_a_field_in_five_files() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("tone");
    fs::create_dir_all(directory.join("tests")).unwrap();
    let file = |name: &str| directory.join(name);
    let manifest = "name: tone\nversion: 1.0.0\nteir: decision\nresponsibility: Says how a sentence sounds\nexcludes: [advice]\nchecks:\n  - name: known\n    that: $.data.label != 'good' || length($.data.rationale) > 3\n";
    fs::write(file("module.yaml"), manifest).unwrap();
    fs::write(file("prompt.md"), "Give the `label` of $ARGUMENTS.\n").unwrap();
    let schema = r#"{
  "input": { "type": "object", "properties": { "query": { "type": "string" } } },
  "meta": {
    "type": "object", "required": ["confidence", "risk", "explain"],
    "properties": { "explain": { "type": "string", "maxLength": 280 } }
  },
  "data": {
    "type": "object", "required": ["rationale", "label"],
    "properties": { "rationale": { "type": "string" }, "label": { "type": "string", "enum": ["good", "bad"] } }
  },
  "error": { "type": "object", "required": ["code", "message"] }
}
"#;
    fs::write(file("schema.json"), schema).unwrap();
    fs::write(file("tests/a.input.json"), r#"{ "query": "Fine." }"#).unwrap();
    fs::write(file("tests/a.expected.json"), r#"{ "rationale": "It says so.", "label": "good" }"#).unwrap();
    let more = r#"{ "equals": { "data.label": "good" } }"#;
    fs::write(file("tests/b.input.json"), r#"{ "query": "Good." }"#).unwrap();
    fs::write(file("tests/b.expected.json"), more).unwrap();
    fs::write(place.path().join("script.lua"), SCRIPT).unwrap();

    let cog = std::path::Path::new(env!("CARGO_BIN_EXE_cog")).parent().unwrap();
    let path =
        std::env::join_paths([cog, "/usr/local/bin".as_ref(), "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
    let mut nvim = Command::new("nvim");
    nvim.env_clear().env("HOME", place.path()).env("PATH", path).env("COG_DETECT_OLLAMA", "off");
    nvim.args(["--headless", "--clean", "-n", "-S"])
        .arg(place.path().join("script.lua"))
        .current_dir(&directory);
    let output =
        nvim.output().unwrap_or_else(|error| panic!("nvim (Debian: apt-get install neovim): {error}"));
    // Neovim prints to stderr when it has no terminal.
    let text = String::from_utf8_lossy(&output.stderr).replace('\r', "");
    for line in ["key-unknown 3", "left 0", "offers checks"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    for name in ["module.yaml", "prompt.md", "schema.json", "tests/a.expected.json", "tests/b.expected.json"]
    {
        let text = fs::read_to_string(file(name)).unwrap();
        assert!(text.contains("sentiment") && !text.contains("label"), "{name}: {text}");
    }
}
