//! Splits the files of old formats: front matter, constraints, two schemas, examples.

use super::{MigrateError, draft::Draft, manifest};
use crate::{
    LoadError, front_matter,
    source::Source,
    yaml::{Content, Node},
};

/// v1: `MODULE.md` becomes `module.yaml` and `prompt.md`.
pub(super) fn split_module_md(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let (yaml, body) = halves(&draft.require("MODULE.md")?)?;
    draft.put(manifest::FILE, yaml)?;
    draft.put("prompt.md", body)?;
    draft.remove("MODULE.md")
}

/// v0: five files become three.
pub(super) fn gather(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let (mut yaml, body) = halves(&draft.require("module.md")?)?;
    if let Some(constraints) = draft.read("constraints.yaml")? {
        yaml.push_str(&constraints_section(&constraints, &yaml)?);
        draft.remove("constraints.yaml")?;
    }
    draft.put(manifest::FILE, yaml)?;
    draft.remove("module.md")?;
    if !body.trim().is_empty() && draft.read("README.md")?.is_none() {
        draft.put("README.md", body)?;
        draft.note("the text below the front matter of module.md was moved to README.md");
    }
    let prompt = draft.require("prompt.txt")?.text;
    draft.put("prompt.md", prompt)?;
    draft.remove("prompt.txt")?;
    super::schema::join_v0(draft)
}

/// `examples/` becomes the first golden test.
pub(super) fn move_examples(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let moves = [
        ("examples/input.json", "tests/case1.input.json"),
        ("examples/output.json", "tests/case1.expected.json"),
    ];
    let is_free =
        draft.read("tests/case1.input.json")?.is_none() && draft.read("tests/case1.expected.json")?.is_none();
    for (from, to) in moves {
        if let Some(example) = draft.read(from)?.filter(|_| is_free) {
            draft.put(to, example.text)?;
            draft.remove(from)?;
        }
    }
    Ok(())
}

/// Returns the YAML and the text after it, without leading empty lines.
fn halves(source: &Source) -> Result<(String, String), MigrateError> {
    let front = front_matter::split(source)
        .map_err(|problem| MigrateError::Load(LoadError { diagnostics: vec![problem] }))?;
    let part = |range| source.text.get(range).unwrap_or_default();
    let body = part(front.body).trim_start_matches(['\r', '\n']);
    Ok((part(front.yaml).to_owned(), body.to_owned()))
}

/// Returns `constraints.yaml` as a section of the manifest: as is if it has that key, otherwise indented by one level.
/// Empty if the manifest already has the section.
fn constraints_section(file: &Source, manifest: &str) -> Result<String, MigrateError> {
    let manifest = Source::new(&file.path, manifest);
    if manifest::parse(&manifest)?.get("constraints").is_some() {
        return Ok(String::new());
    }
    let root = manifest::parse(file)?;
    if root.get("constraints").is_some() {
        let is_alone = matches!(&root.content, Content::Map(entries) if entries.len() == 1);
        return Ok(if is_alone { file.text.clone() } else { named_constraints(&root) });
    }
    let has_known =
        matches!(&root.content, Content::Map(entries) if entries.iter().all(|entry| is_known(&entry.key)));
    if !has_known {
        return Ok(named_constraints(&root));
    }
    let indent = |line: &str| if line.trim().is_empty() { line.to_owned() } else { format!("  {line}") };
    Ok(format!("constraints:\n{}", file.text.split_inclusive('\n').map(indent).collect::<String>()))
}

const KNOWN: [&str; 5] =
    ["no_network", "no_side_effects", "no_inventing_data", "require_confidence", "require_rationale"];

fn is_known(key: &str) -> bool {
    KNOWN.contains(&key)
}

/// Returns the known constraints of a file that also contains other keys.
fn named_constraints(root: &Node) -> String {
    let Content::Map(entries) = &root.content else { return String::new() };
    let sections = entries.iter().map(|entry| &entry.value).chain([root]);
    let mut lines: Vec<String> = Vec::new();
    for section in sections {
        for key in KNOWN {
            if let Some(Node { content: Content::Bool(value), .. }) = section.get(key) {
                lines.retain(|line| !line.contains(key));
                lines.push(format!("  {key}: {value}\n"));
            }
        }
    }
    if lines.is_empty() { String::new() } else { format!("constraints:\n{}", lines.concat()) }
}
