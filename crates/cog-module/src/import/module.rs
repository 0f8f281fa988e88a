//! The files of a module, from the files of a skill.

use cog_spec::Tier;
use serde_json::Value;

use super::{File, Head, ImportError, SCHEMA, SkillDirectory, loaded};
use crate::{
    Prompt, PromptPart,
    export::{
        skill::{PROMPT_BEGIN, PROMPT_END, WHEN},
        yaml::scalar_text,
    },
    layout,
    schema::prefix_references,
    trust::grants,
};

/// The maximum number of files that a note names.
const MAX_NAMES: usize = 10;

/// Returns the module that `cog export` put into the skill, if there is one.
pub(super) fn contained(
    skill: &SkillDirectory,
    head: &Head,
    notes: &mut Vec<String>,
) -> Result<Option<Vec<File>>, ImportError> {
    let place = format!("assets/{}/", head.name);
    let names = skill.listed.iter().filter_map(|entry| entry.path.strip_prefix(&place));
    let names: Vec<String> = names.map(str::to_owned).collect();
    if !names.iter().any(|name| layout::is_manifest(name)) {
        return Ok(None);
    }
    let mut files = Vec::new();
    for name in names {
        match skill.read(&format!("{place}{name}"))? {
            Some(text) => files.push((name, text)),
            None => notes.push(format!("{place}{name} was left out: it is empty or a link")),
        }
    }
    let module = loaded(&files, &skill.directory.join(&place))?;
    if module.manifest.name != head.name {
        notes.push(format!("{place} was left out: the module in it has another name"));
        return Ok(None);
    }
    let differs = exported_prompt(&head.body).is_some_and(|prompt| prompt != module.prompt.text().trim_end());
    if differs {
        notes.push(format!(
            "the instructions in SKILL.md differ from the prompt in {place}, which was imported"
        ));
    }
    let schema = skill.read(SCHEMA)?.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    if schema.is_some_and(|schema| schema != module.schema) {
        notes.push(format!("{SCHEMA} differs from the schema in {place}, which was imported"));
    }
    let granted = Vec::from_iter(grants(&module.manifest));
    if !granted.is_empty() {
        // The module is taken as it is, and whoever wrote the skill wrote its manifest.
        notes.push(format!("its manifest allows tool calls ({}): review module.yaml", granted.join(", ")));
    }
    notes.push("a skill has no golden tests: add some under tests/".to_owned());
    Ok(Some(files))
}

/// Returns a module that is drafted from the description and the instructions.
pub(super) fn drafted(
    skill: &SkillDirectory,
    head: &Head,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<Vec<File>, ImportError> {
    let schema = match skill.read(SCHEMA)? {
        Some(text) => schema(text, notes),
        None => {
            notes.push(
                "describe the answer under `data` in schema.json: a skill does not say what it contains"
                    .to_owned(),
            );
            TEMPLATE.to_owned()
        }
    };
    let files = vec![
        ("module.yaml".to_owned(), manifest(head, name)),
        ("prompt.md".to_owned(), prompt(head, notes)),
        ("schema.json".to_owned(), schema),
    ];
    if let Some(license) = &head.license {
        notes.push(format!("the license of the skill is `{license}`: keep it with the module"));
    }
    if head.allowed_tools {
        notes.push("`allowed-tools` was left out: a module names its tools under `tools`".to_owned());
    }
    notes.extend(left_out(skill));
    Ok(files)
}

const TEMPLATE: &str = include_str!("schema.json");

fn manifest(head: &Head, name: &str) -> String {
    let description = head.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let responsibility = match description.split_once(&format!(". {WHEN}")) {
        Some((responsibility, _)) if !responsibility.is_empty() => responsibility,
        _ => &description,
    };
    let version = head.metadata("version").filter(|text| semver::Version::parse(text).is_ok());
    let tier = head.metadata("tier").and_then(|text| text.parse::<Tier>().ok()).unwrap_or(Tier::Decision);
    format!(
        "# Drafted by `cog import` from the skill {skill}. Review it before use.\n\
         name: {name}\n\
         version: {version}\n\
         responsibility: {responsibility}\n\n\
         # exec: a program acts on the answer (confidence of at least 0.9, risk none or low);\n\
         # decision: a person reviews it; exploration: any idea is welcome.\n\
         tier: {tier}\n\n\
         # What the module must not do. This list is sent to the model.\n\
         excludes:\n  \
           - inventing facts that are not in the input\n\n\
         response:\n  \
           mode: both # sync, streaming, or both (the caller chooses)\n",
        skill = head.name.escape_debug(),
        version = version.unwrap_or("0.1.0"),
        responsibility = scalar_text(responsibility),
        tier = tier.as_str(),
    )
}

/// Returns the instructions; the description if there are none.
fn prompt(head: &Head, notes: &mut Vec<String>) -> String {
    let body = exported_prompt(&head.body).unwrap_or(&head.body).trim();
    if body.is_empty() {
        notes.push("the skill has no instructions: prompt.md has its description".to_owned());
        return format!("{}\n", head.description);
    }
    let (text, targets) = without_outer_links(body);
    if !targets.is_empty() {
        let shown = shown(targets.iter().map(String::as_str));
        notes.push(format!("links out of the skill's directory were left out: {shown}"));
    }
    let parsed = Prompt::parse(text.as_str());
    let placeholders = parsed.parts().iter().filter(|part| !matches!(part, PromptPart::Text(_)));
    let placeholders: Vec<String> = placeholders.map(PromptPart::raw).collect();
    if !placeholders.is_empty() {
        let shown = shown(placeholders.iter().map(String::as_str));
        notes.push(format!("prompt.md has placeholders, which a run replaces: {shown}"));
    }
    format!("{text}\n")
}

/// Returns the file as the schema of the module: as it is, or as its `data` if it describes one value.
fn schema(text: String, notes: &mut Vec<String>) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(&text) else { return text };
    let has_section = ["data", "output"].iter().any(|name| members.get(*name).is_some_and(Value::is_object));
    if has_section && !members.contains_key("properties") {
        return text;
    }
    notes.push(format!("{SCHEMA} describes one value, which is `data` in schema.json; check `input` too"));
    let mut data = Value::Object(members);
    if let Value::Object(members) = &mut data {
        members.retain(|key, _| key != "$id" && key != "$schema");
    }
    prefix_references(&mut data, "/data");
    let mut schema = serde_json::from_str::<Value>(TEMPLATE).unwrap_or_default();
    if let Value::Object(members) = &mut schema {
        members.insert("data".to_owned(), data);
    }
    format!("{schema:#}\n")
}

/// Returns notes about the files that are not part of the module.
fn left_out(skill: &SkillDirectory) -> impl Iterator<Item = String> {
    let (links, files): (Vec<_>, Vec<_>) = skill.listed.iter().partition(|entry| entry.size.is_none());
    let files = files.iter().filter(|entry| entry.path != skill.file && entry.path != SCHEMA);
    let files: Vec<&str> = files.map(|entry| entry.path.as_str()).collect();
    let links = (!links.is_empty()).then(|| {
        let names = shown(links.iter().map(|entry| entry.path.as_str()));
        format!("links were left out: {names}")
    });
    let files = (!files.is_empty()).then(|| {
        let names = shown(files.into_iter());
        format!("a module has no other files: copy what the model needs into prompt.md from {names}")
    });
    links.into_iter().chain(files)
}

/// Returns texts for a note: the first of them, escaped.
fn shown<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> String {
    let count = texts.len();
    let first: Vec<String> = texts
        .take(MAX_NAMES)
        .map(|text| text.chars().take(80).collect::<String>().escape_debug().to_string())
        .collect();
    let more = if count > MAX_NAMES { format!(" and {} more", count - MAX_NAMES) } else { String::new() };
    format!("{}{more}", first.join(", "))
}

// The instructions of a skill as a prompt.

/// Returns the prompt that `cog export` wrote between two comments; none in a skill from elsewhere.
fn exported_prompt(body: &str) -> Option<&str> {
    let (_, rest) = body.split_once(PROMPT_BEGIN)?;
    // The last end, because the prompt may contain this comment itself.
    let (prompt, _) = rest.rsplit_once(PROMPT_END)?;
    Some(prompt.trim_matches(['\r', '\n']))
}

/// Returns the text in which links out of the skill's directory are replaced by their label, and the targets of these
/// links.
fn without_outer_links(text: &str) -> (String, Vec<String>) {
    let mut out = String::with_capacity(text.len());
    let mut targets = Vec::new();
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let (before, after) = rest.split_at(middle);
        let Some((target, next)) = after.get(2..).and_then(|after| after.split_once(')')) else { break };
        let path = target.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
        match before.rfind('[').filter(|_| leads_out(path)) {
            Some(open) => {
                let (head, label) = before.split_at(open);
                out.push_str(head.strip_suffix('!').unwrap_or(head));
                out.push_str(label.get(1..).unwrap_or_default());
                targets.push(path.to_owned());
            }
            None => {
                out.push_str(before);
                out.push_str(after.get(..target.len() + 3).unwrap_or_default());
            }
        }
        rest = next;
    }
    out.push_str(rest);
    let kept =
        out.split_inclusive('\n').filter(|line| match definition(line).filter(|path| leads_out(path)) {
            Some(path) => {
                targets.push(path.to_owned());
                false
            }
            None => true,
        });
    (kept.collect(), targets)
}

/// Returns the target of a line that defines a link: `[label]: target`.
fn definition(line: &str) -> Option<&str> {
    let (_, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    target.split_whitespace().next()
}

/// Returns whether a target is a file outside the directory of the skill.
fn leads_out(target: &str) -> bool {
    let lower = target.to_ascii_lowercase();
    if lower.starts_with("file:") || target.starts_with(['/', '~', '\\']) {
        return true;
    }
    let has_drive =
        target.as_bytes().get(1) == Some(&b':') && target.starts_with(|c: char| c.is_ascii_alphabetic());
    if has_drive {
        return true;
    }
    if lower.contains("://") || lower.starts_with("mailto:") || target.starts_with('#') {
        return false;
    }
    // A reader decodes a target before it opens the file, and Windows takes both slashes.
    let decoded = lower.replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    let mut depth = 0_i32;
    decoded.split('/').any(|part| {
        depth += match part {
            ".." => -1,
            "" | "." => 0,
            _ => 1,
        };
        depth < 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_directory_are_replaced_by_their_label() {
        let text = "See [a](../../etc/passwd), [b](references/B.md), ![c](/etc/c.png \"C\"), [d](https://x.example/../y) and \
            [e](<file:///etc/e>).\n[f]: ~/.ssh/id\n[g]: references/g.md\n[h](references/%2e%2e/../../h) (i) [j";
        let (out, targets) = without_outer_links(text);
        let expected = "See a, [b](references/B.md), c, [d](https://x.example/../y) and e.\n[g]: references/g.md\nh (i) [j";
        assert_eq!(out, expected);
        assert_eq!(
            targets,
            ["../../etc/passwd", "/etc/c.png", "file:///etc/e", "references/%2e%2e/../../h", "~/.ssh/id"]
        );
    }

    #[test]
    fn text_without_links_is_unchanged() {
        for text in ["", "](", "a](b", "[](x)", "[a](b)[c](d)", "\\](", "[é](ü)\n"] {
            assert_eq!(without_outer_links(text), (text.to_owned(), Vec::new()), "{text}");
        }
    }

    #[test]
    fn targets_outside_are_found() {
        for target in [
            "..",
            "../a",
            "a/../../b",
            "/a",
            "~/a",
            "\\\\host\\a",
            "C:\\a",
            "FILE:/a",
            "a\\..\\..\\b",
            "..%2fa",
        ] {
            assert!(leads_out(target), "{target}");
        }
        for target in ["", "a", "a/../b", "./a", "#a", "https://a/../../b", "mailto:a@b", "..a", "a..b/c"] {
            assert!(!leads_out(target), "{target}");
        }
    }
}
