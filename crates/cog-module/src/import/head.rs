//! The front matter of `SKILL.md`.

use super::ImportError;
use crate::{
    Diagnostic, LoadError, Rule, front_matter,
    source::Source,
    yaml::{self, Content, Node},
};

/// What the front matter says, and the text below it.
pub(super) struct Head {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) license: Option<String>,
    pub(super) allowed_tools: bool,
    /// The texts of `metadata`.
    metadata: Vec<(String, String)>,
    pub(super) body: String,
}

impl Head {
    /// Reads `SKILL.md`.
    pub(super) fn read(source: &Source) -> Result<Self, ImportError> {
        let invalid = |problem: Diagnostic| ImportError::Load(LoadError { diagnostics: vec![problem] });
        let front = front_matter::split(source).map_err(invalid)?;
        let root = yaml::parse(&front_matter::yaml_alone(source, &front)).map_err(invalid)?;
        if !matches!(root.content, Content::Map(_)) {
            let message = "the front matter is not a mapping of keys to values";
            let problem =
                Diagnostic::error(Rule::ManifestShape, &source.path, message).at(source, front.yaml);
            return Err(invalid(problem));
        }
        let missing = |key: &str| {
            let message = format!("required key `{key}` is missing or empty");
            let problem =
                Diagnostic::error(Rule::KeyMissing, &source.path, message).at(source, front.yaml.clone());
            invalid(problem.suggest("A skill has a `name` and a `description`."))
        };
        let required = |key: &str| text(&root, key).ok_or_else(|| missing(key));
        Ok(Self {
            name: required("name")?,
            description: required("description")?,
            license: text(&root, "license"),
            allowed_tools: root.get("allowed-tools").is_some(),
            metadata: root.get("metadata").map(texts).unwrap_or_default(),
            body: source.text.get(front.body).unwrap_or_default().trim().to_owned(),
        })
    }

    /// Returns a text of `metadata`.
    pub(super) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str())
    }
}

fn text(root: &Node, key: &str) -> Option<String> {
    match &root.get(key)?.content {
        Content::Text(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    }
}

fn texts(node: &Node) -> Vec<(String, String)> {
    let Content::Map(entries) = &node.content else { return Vec::new() };
    let text = |entry: &yaml::Entry| match &entry.value.content {
        Content::Text(text) => Some((entry.key.clone(), text.clone())),
        _ => None,
    };
    entries.iter().filter_map(text).collect()
}
