//! Splits the files of old formats: front matter, constraints, two schemas, examples.

use super::{Draft, MigrateError, manifest};
use crate::{
    LoadError, front_matter,
    source::Source,
    yaml::{Content, Entry, Node},
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
        let section = constraints_section(&constraints, &yaml)?;
        yaml.push_str(&section.text);
        for key in section.omitted {
            draft.note(format!("`{key}` of constraints.yaml was not copied to module.yaml"));
        }
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
    let yaml = source.text.get(front.yaml).unwrap_or_default();
    let body = source.text.get(front.body).unwrap_or_default().trim_start_matches(['\r', '\n']);
    Ok((yaml.to_owned(), body.to_owned()))
}

/// `constraints.yaml` as a section of the manifest.
#[derive(Default)]
struct Section {
    text: String,
    /// The paths of the keys that are not in it.
    omitted: Vec<String>,
}

/// Returns `constraints.yaml` as a section: as is if it has that key, otherwise indented by one level. The text is
/// empty if the manifest already has the section.
fn constraints_section(file: &Source, manifest: &str) -> Result<Section, MigrateError> {
    let manifest = Source::new(&file.path, manifest);
    let root = manifest::parse(file)?;
    let Content::Map(entries) = &root.content else { return Ok(Section::default()) };
    if manifest::parse(&manifest)?.get("constraints").is_some() {
        let omitted = leaves(&root).map(|(path, _, _)| path).collect();
        return Ok(Section { text: String::new(), omitted });
    }
    if root.get("constraints").is_some() && entries.len() == 1 {
        return Ok(Section { text: file.text.clone(), omitted: Vec::new() });
    }
    if !entries.iter().all(|entry| is_known(&entry.key)) {
        return Ok(named_constraints(&root, file));
    }
    let mut text = "constraints:\n".to_owned();
    for line in file.text.split_inclusive('\n') {
        text.push_str(if line.trim().is_empty() { "" } else { "  " });
        text.push_str(line);
    }
    Ok(Section { text, omitted: Vec::new() })
}

const KNOWN: [&str; 6] = [
    "no_network",
    "no_side_effects",
    "no_inventing_data",
    "require_confidence",
    "require_rationale",
    "behavior_equivalence_false_max_confidence",
];

fn is_known(key: &str) -> bool {
    KNOWN.contains(&key)
}

/// Returns the known constraints of a file that also contains other keys. A key at the top counts more than one below.
fn named_constraints(root: &Node, file: &Source) -> Section {
    let mut section = Section::default();
    let mut named: Vec<(&str, &str)> = Vec::new();
    for (path, key, value) in leaves(root) {
        match file.text.get(value.written.clone()).filter(|_| is_known(key)) {
            Some(text) => {
                named.retain(|(known, _)| *known != key);
                named.push((key, text));
            }
            None => section.omitted.push(path),
        }
    }
    if !named.is_empty() {
        let lines: String = named.iter().map(|(key, text)| format!("  {key}: {text}\n")).collect();
        section.text = format!("constraints:\n{lines}");
    }
    section
}

/// Returns the keys one level down, then those at the top, each with its path and value.
fn leaves(root: &Node) -> impl Iterator<Item = (String, &str, &Node)> {
    let all = entries(root);
    let below = all.iter().flat_map(move |outer| {
        entries(&outer.value)
            .iter()
            .map(move |entry| (format!("{}.{}", outer.key, entry.key), entry.key.as_str(), &entry.value))
    });
    let top = all.iter().filter(|entry| !matches!(entry.value.content, Content::Map(_)));
    below.chain(top.map(|entry| (entry.key.clone(), entry.key.as_str(), &entry.value)))
}

fn entries(node: &Node) -> &[Entry] {
    match &node.content {
        Content::Map(entries) => entries,
        _ => &[],
    }
}
