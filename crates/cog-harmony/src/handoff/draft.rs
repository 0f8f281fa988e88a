use cog_json::{Node, Path, Value, Writer};

use super::{
    form::{self, PROTOCOL},
    packet::Handoff,
};
use crate::{Finding, canonical};

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
