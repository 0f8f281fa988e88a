//! A module as an Agent Skill.

use cog_json::ToJson as _;
use serde_json::{Map, Value, json};

use super::{ExportError, Skill, SkillFile, yaml};
use crate::{
    Module, Origin,
    files::{self, FileError},
    golden,
    layout::{self, Family},
    name::similar_module_name,
};

/// The maximum length of the name of a skill, in characters.
const MAX_NAME: usize = 64;
/// The maximum length of its description, in characters.
const MAX_DESCRIPTION: usize = 1024;
/// The maximum number of lines of a prompt that is part of `SKILL.md`. The specification recommends 500 in all.
const MAX_PROMPT_LINES: usize = 400;
/// The maximum number of examples.
const MAX_EXAMPLES: usize = 3;
/// The maximum size of an input or an answer that is shown, in bytes.
const MAX_EXAMPLE: usize = 8 * 1024;
/// The maximum length of a run of base64 characters in an example.
const MAX_RUN: usize = 100;

/// The line before the prompt in `SKILL.md`.
pub(crate) const PROMPT_BEGIN: &str = "<!-- prompt.md -->";
/// The line after the prompt in `SKILL.md`.
pub(crate) const PROMPT_END: &str = "<!-- end of prompt.md -->";
/// The beginning of the sentence that follows the responsibility in a description.
pub(crate) const WHEN: &str = "Use when ";
/// The key of the metadata with the format of the module.
pub(crate) const FORMAT: &str = "cog-format";

/// Returns a module as an Agent Skill.
///
/// `SKILL.md` says how to run the module and has its prompt. `references/` has the schema and examples from the golden
/// tests, `scripts/run.sh` runs the module, and `assets/NAME/` is the module itself.
///
/// # Errors
/// If the name is not allowed for a skill, agents may not call the module, or a file cannot be read.
pub fn skill(module: &Module) -> Result<Skill, ExportError> {
    if !module.manifest.invocation.agent_invocable {
        return Err(ExportError::NotForAgents { name: module.manifest.name.clone() });
    }
    let parts = Parts::new(module)?;
    let mut front_matter = front_matter(module);
    if let Some(license) = &parts.license {
        front_matter.insert("license".to_owned(), license_line(license));
    }
    let metadata = json!({
        "version": module.manifest.version,
        "tier": module.manifest.tier.map_or("none", |tier| tier.as_str()),
        FORMAT: module.manifest.format.as_str(),
    });
    front_matter.insert("compatibility".to_owned(), compatibility());
    front_matter.insert("metadata".to_owned(), metadata);
    let script = SkillFile::new("scripts/run.sh", script(&module.manifest.name));
    Ok(parts.into_skill(front_matter, &body(module), Some(script)))
}

/// Returns the name and the description, in a front matter.
fn front_matter(module: &Module) -> Map<String, Value> {
    let mut front_matter = Map::new();
    front_matter.insert("name".to_owned(), Value::from(module.manifest.name.as_str()));
    front_matter.insert("description".to_owned(), Value::from(description(module)));
    front_matter
}

/// The files that every skill of a module has.
struct Parts {
    name: String,
    files: Vec<SkillFile>,
    license: Option<License>,
}

/// The license of a module.
enum License {
    /// The license of the program, with which the module ships.
    Program,
    /// A file of the module.
    File(String),
}

impl Parts {
    /// Returns the schema, the examples, the module and its license.
    fn new(module: &Module) -> Result<Self, ExportError> {
        let name = module.manifest.name.clone();
        check_name(&name)?;
        let mut parts = vec![SkillFile::new("references/schema.json", schema(module)?)];
        parts.extend(examples(module).map(|text| SkillFile::new("references/examples.md", text)));
        for file in sources(module)? {
            parts.push(SkillFile::new(format!("assets/{name}/{}", file.path), file.text));
        }
        let license = license(module)?;
        if let Some((_, Some(file))) = &license {
            parts.push(file.clone());
        }
        Ok(Self { name, files: parts, license: license.map(|(license, _)| license) })
    }

    /// Returns whether there are examples.
    fn has_examples(&self) -> bool {
        self.files.iter().any(|file| file.path == "references/examples.md")
    }

    /// Returns the skill with a front matter and a body.
    fn into_skill(self, front_matter: Map<String, Value>, body: &str, script: Option<SkillFile>) -> Skill {
        let head = yaml::text(&Value::Object(front_matter.clone()));
        let mut files = vec![SkillFile::new("SKILL.md", format!("---\n{head}---\n\n{body}"))];
        files.extend(script);
        files.extend(self.files);
        Skill { name: self.name, front_matter, files }
    }
}

/// Checks the name of a skill, which has more rules than the name of a module.
fn check_name(name: &str) -> Result<(), ExportError> {
    let reason = if name.chars().count() > MAX_NAME {
        "it has more than 64 characters"
    } else if name.ends_with('-') {
        "it ends with a hyphen"
    } else if name.contains("--") {
        "it contains two hyphens in a row"
    } else {
        return Ok(());
    };
    let similar = similar_module_name(name.get(..MAX_NAME).unwrap_or(name));
    Err(ExportError::SkillName { name: name.to_owned(), reason, similar })
}

/// Returns the purpose, when to use the skill, and what it does not do.
fn description(module: &Module) -> String {
    let manifest = &module.manifest;
    let mut text = format!(
        "{}. {WHEN}this is the task, and its answer must be JSON that is checked against a schema.",
        manifest.responsibility.trim().trim_end_matches('.')
    );
    if !manifest.excludes.is_empty() {
        text.push_str(&format!(" Excludes: {}.", manifest.excludes.join("; ")));
    }
    match text.char_indices().nth(MAX_DESCRIPTION - 1) {
        Some((end, _)) if text.len() > end + 1 => format!("{}…", text.get(..end).unwrap_or_default()),
        _ => text,
    }
}

fn compatibility() -> Value {
    Value::from(format!(
        "Needs the program `cog` {} or newer on the PATH, and a model: a key such as OPENAI_API_KEY, or a local engine.",
        env!("CARGO_PKG_VERSION")
    ))
}

fn license_line(license: &License) -> Value {
    Value::from(match license {
        License::Program => env!("CARGO_PKG_LICENSE").to_owned(),
        License::File(name) => format!("Complete terms in {name}"),
    })
}

fn license(module: &Module) -> Result<Option<(License, Option<SkillFile>)>, ExportError> {
    if let Origin::BuiltIn(_) = module.origin {
        return Ok(Some((License::Program, None)));
    }
    let names = module.origin.file_names();
    let name =
        ["LICENSE", "LICENSE.txt", "LICENSE.md"].into_iter().find(|name| names.iter().any(|it| it == name));
    let Some(name) = name else { return Ok(None) };
    let text = required(module, name)?;
    Ok(Some((License::File(name.to_owned()), Some(SkillFile::new(name, text)))))
}

/// Returns the files that the runtime reads: manifest, prompt, schemas.
fn sources(module: &Module) -> Result<Vec<SkillFile>, ExportError> {
    let family = layout::family_of(module.manifest.format);
    let mut names = vec![family.manifest()];
    names.extend(match family {
        Family::V0 => &["prompt.txt", "input.schema.json", "output.schema.json", "constraints.yaml"][..],
        Family::V1 => &["schema.json"],
        Family::V2 => &["prompt.md", "schema.json"],
    });
    let context = &module.manifest.context;
    names.extend(context.accepts.iter().filter_map(|item| item.schema.as_deref()));
    names.extend(context.emits.iter().filter_map(|item| item.schema.as_deref()));
    names.dedup();
    let mut files = Vec::new();
    for name in names {
        files.extend(optional(module, name)?.map(|text| SkillFile::new(name, text)));
    }
    Ok(files)
}

/// Returns the schema as the author wrote it; for v0, both files as one.
fn schema(module: &Module) -> Result<String, ExportError> {
    match layout::family_of(module.manifest.format) {
        Family::V0 => Ok(format!("{:#}\n", module.schema)),
        Family::V1 | Family::V2 => required(module, "schema.json"),
    }
}

fn required(module: &Module, name: &str) -> Result<String, ExportError> {
    let file = optional(module, name)?;
    file.ok_or_else(|| ExportError::File { path: module.origin.path_of(name), error: FileError::Missing })
}

fn optional(module: &Module, name: &str) -> Result<Option<String>, ExportError> {
    match module.origin.read(name, files::MAX_PART) {
        Ok(source) => Ok(Some(source.text)),
        Err(FileError::Missing | FileError::Empty) => Ok(None),
        Err(error) => Err(ExportError::File { path: module.origin.path_of(name), error }),
    }
}

/// Returns the script that runs the module.
fn script(name: &str) -> String {
    format!(
        "#!/bin/sh\n\
         # Runs the module with `cog`. It takes the arguments of `cog run`: a file with the input as JSON, or --args TEXT.\n\
         exec cog run \"$(dirname -- \"$0\")/../assets/{name}\" \"$@\"\n"
    )
}

fn body(module: &Module) -> String {
    let mut text =
        format!("# {}\n\n{}\n", module.manifest.name, inert(&sentence(&module.manifest.responsibility)));
    text.push_str(RUN);
    text.push_str(&envelope(module));
    text.push_str(&instructions(module));
    text
}

const RUN: &str = "
## Run

Write the input as JSON to a file. It must match `input` in `references/schema.json`; `references/examples.md` has examples,
if there are any. Then run, in the directory of this skill:

```sh
sh scripts/run.sh INPUT.json
```

`--args TEXT` instead of the file sets the text field of the input.
";

/// Returns how to read an answer, and what the module does not do.
fn envelope(module: &Module) -> String {
    let mut text = "
## Answer

The program prints one JSON object, the envelope.

- `ok` is `true`: `data` is the answer. It has been checked against `data` in `references/schema.json`. `meta.confidence` (0 to 1),
  `meta.risk` and `meta.explain` say how far to rely on it.
- `ok` is `false`: there is no answer. `error` has a code, a message and a suggestion.
"
    .to_owned();
    if !module.manifest.excludes.is_empty() {
        text.push_str("\n## Excludes\n\n");
        for exclude in &module.manifest.excludes {
            text.push_str(&format!("- {}\n", inert(exclude.trim())));
        }
    }
    text
}

/// Returns the prompt, or where it is.
fn instructions(module: &Module) -> String {
    let prompt = module.prompt.text().trim_end();
    let head = "\n## Instructions\n\nThe program sends these to the model.";
    if prompt.trim().is_empty() {
        return format!(
            "{head} The module has none of its own: it runs other modules, which `cog` must find.\n"
        );
    }
    let family = layout::family_of(module.manifest.format);
    if prompt.lines().count() > MAX_PROMPT_LINES || runs_commands(prompt) {
        return format!("{head} They are in `assets/{}/{}`.\n", module.manifest.name, family.prompt());
    }
    let without = "Without the program, follow them, and answer with the `data` that they describe.";
    let input = match module.prompt.places_input() {
        true => " `$INPUT` and `$ARGUMENTS` stand for the input.",
        false => "",
    };
    format!("{head} {without}{input}\n\n{PROMPT_BEGIN}\n{prompt}\n{PROMPT_END}\n")
}

/// Returns whether Claude Code would run a command of this text when it loads the skill.
fn runs_commands(text: &str) -> bool {
    text.contains("!`") || text.contains("```!")
}

/// Returns text in which Claude Code finds no command to run.
fn inert(text: &str) -> String {
    text.replace("!`", "! `").replace("```!", "``` !")
}

/// Returns text with a full stop at its end.
fn sentence(text: &str) -> String {
    format!("{}.", text.trim().trim_end_matches('.'))
}

/// Returns the first golden tests as examples; none if there are no tests, or only large ones.
fn examples(module: &Module) -> Option<String> {
    let cases = golden::discover(module).cases;
    let shown = cases.iter().filter_map(|case| {
        let input = case.input.to_json_pretty();
        let answer = case.expected.answer()?.to_json_pretty();
        let is_short = input.len() <= MAX_EXAMPLE && answer.len() <= MAX_EXAMPLE;
        (is_short && !has_media(&input) && !has_media(&answer)).then(|| {
            format!(
                "\n## {}\n\nInput:\n\n```json\n{input}\n```\n\nAnswer:\n\n```json\n{answer}\n```\n",
                case.name
            )
        })
    });
    let shown: Vec<String> = shown.take(MAX_EXAMPLES).collect();
    (!shown.is_empty()).then(|| format!("# Examples\n{}", shown.concat()))
}

/// Returns whether text contains the bytes of a file as base64, which say nothing to a reader.
fn has_media(text: &str) -> bool {
    let mut runs = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/' | '='));
    runs.any(|run| run.len() > MAX_RUN)
}

// A module as a skill of Claude Code.

/// Returns a module as a skill of Claude Code, for the directory `.claude/skills/NAME`.
///
/// It makes Claude run the module with `cog run` and use its envelope. No tool is allowed in advance, so that the
/// command needs the permission of the person, unless their settings allow it.
///
/// # Errors
/// If the name is not allowed for a skill, or a file cannot be read.
pub fn claude_code(module: &Module) -> Result<Skill, ExportError> {
    let parts = Parts::new(module)?;
    let mut front_matter = front_matter(module);
    front_matter.insert("argument-hint".to_owned(), Value::from("[text or file]"));
    let invocation = module.manifest.invocation;
    if !invocation.agent_invocable {
        front_matter.insert("disable-model-invocation".to_owned(), Value::from(true));
    }
    if !invocation.user_invocable {
        front_matter.insert("user-invocable".to_owned(), Value::from(false));
    }
    let body = claude_code_body(module, parts.has_examples());
    Ok(parts.into_skill(front_matter, &body, None))
}

fn claude_code_body(module: &Module, has_examples: bool) -> String {
    let name = &module.manifest.name;
    let examples =
        if has_examples { "; [references/examples.md](references/examples.md) has examples" } else { "" };
    format!(
        "# {name}\n\n{responsibility} Run the module, and use its answer: do not do the task yourself.\n\n\
         Request: $ARGUMENTS\n\n\
         ## Run\n\n\
         1. Write the input as JSON to a temporary file. It must match `input` in\n   \
            [references/schema.json](references/schema.json){examples}.\n\
         2. Run this with the path of that file:\n\n   \
            ```sh\n   cog run \"${{CLAUDE_SKILL_DIR}}/assets/{name}\" INPUT.json\n   ```\n\n\
         3. Show the person the answer, or the error with its suggestion.\n{envelope}",
        responsibility = inert(&sentence(&module.manifest.responsibility)),
        envelope = envelope(module),
    )
}
