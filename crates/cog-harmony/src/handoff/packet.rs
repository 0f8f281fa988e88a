use cog_json::{Node, Path, ToJson, Value, Writer};

use super::form::{self, PROTOCOL};
use crate::{Finding, canonical};

/// A handoff packet whose form is right. Members that the protocol does not define are preserved.
#[derive(Debug, Clone, PartialEq)]
pub struct Handoff {
    value: Value,
    /// The hash of the packet without `meta.hash`.
    hash: String,
}

impl Handoff {
    /// Reads a packet, and checks its form.
    ///
    /// # Errors
    /// Every rule that the form violates.
    pub fn read(value: Value) -> Result<Self, Vec<Finding>> {
        let findings = form::check(value.node());
        if !findings.is_empty() {
            return Err(findings);
        }
        let hash = hash(value.node());
        Ok(Self { value, hash })
    }

    /// Returns the document.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the hash of the packet, without its own `meta.hash`: the `parent` of the next one.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Checks the hashes that the packet declares against its content.
    pub fn check_seal(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let objective = self.context("primary_objective").map(canonical::hash);
        if let Some(declared) = self.meta("objective_hash")
            && Some(declared) != objective.as_deref()
        {
            let message = "the objective is not the one of `meta.objective_hash`: it was changed";
            findings.push(
                Finding::new("context.primary_objective", "objective_hash", message)
                    .suggest("The objective of a chain is immutable: use the packet that was sent."),
            );
        }
        if let Some(declared) = self.meta("hash")
            && declared != self.hash
        {
            let message = format!("the packet was changed after it was created: its hash is {}", self.hash);
            findings.push(Finding::new("meta.hash", "hash", message).suggest(
                "Use the packet that was sent, or create another one with `cog handoff new --parent`.",
            ));
        }
        findings
    }

    /// Returns the agent that hands over.
    pub fn source_agent(&self) -> &str {
        self.meta("source_agent").unwrap_or_default()
    }

    /// Returns the agent that takes over.
    pub fn target_agent(&self) -> &str {
        self.meta("target_agent").unwrap_or_default()
    }

    /// Returns when the packet was created.
    pub fn timestamp(&self) -> &str {
        self.meta("timestamp").unwrap_or_default()
    }

    /// Returns the hash of the packet before this one; none for the first of a chain.
    pub fn parent(&self) -> Option<&str> {
        self.meta("parent")
    }

    /// Returns the hash that the packet declares; none if it was created without one.
    pub fn declared_hash(&self) -> Option<&str> {
        self.meta("hash")
    }

    /// Returns the task, which does not change along a chain.
    pub fn primary_objective(&self) -> &str {
        self.text("primary_objective").unwrap_or_default()
    }

    /// Returns how far the task is.
    pub fn status(&self) -> Option<&str> {
        self.text("status")
    }

    /// Returns the steps that are completed.
    pub fn completed_steps(&self) -> impl Iterator<Item = &str> {
        self.texts("completed_steps")
    }

    /// Returns the next step.
    pub fn next_immediate_step(&self) -> Option<&str> {
        self.text("next_immediate_step")
    }

    /// Returns the constraints.
    pub fn constraints(&self) -> impl Iterator<Item = &str> {
        self.texts("constraints")
    }

    /// Returns the shared artifacts.
    pub fn artifacts(&self) -> impl Iterator<Item = Artifact<'_>> {
        self.context("artifacts")
            .into_iter()
            .flat_map(Node::members)
            .filter_map(|(name, node)| Artifact::read(name, node))
    }

    /// Returns the summary of the history.
    pub fn history_summary(&self) -> Option<&str> {
        self.value.get_str("history_summary")
    }

    fn meta(&self, key: &str) -> Option<&str> {
        self.value.get("meta")?.get_str(key)
    }

    pub(super) fn context(&self, key: &str) -> Option<Node<'_>> {
        self.value.get("context")?.get(key)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.context(key)?.as_str()
    }

    fn texts(&self, key: &str) -> impl Iterator<Item = &str> {
        self.context(key).into_iter().flat_map(Node::elements).filter_map(Node::as_str)
    }
}

impl ToJson for Handoff {
    fn write_json(&self, w: &mut Writer<'_>) {
        self.value.write_json(w);
    }
}

/// Returns the hash of a packet without its own `meta.hash`.
pub(super) fn hash(packet: Node<'_>) -> String {
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        for (key, member) in packet.members() {
            match key {
                "meta" => w.key(key).object(|w| {
                    for (key, member) in member.members().filter(|(key, _)| *key != "hash") {
                        w.field(key, &member);
                    }
                }),
                _ => drop(w.field(key, &member)),
            }
        }
    });
    canonical::hash(Value::parse(&text).unwrap_or_default().node())
}

/// An artifact of a packet: a reference, which is not the content itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Artifact<'a> {
    /// Its name.
    pub name: &'a str,
    /// The URL or path.
    pub reference: Reference<'a>,
    /// The media type, if the sender names it.
    pub media_type: Option<&'a str>,
    /// The SHA-256 of the content in hex digits, if the sender names it.
    pub sha256: Option<&'a str>,
}

/// Where an artifact is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// A URL with any scheme.
    Url(&'a str),
    /// A path.
    Path(&'a str),
}

impl<'a> Reference<'a> {
    fn new(text: &'a str) -> Self {
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        // A scheme of one letter is a drive.
        let is_scheme = scheme.len() > 1
            && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if is_scheme { Self::Url(text) } else { Self::Path(text) }
    }

    /// Returns the URL or path.
    pub const fn as_str(self) -> &'a str {
        match self {
            Self::Url(text) | Self::Path(text) => text,
        }
    }
}

impl<'a> Artifact<'a> {
    pub(super) fn read(name: &'a str, node: Node<'a>) -> Option<Self> {
        let [url, path, media_type, sha256] =
            ["url", "path", "media_type", "sha256"].map(|key| node.get_str(key));
        let reference = Reference::new(node.as_str().or(url).or(path)?);
        Some(Self { name, reference, media_type, sha256 })
    }

    /// Checks the form of an artifact: a string, or an object with `url` or `path`.
    pub(super) fn check(node: Node<'a>) -> Result<(), &'static str> {
        let Some(artifact) = Self::read("", node) else {
            return Err("allowed: a URL, a path, or an object with `url` or `path`");
        };
        if artifact.reference.as_str().trim().is_empty() {
            Err("the reference is empty")
        } else if artifact.reference.as_str().starts_with("data:") {
            Err("allowed: a reference; this is the content itself")
        } else if !artifact.sha256.is_none_or(is_digest) {
            Err("`sha256` is not 64 hex digits")
        } else {
            Ok(())
        }
    }

    /// Whether the artifact is an image that a model can receive by its URL.
    pub(super) fn is_image_url(&self) -> bool {
        let Reference::Url(url) = self.reference else { return false };
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let path = url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let by_name = [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|ending| path.ends_with(ending));
        is_web && self.media_type.map_or(by_name, |media_type| media_type.starts_with("image/"))
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The content of a packet that is not created yet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Draft {
    /// The agent that hands over.
    pub source_agent: String,
    /// The agent that takes over.
    pub target_agent: String,
    /// The time of the handoff, as RFC 3339.
    pub timestamp: String,
    /// The task.
    pub primary_objective: String,
    /// How far the task is: `in_progress`.
    pub status: Option<String>,
    /// The steps that are completed.
    pub completed_steps: Vec<String>,
    /// The next step.
    pub next_immediate_step: Option<String>,
    /// The constraints that the receiver must obey.
    pub constraints: Vec<String>,
    /// The shared artifacts by name: a URL or path, or an object with `url` or `path`.
    pub artifacts: Vec<(String, Value)>,
    /// The summary of the history.
    pub history_summary: Option<String>,
}

impl Draft {
    /// Starts the draft of the packet after `parent`: with its objective, steps, constraints, artifacts and summary.
    pub fn after(parent: &Handoff) -> Self {
        let artifacts = parent.context("artifacts").into_iter().flat_map(Node::members);
        Self {
            source_agent: parent.target_agent().to_owned(),
            primary_objective: parent.primary_objective().to_owned(),
            status: parent.status().map(str::to_owned),
            completed_steps: parent.completed_steps().map(str::to_owned).collect(),
            constraints: parent.constraints().map(str::to_owned).collect(),
            artifacts: artifacts.map(|(name, artifact)| (name.to_owned(), artifact.to_value())).collect(),
            history_summary: parent.history_summary().map(str::to_owned),
            ..Self::default()
        }
    }

    /// Reads what a model writes of a packet: the members of `context`, and `history_summary`. `path` is its path. Members
    /// that are absent stay as they are in this draft. `artifacts` can also be a list of `{name, reference}`.
    ///
    /// # Errors
    /// Every rule that the form violates.
    pub fn with_context(mut self, context: Node<'_>, path: &Path) -> Result<Self, Vec<Finding>> {
        let findings = form::check_context(context, path);
        if !findings.is_empty() {
            return Err(findings);
        }
        self.primary_objective = text(context, "primary_objective").unwrap_or(self.primary_objective);
        self.status = text(context, "status").or(self.status);
        self.next_immediate_step = text(context, "next_immediate_step").or(self.next_immediate_step);
        self.history_summary = text(context, "history_summary").or(self.history_summary);
        self.completed_steps = texts(context, "completed_steps").unwrap_or(self.completed_steps);
        self.constraints = texts(context, "constraints").unwrap_or(self.constraints);
        let artifacts = context.get("artifacts").filter(|artifacts| !artifacts.is_null());
        for (name, artifact) in artifacts.into_iter().flat_map(Node::members) {
            self.set_artifact(name, artifact.to_value());
        }
        for item in artifacts.into_iter().flat_map(Node::elements) {
            if let (Some(name), Some(artifact)) = (item.get_str("name"), item.get("reference")) {
                self.set_artifact(name, artifact.to_value());
            }
        }
        Ok(self)
    }

    /// Adds or replaces an artifact.
    pub fn set_artifact(&mut self, name: &str, artifact: Value) {
        match self.artifacts.iter_mut().find(|(known, _)| known == name) {
            Some((_, known)) => *known = artifact,
            None => self.artifacts.push((name.to_owned(), artifact)),
        }
    }

    /// Returns the packet as JSON. Lists are always present, because a receiver must see that they are empty.
    pub(super) fn write(&self, parent: Option<&str>, hash: Option<&str>) -> Value {
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            w.field("protocol", PROTOCOL);
            w.key("meta").object(|w| {
                w.field("source_agent", &self.source_agent);
                w.field("target_agent", &self.target_agent);
                w.field("timestamp", &self.timestamp);
                w.optional("parent", &parent);
                w.field("objective_hash", &canonical::hash_text(&self.primary_objective));
                w.optional("hash", &hash);
            });
            w.key("context").object(|w| self.write_context(w));
            w.optional("history_summary", &self.history_summary);
        });
        Value::parse(&text).unwrap_or_default()
    }

    fn write_context(&self, w: &mut Writer<'_>) {
        w.field("primary_objective", &self.primary_objective);
        w.optional("status", &self.status);
        w.field("completed_steps", &self.completed_steps);
        w.optional("next_immediate_step", &self.next_immediate_step);
        w.field("constraints", &self.constraints);
        w.key("artifacts").object(|w| {
            for (name, artifact) in &self.artifacts {
                w.field(name, artifact);
            }
        });
    }
}

fn text(context: Node<'_>, key: &str) -> Option<String> {
    context.get_str(key).map(str::to_owned)
}

fn texts(context: Node<'_>, key: &str) -> Option<Vec<String>> {
    let list = context.get(key).filter(|list| list.is_array())?;
    Some(list.elements().filter_map(|item| item.as_str().map(str::to_owned)).collect())
}
