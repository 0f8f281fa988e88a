//! Chains of packets.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::packet::Handoff;
use crate::{Finding, canonical};

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
        let below = |finding: Finding| Finding { path: format!("[{index}].{}", finding.path), ..finding };
        self.findings.extend(findings.into_iter().map(below));
    }
}

/// Returns the rules that a packet violates as the successor of another.
pub(super) fn follow(parent: &Handoff, packet: &Handoff) -> Vec<Finding> {
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
pub(super) fn changed(parent: &Handoff, objective: &str) -> Option<String> {
    let (before, now) = (canonical::hash_text(parent.primary_objective()), canonical::hash_text(objective));
    (before != now).then(|| {
        let shown = |hash: &str| hash.get(..15).unwrap_or(hash).to_owned();
        format!("the objective was changed: its hash was {}…, and is {}…", shown(&before), shown(&now))
    })
}

fn dropped(constraint: &str) -> Finding {
    let message = format!("the constraint `{}` was dropped", shortened(constraint));
    Finding::new("context.constraints", "constraints", message).suggest("Constraints can only be added.")
}

/// Returns the start of a text for a message.
pub(super) fn shortened(text: &str) -> String {
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
