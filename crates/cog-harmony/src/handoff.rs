//! Handoff packets: everything that an agent needs to take over a task (appendix A.3).
//!
//! A [`Handoff`] is a document whose form is right. [`Handoff::seal`] creates one from a [`Draft`] with hashes, so that
//! a chain of packets can be verified from its end with [`verify_chain`]: the objective never changes, and constraints
//! are only added. [`losses`] lists what a handoff would lose of a history. [`Handoff::messages`] renders a packet for the
//! agent that receives it.
//!
//! ```
//! use cog_harmony::handoff::{Draft, Handoff};
//!
//! let draft = Draft {
//!     source_agent: "planner".to_owned(),
//!     target_agent: "coder".to_owned(),
//!     timestamp: "2024-03-20T10:00:00Z".to_owned(),
//!     primary_objective: "Build a snake game".to_owned(),
//!     ..Draft::default()
//! };
//! let first = Handoff::seal(&draft, None).unwrap();
//! let changed = Draft { primary_objective: "Build a chess game".to_owned(), ..draft };
//! assert_eq!(Handoff::seal(&changed, Some(&first)).unwrap_err()[0].rule, "primary_objective");
//! ```

mod form;

use std::collections::{HashMap, HashSet};

use cog_json::{Node, Path, ToJson, Value, Writer};
use serde::Serialize;

use crate::{Conversation, Finding, Message, Part, canonical};

pub use self::form::{Loss, LossKind, PROTOCOL, losses};

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

    fn context(&self, key: &str) -> Option<Node<'_>> {
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
fn hash(packet: Node<'_>) -> String {
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
    fn read(name: &'a str, node: Node<'a>) -> Option<Self> {
        let [url, path, media_type, sha256] =
            ["url", "path", "media_type", "sha256"].map(|key| node.get_str(key));
        let reference = Reference::new(node.as_str().or(url).or(path)?);
        Some(Self { name, reference, media_type, sha256 })
    }

    /// Checks the form of an artifact: a string, or an object with `url` or `path`.
    fn check(node: Node<'a>) -> Result<(), &'static str> {
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
    fn is_image_url(&self) -> bool {
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
    fn write(&self, parent: Option<&str>, hash: Option<&str>) -> Value {
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

impl Handoff {
    /// Creates a packet with its hashes from a draft. `parent` is the packet that the sender received.
    ///
    /// # Errors
    /// Every rule that the packet violates, alone and as the successor of its parent.
    pub fn seal(draft: &Draft, parent: Option<&Handoff>) -> Result<Self, Vec<Finding>> {
        let unsealed = draft.write(parent.map(Handoff::hash), None);
        let hash = hash(unsealed.node());
        let packet = Self::read(draft.write(parent.map(Handoff::hash), Some(&hash)))?;
        let findings = parent.map(|parent| follow(parent, &packet)).unwrap_or_default();
        if findings.is_empty() { Ok(packet) } else { Err(findings) }
    }
}

// A packet as messages for the agent that receives it.

impl Handoff {
    /// Returns the messages with which the receiver starts: fixed instructions, and one user message with the complete
    /// packet. Images among the artifacts that have a URL are parts of it.
    ///
    /// The text of the packet is never in the system message, because another agent wrote it.
    pub fn messages(&self) -> Conversation {
        let mut parts = vec![Part::text(self.text_for_receiver())];
        let images = self.artifacts().filter(Artifact::is_image_url);
        parts.extend(images.map(|image| Part::image_at(image.reference.as_str())));
        let mut user = Message::user("");
        user.content = parts;
        user.name = Some(self.source_agent().to_owned());
        Conversation::new([Message::system(self.instructions()), user])
    }

    fn instructions(&self) -> String {
        let target = self.target_agent();
        format!(
            "You are `{target}`, and you take over a task. The user message is the handoff packet; it contains all \
            that is known. The objective is fixed: do not change it. Every constraint applies. Continue with the next \
            step, and do not repeat completed steps. If you hand over in turn, keep the objective and all constraints."
        )
    }

    fn text_for_receiver(&self) -> String {
        let mut text = format!("# Objective\n\n{}\n", self.primary_objective());
        section(&mut text, "Status", self.status());
        list(&mut text, "Completed steps", self.completed_steps().map(str::to_owned));
        section(&mut text, "Next step", self.next_immediate_step());
        list(&mut text, "Constraints", self.constraints().map(str::to_owned));
        let artifacts =
            self.artifacts().map(|artifact| format!("{}: {}", artifact.name, artifact.reference.as_str()));
        list(&mut text, "Artifacts", artifacts);
        section(&mut text, "History", self.history_summary());
        text
    }
}

fn section(text: &mut String, title: &str, content: Option<&str>) {
    if let Some(content) = content {
        text.push_str(&format!("\n# {title}\n\n{content}\n"));
    }
}

fn list(text: &mut String, title: &str, items: impl Iterator<Item = String>) {
    let lines: String = items.map(|item| format!("- {}\n", item.replace('\n', "\n  "))).collect();
    let lines = if lines.is_empty() { "None.\n".to_owned() } else { lines };
    text.push_str(&format!("\n# {title}\n\n{lines}"));
}

// Chains of packets.

/// The result of verifying a chain from its end.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ChainReport {
    /// The hashes of the packets, the last one first.
    pub packets: Vec<String>,
    /// The rules that are violated. A path starts with the index of its packet, counted from the last one.
    pub findings: Vec<Finding>,
}

/// Verifies a chain from its last packet to its first. `others` are the earlier packets, in any order.
///
/// Every packet must have the hashes that it declares, follow its parent with all of its artifacts, and have the objective of the
/// first.
pub fn verify_chain(last: &Handoff, others: &[Handoff]) -> ChainReport {
    let mut known: HashMap<&str, &Handoff> = HashMap::new();
    for packet in others {
        known.insert(packet.declared_hash().unwrap_or(packet.hash()), packet);
    }
    let mut report = ChainReport::default();
    let mut seen = HashSet::from([last.declared_hash().unwrap_or(last.hash())]);
    let mut current = last;
    for index in 0.. {
        report.packets.push(current.hash().to_owned());
        report.add(index, current.check_seal());
        let Some(parent) = current.parent() else { break };
        if !seen.insert(parent) {
            report.add(index, vec![cycle(parent)]);
            break;
        }
        let Some(before) = known.get(parent) else {
            report.add(index, vec![missing(parent)]);
            break;
        };
        report.add(index, follow(before, current));
        report.add(index, dropped_artifacts(before, current));
        current = before;
    }
    report
}

impl ChainReport {
    fn add(&mut self, index: usize, findings: Vec<Finding>) {
        for finding in findings {
            self.findings.push(Finding { path: format!("[{index}].{}", finding.path), ..finding });
        }
    }
}

/// Returns the rules that a packet violates as the successor of another.
fn follow(parent: &Handoff, packet: &Handoff) -> Vec<Finding> {
    let mut findings = Vec::new();
    if packet.parent() != Some(parent.hash()) {
        let message = format!("the packet before this one has the hash {}", parent.hash());
        findings.push(Finding::new("meta.parent", "parent", message));
    }
    findings.extend(changed(parent, packet.primary_objective()).map(|message| {
        Finding::new("context.primary_objective", "primary_objective", message)
            .suggest("Hand over the objective unchanged; put new wishes into `constraints` or a new chain.")
    }));
    let own: HashSet<&str> = packet.constraints().collect();
    findings.extend(parent.constraints().filter(|constraint| !own.contains(constraint)).map(dropped));
    findings
}

/// Returns a message if this is not the objective of the parent, compared by hash.
fn changed(parent: &Handoff, objective: &str) -> Option<String> {
    let hashes = [canonical::hash_text(parent.primary_objective()), canonical::hash_text(objective)];
    let [before, now] = hashes.each_ref().map(|hash| hash.get(..15).unwrap_or(hash));
    let is_changed = hashes.first() != hashes.last();
    is_changed.then(|| format!("the objective was changed: its hash was {before}…, and is {now}…"))
}

fn dropped(constraint: &str) -> Finding {
    let message = format!("the constraint `{}` was dropped", shortened(constraint));
    Finding::new("context.constraints", "constraints", message).suggest("Constraints can only be added.")
}

/// Returns the artifacts of a packet that its successor does not have.
fn dropped_artifacts(parent: &Handoff, packet: &Handoff) -> Vec<Finding> {
    let own: HashSet<&str> = packet.artifacts().map(|artifact| artifact.name).collect();
    let dropped = parent.artifacts().filter(|artifact| !own.contains(artifact.name));
    let findings = dropped.map(|artifact| {
        let message = format!("the artifact `{}` was dropped", shortened(artifact.name));
        Finding::new("context.artifacts", "artifacts", message)
            .suggest("Keep the artifacts of the packet before; `cog handoff new --parent` does.")
    });
    findings.collect()
}

/// Returns the start of text, for a message.
fn shortened(text: &str) -> String {
    const MAX: usize = 80;
    let mut shown: String = text.chars().take(MAX).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

fn missing(parent: &str) -> Finding {
    Finding::new("meta.parent", "missing_parent", format!("the packet {parent} is missing"))
        .suggest("Name the files of the earlier packets with `--chain`.")
}

fn cycle(parent: &str) -> Finding {
    Finding::new("meta.parent", "cycle", format!("the packet {parent} is in the chain already"))
}

#[cfg(test)]
mod tests;
