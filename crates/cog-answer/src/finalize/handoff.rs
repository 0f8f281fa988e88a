//! The handoff in an answer: checked, and made the packet for the next agent (docs/handoff.md).

use cog_harmony::{
    Finding,
    handoff::{Draft, Handoff},
};
use cog_json::{Node, Path, Value};
use cog_schema::Violation;

use crate::{AnswerRules, error, patch};

/// The agent and the time in a packet that is only checked.
const UNNAMED: (&str, &str) = ("another agent", "1970-01-01T00:00:00Z");

/// Checks `data.handoff`, also as the successor of the packet that the run received. Returns the packet for the next
/// agent; none if the run hands over to none.
///
/// # Errors
/// Every rule that the handoff violates, or that it is missing.
pub(super) fn next_packet(rules: &AnswerRules, data: Node<'_>) -> Result<Option<Value>, Vec<Violation>> {
    let target = rules.handoff.target.as_ref();
    let handoff = data.get("handoff").filter(|handoff| !handoff.is_null());
    match (handoff, target) {
        (Some(handoff), _) if target.is_some() || rules.contract.emits_handoff() => {
            let sealed = seal(rules, handoff).map_err(violations)?;
            Ok(target.map(|_| sealed.value().clone()))
        }
        (None, Some(target)) => {
            let message = format!("`handoff` is missing, and the run hands over to `{}`", target.agent);
            Err(vec![error::violation("data.handoff", "required", message)])
        }
        _ => Ok(None),
    }
}

fn seal(rules: &AnswerRules, handoff: Node<'_>) -> Result<Handoff, Vec<Finding>> {
    let path = path();
    let parent = rules.handoff.parent.as_ref();
    let target = rules.handoff.target.as_ref();
    let (agent, timestamp) = target.map_or(UNNAMED, |target| (&target.agent, &target.timestamp));
    let draft = Draft {
        source_agent: parent.map_or(rules.manifest.name.as_str(), Handoff::target_agent).to_owned(),
        target_agent: agent.to_owned(),
        timestamp: timestamp.to_owned(),
        ..parent.map(Draft::after).unwrap_or_default()
    };
    let draft = draft.with_context(handoff, &path)?;
    if draft.primary_objective.is_empty() {
        return Err(vec![Finding {
            path: format!("{path}.primary_objective"),
            rule: "required",
            message: "`primary_objective` is missing, and the run received no packet that has it".to_owned(),
            suggestion: None,
        }]);
    }
    Handoff::seal(&draft, parent).map_err(|findings| findings.into_iter().map(in_data).collect())
}

/// Returns a finding about a packet with the path in the data.
fn in_data(finding: Finding) -> Finding {
    let inner = finding.path.strip_prefix("context.").unwrap_or(&finding.path);
    Finding { path: format!("{}.{inner}", path()), ..finding }
}

fn path() -> Path {
    let mut path = patch::data();
    path.push_key("handoff");
    path
}

fn violations(findings: Vec<Finding>) -> Vec<Violation> {
    let violations = findings.into_iter().map(|Finding { path, rule, message, suggestion }| Violation {
        suggestion,
        ..error::violation(&path, rule, message)
    });
    violations.collect()
}

#[cfg(test)]
mod tests {
    use cog_spec::{Format, Manifest, Tier};
    use serde_json::json;

    use super::*;
    use crate::{HandoffRules, HandoffTarget, testing};

    fn parent() -> Handoff {
        let draft = Draft {
            source_agent: "planner".to_owned(),
            target_agent: "coder_v1".to_owned(),
            timestamp: "2026-01-01T10:00:00Z".to_owned(),
            primary_objective: "Build it".to_owned(),
            constraints: vec!["no network".to_owned()],
            artifacts: vec![("spec".to_owned(), Value::parse("\"spec.md\"").unwrap())],
            ..Draft::default()
        };
        Handoff::seal(&draft, None).unwrap()
    }

    fn rules(parent: Option<Handoff>, target: Option<&str>) -> AnswerRules {
        let schema = json!({ "data": { "properties": { "handoff": { "$ref": "#/$defs/Handoff" } } } });
        let manifest = Manifest::with_defaults("coder", Format::V25, Some(Tier::Decision));
        let target = target.map(|agent| HandoffTarget {
            agent: agent.to_owned(),
            timestamp: "2026-01-01T11:00:00Z".to_owned(),
        });
        AnswerRules { handoff: HandoffRules { parent, target }, ..testing::rules(manifest, &schema) }
    }

    fn packet_of(rules: &AnswerRules, handoff: &serde_json::Value) -> Result<Option<Value>, Vec<String>> {
        let data = Value::from(json!({ "handoff": handoff }));
        let named =
            |found: Vec<Violation>| found.iter().map(|one| format!("{} {}", one.path, one.rule)).collect();
        next_packet(rules, data.node()).map_err(named)
    }

    #[test]
    fn answer_becomes_the_next_packet_of_the_chain() {
        let handoff = json!({ "constraints": ["no network", "tests pass"], "completed_steps": ["the game loop"],
            "artifacts": [{ "name": "code", "reference": "snake.py" }] });
        let packet = packet_of(&rules(Some(parent()), Some("tester")), &handoff).unwrap().unwrap();
        let packet = Handoff::read(packet).unwrap();
        assert_eq!((packet.source_agent(), packet.target_agent()), ("coder_v1", "tester"));
        assert_eq!((packet.parent(), packet.timestamp()), (Some(parent().hash()), "2026-01-01T11:00:00Z"));
        assert_eq!(packet.primary_objective(), "Build it");
        assert_eq!(packet.artifacts().map(|one| one.name).collect::<Vec<_>>(), ["spec", "code"]);
        assert_eq!(packet.check_seal(), []);
    }

    #[test]
    fn changed_objective_and_dropped_constraint_are_violations() {
        let handoff = json!({ "primary_objective": "Build another", "constraints": [], "artifacts": [] });
        assert_eq!(
            packet_of(&rules(Some(parent()), None), &handoff).unwrap_err(),
            ["data.handoff.primary_objective primary_objective", "data.handoff.constraints constraints"]
        );
    }

    #[test]
    fn first_packet_requires_an_objective() {
        let handoff = json!({ "constraints": [], "artifacts": [] });
        assert_eq!(
            packet_of(&rules(None, None), &handoff).unwrap_err(),
            ["data.handoff.primary_objective required"]
        );
    }

    #[test]
    fn every_rule_of_the_form_is_a_violation() {
        let artifacts =
            json!([{ "name": "a", "reference": "data:text/plain,x" }, { "name": "a", "reference": "b" }]);
        let long = "x".repeat(70_000);
        let handoff = json!({ "primary_objective": " ", "history_summary": long, "artifacts": artifacts });
        assert_eq!(
            packet_of(&rules(None, None), &handoff).unwrap_err(),
            [
                "data.handoff.primary_objective type",
                "data.handoff.artifacts[0].reference artifact",
                "data.handoff.artifacts[1].name unique",
                "data.handoff.history_summary size",
            ]
        );
    }

    #[test]
    fn run_that_hands_over_requires_a_handoff() {
        assert_eq!(
            packet_of(&rules(None, Some("tester")), &json!(null)).unwrap_err(),
            ["data.handoff required"]
        );
        assert_eq!(packet_of(&rules(None, None), &json!(null)), Ok(None));
        let valid = json!({ "primary_objective": "Build it" });
        assert_eq!(packet_of(&rules(None, None), &valid), Ok(None));
    }

    #[test]
    fn handoff_of_a_module_that_emits_none_is_not_checked() {
        let invalid = json!({ "primary_objective": 7 });
        assert_eq!(packet_of(&testing::plain(), &invalid), Ok(None));
        assert!(packet_of(&rules(None, None), &invalid).is_err());
    }
}
