use cog_harmony::{Finding, handoff::Handoff};
use cog_json::Value;
use cog_schema::Violation;

use crate::error::violation;

/// Checks a handoff packet: its form, and the hashes that it declares (appendix A.3).
pub(super) fn check(packet: &Value, violations: &mut Vec<Violation>) {
    let findings = match Handoff::read(packet.clone()) {
        Ok(packet) => packet.check_seal(),
        Err(findings) => findings,
    };
    violations.extend(findings.into_iter().map(described));
}

fn described(finding: Finding) -> Violation {
    let Finding { path, rule, message, suggestion } = finding;
    Violation { suggestion, ..violation(&path, rule, message) }
}
