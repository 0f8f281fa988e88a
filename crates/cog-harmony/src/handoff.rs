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
mod packet;

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::{Conversation, Finding, Message, Part, canonical};

pub use self::{
    form::{Loss, LossKind, PROTOCOL, losses},
    packet::{Artifact, Draft, Handoff, Reference},
};

impl Handoff {
    /// Creates a packet with its hashes from a draft. `parent` is the packet that the sender received.
    ///
    /// # Errors
    /// Every rule that the packet violates, alone and as the successor of its parent.
    pub fn seal(draft: &Draft, parent: Option<&Handoff>) -> Result<Self, Vec<Finding>> {
        let unsealed = draft.write(parent.map(Handoff::hash), None);
        let hash = packet::hash(unsealed.node());
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
/// Every packet must have the hashes that it declares, follow its parent, and have the objective of the first.
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
