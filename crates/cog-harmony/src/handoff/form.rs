//! The form of a packet.

use std::collections::HashSet;

use cog_json::{Node, Path};
use serde::Serialize;

use super::{Artifact, Draft, Handoff, shortened};
use crate::{Conversation, FileSource, Finding, Message, Part, Role, canonical, metadata::is_date_time};

/// The value of `protocol`.
pub const PROTOCOL: &str = "harmony_handoff_v1";

/// The maximum length of a string of a packet, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// The maximum number of items of a list.
const MAX_ITEMS: usize = 1000;

/// Returns every rule that the form of a packet violates.
pub(super) fn check(packet: Node<'_>) -> Vec<Finding> {
    let mut checker = Checker { path: Path::root(), findings: Vec::new() };
    checker.packet(packet);
    checker.findings
}

/// Returns every rule that a context violates, which a model writes. Its path is `path`.
pub(super) fn check_context(context: Node<'_>, path: &Path) -> Vec<Finding> {
    let mut checker = Checker { path: path.clone(), findings: Vec::new() };
    if checker.object(context) {
        checker.context(context, false);
        checker.text(context, "history_summary", false);
    }
    checker.findings
}

struct Checker {
    path: Path,
    findings: Vec<Finding>,
}

impl Checker {
    fn packet(&mut self, packet: Node<'_>) {
        if !self.object(packet) {
            return;
        }
        match packet.get("protocol").map(Node::as_str) {
            Some(Some(PROTOCOL)) => {}
            Some(Some(other)) => {
                let other: String = other.chars().take(40).collect();
                let message = format!("`{other}` is not a known protocol; known: {PROTOCOL}");
                self.wrong("protocol", "protocol", message);
            }
            Some(None) => self.wrong("protocol", "type", "allowed: a string"),
            None => self.wrong("protocol", "required", format!("`protocol` is missing; allowed: {PROTOCOL}")),
        }
        self.inside(packet, "meta", Self::meta);
        self.inside(packet, "context", |checker, context| checker.context(context, true));
        self.text(packet, "history_summary", false);
    }

    fn meta(&mut self, meta: Node<'_>) {
        self.text(meta, "source_agent", true);
        self.text(meta, "target_agent", true);
        self.text(meta, "timestamp", true);
        let timestamp = meta.get_str("timestamp").filter(|text| !text.is_empty());
        if timestamp.is_some_and(|timestamp| !is_date_time(timestamp)) {
            self.wrong("timestamp", "timestamp", "allowed: a date with a time, such as 2024-03-20T10:00:00Z");
        }
        for key in ["parent", "objective_hash", "hash"] {
            let hash = meta.get(key).filter(|hash| !hash.is_null());
            if hash.is_some_and(|hash| !hash.as_str().is_some_and(canonical::is_hash)) {
                self.wrong(key, "hash", "allowed: `sha256:` and 64 hex digits in lower case");
            }
        }
    }

    fn context(&mut self, context: Node<'_>, is_complete: bool) {
        self.text(context, "primary_objective", is_complete);
        self.text(context, "status", false);
        self.text(context, "next_immediate_step", false);
        self.texts(context, "completed_steps");
        self.texts(context, "constraints");
        if is_complete {
            // Both are passed on explicitly, even if they are empty: an absent list may have been forgotten (appendix A, section 7).
            self.required(context, "constraints", "`[]` if there are none");
            self.required(context, "artifacts", "`{}` if there are none");
        }
        if let Some(artifacts) = context.get("artifacts").filter(|artifacts| !artifacts.is_null()) {
            self.path.push_key("artifacts");
            // A model writes a list: most vendors' schemas cannot express an object whose names are free.
            match artifacts.is_array() && !is_complete {
                true => self.artifact_list(artifacts),
                false => self.artifact_map(artifacts),
            }
            self.path.pop();
        }
    }

    fn artifact_map(&mut self, artifacts: Node<'_>) {
        if !(self.object(artifacts) && self.few(artifacts.len())) {
            return;
        }
        for (name, artifact) in artifacts.members() {
            if let Err(message) = Artifact::check(artifact) {
                self.wrong(name, "artifact", message);
            }
        }
    }

    /// Checks artifacts as a model writes them: a list of `{name, reference}`.
    fn artifact_list(&mut self, artifacts: Node<'_>) {
        if !self.few(artifacts.len()) {
            return;
        }
        let mut names = HashSet::new();
        for (index, artifact) in artifacts.elements().enumerate() {
            self.path.push_index(index);
            if self.object(artifact) {
                self.text(artifact, "name", true);
                let checked =
                    artifact.get("reference").map_or(Err("`reference` is missing"), Artifact::check);
                if let Err(message) = checked {
                    self.wrong("reference", "artifact", message);
                }
                let name = artifact.get_str("name").unwrap_or_default();
                if !names.insert(name) {
                    self.wrong("name", "unique", "another artifact has this name");
                }
            }
            self.path.pop();
        }
    }

    fn required(&mut self, object: Node<'_>, key: &str, allowed: &str) {
        if object.get(key).is_none_or(Node::is_null) {
            self.wrong(key, "required", format!("`{key}` is missing; allowed: {allowed}"));
        }
    }

    fn inside(&mut self, object: Node<'_>, key: &str, check: impl FnOnce(&mut Self, Node<'_>)) {
        let Some(member) = object.get(key) else {
            return self.wrong(key, "required", format!("`{key}` is missing"));
        };
        self.path.push_key(key);
        if self.object(member) {
            check(self, member);
        }
        self.path.pop();
    }

    fn texts(&mut self, object: Node<'_>, key: &str) {
        let Some(list) = object.get(key).filter(|list| !list.is_null()) else { return };
        self.path.push_key(key);
        if !list.is_array() {
            self.here("type", format!("found {}; allowed: an array of strings", list.kind()));
        } else if self.few(list.len()) {
            for (index, item) in list.elements().enumerate() {
                self.path.push_index(index);
                self.one_text(item);
                self.path.pop();
            }
        }
        self.path.pop();
    }

    fn text(&mut self, object: Node<'_>, key: &str, is_required: bool) {
        let Some(text) = object.get(key).filter(|text| is_required || !text.is_null()) else {
            if is_required {
                self.wrong(key, "required", format!("`{key}` is missing"));
            }
            return;
        };
        self.path.push_key(key);
        self.one_text(text);
        self.path.pop();
    }

    fn one_text(&mut self, node: Node<'_>) {
        match node.as_str() {
            None => self.here("type", format!("found {}; allowed: a string", node.kind())),
            Some(text) if text.trim().is_empty() => self.here("type", "allowed: a string that is not empty"),
            Some(text) if text.len() > MAX_TEXT => {
                let message = format!("the text has {} bytes; allowed: at most {MAX_TEXT}", text.len());
                let finding = Finding::new(&self.path, "size", message);
                self.findings
                    .push(finding.suggest("Summarize it, or put it into a file among the artifacts."));
            }
            Some(_) => {}
        }
    }

    fn object(&mut self, node: Node<'_>) -> bool {
        if !node.is_object() {
            self.here("type", format!("found {}; allowed: an object", node.kind()));
        }
        node.is_object()
    }

    fn few(&mut self, count: usize) -> bool {
        if count > MAX_ITEMS {
            self.here("size", format!("found {count} items; allowed: at most {MAX_ITEMS}"));
        }
        count <= MAX_ITEMS
    }

    fn here(&mut self, rule: &'static str, message: impl Into<String>) {
        self.findings.push(Finding::new(&self.path, rule, message));
    }

    fn wrong(&mut self, key: &str, rule: &'static str, message: impl Into<String>) {
        self.path.push_key(key);
        self.here(rule, message);
        self.path.pop();
    }
}

// What a handoff loses.

/// Something that the receiver of a packet will not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// Where it was, such as `messages[3].content[1]`.
    pub path: String,
    /// The kind of the loss.
    pub kind: LossKind,
    /// A message with the content.
    pub message: String,
}

/// The kind of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// A message that no summary covers.
    History,
    /// A tool call without a result.
    OpenToolCall,
    /// A media part that is not among the artifacts.
    Media,
    /// A constraint of the packet before.
    Constraint,
    /// An artifact of the packet before.
    Artifact,
}

/// Lists what a packet would lose: of the packet before it, and of the history of the agent that hands over.
pub fn losses(draft: &Draft, parent: Option<&Handoff>, history: &Conversation) -> Vec<Loss> {
    let mut losses = Vec::new();
    if let Some(parent) = parent {
        let own: HashSet<&str> = draft.constraints.iter().map(String::as_str).collect();
        let dropped = parent.constraints().filter(|constraint| !own.contains(constraint));
        losses.extend(dropped.map(|constraint| {
            loss(
                "context.constraints",
                LossKind::Constraint,
                format!("the constraint `{}`", shortened(constraint)),
            )
        }));
        let own: HashSet<&str> = draft.artifacts.iter().map(|(name, _)| name.as_str()).collect();
        let dropped = parent.artifacts().filter(|artifact| !own.contains(artifact.name));
        losses.extend(dropped.map(|artifact| {
            loss("context.artifacts", LossKind::Artifact, format!("the artifact `{}`", artifact.name))
        }));
        let summary = draft.history_summary.as_deref().unwrap_or_default();
        if let Some(before) = parent.history_summary().filter(|before| !summary.contains(before)) {
            let what = format!("the summary of the packet before, `{}`, was replaced", shortened(before));
            losses.push(loss("history_summary", LossKind::History, what));
        }
    }
    losses.extend(of_history(draft, history));
    losses
}

fn of_history(draft: &Draft, history: &Conversation) -> Vec<Loss> {
    let references: HashSet<&str> =
        draft.artifacts.iter().filter_map(|(_, artifact)| reference(artifact)).collect();
    let answered: HashSet<&str> =
        history.messages().iter().filter_map(|message| message.tool_call_id.as_deref()).collect();
    let has_summary = draft.history_summary.is_some();
    let mut losses = Vec::new();
    for (index, message) in history.messages().iter().enumerate() {
        let path = format!("messages[{index}]");
        if !has_summary && !message.text().trim().is_empty() {
            let what = format!("the {} message `{}`", message.role, shortened(message.text().trim()));
            losses.push(loss(&path, LossKind::History, format!("{what} is in no summary")));
        }
        losses.extend(open_calls(message, &path, &answered));
        losses.extend(media(message, &path, &references));
    }
    losses
}

fn open_calls(message: &Message, path: &str, answered: &HashSet<&str>) -> Vec<Loss> {
    let calls = message.tool_calls.iter().enumerate().filter(|_| message.role == Role::Assistant);
    let open = calls.filter(|(_, call)| !answered.contains(call.id.as_str()));
    let lost = open.map(|(index, call)| {
        let message = format!(
            "the call `{}` of the tool `{}` has no result",
            shortened(&call.id),
            shortened(&call.name)
        );
        loss(&format!("{path}.tool_calls[{index}]"), LossKind::OpenToolCall, message)
    });
    lost.collect()
}

fn media(message: &Message, path: &str, references: &HashSet<&str>) -> Vec<Loss> {
    let lost = message.content.iter().enumerate().filter_map(|(index, part)| {
        let what = match part {
            Part::Image(image) if image.url.starts_with("data:") => "an image with its bytes".to_owned(),
            Part::Image(image) if references.contains(image.url.as_str()) => return None,
            Part::Image(image) => format!("the image {}", shortened(without_query(&image.url))),
            Part::Audio(audio) => format!("{} audio with its bytes", shortened(&audio.format)),
            Part::File(file) => format!("a file of type {} with its bytes", shortened(&file.media_type)),
            Part::FileReference(file) => match &file.source {
                FileSource::Url(url) if references.contains(url.as_str()) => return None,
                FileSource::Url(url) => format!("the file {}", shortened(without_query(url))),
                FileSource::Id(id) => format!("the uploaded file `{}`", shortened(id)),
            },
            Part::Text(_) | Part::Refusal(_) | Part::Native(_) => return None,
        };
        let message = format!("{what} is not among the artifacts");
        Some(loss(&format!("{path}.content[{index}]"), LossKind::Media, message))
    });
    lost.collect()
}

/// The query of a URL may be a signature.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

fn reference(artifact: &cog_json::Value) -> Option<&str> {
    let members = ["url", "path"].into_iter().find_map(|key| artifact.get_str(key));
    artifact.as_str().or(members)
}

fn loss(path: &str, kind: LossKind, message: String) -> Loss {
    Loss { path: path.to_owned(), kind, message }
}
