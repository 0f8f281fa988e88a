//! Whether a contract receives or emits a handoff (docs/handoff.md).

use crate::contract::Contract;
use crate::graph::Id;

impl Contract {
    /// Returns whether the input can be a handoff packet: its schema refers to `#/$defs/HandoffPacket`.
    pub fn takes_packet(&self) -> bool {
        let input = self.input.as_ref().map(|part| part.id);
        input.is_some_and(|input| self.is_one_of(input, &self.document.handoffs.packets))
    }

    /// Returns whether the input must be a handoff packet.
    pub fn requires_packet(&self) -> bool {
        let packets = &self.document.handoffs.packets;
        let mut certain = self.input.iter().flat_map(|input| self.graph.certain(input.id));
        certain.any(|shape| packets.contains(&shape.pointer))
    }

    /// Returns whether the data have a field `handoff` that refers to `#/$defs/Handoff`.
    pub fn emits_handoff(&self) -> bool {
        self.handoff_fields().iter().any(|id| self.is_one_of(*id, &self.document.handoffs.contexts))
    }

    /// Returns whether the data have a field `handoff`, with any schema.
    pub fn has_handoff(&self) -> bool {
        !self.handoff_fields().is_empty()
    }

    fn handoff_fields(&self) -> Vec<Id> {
        let data = self.data.as_ref().map(|part| part.id);
        data.map(|data| self.graph.members(data, "handoff")).unwrap_or_default()
    }

    fn is_one_of(&self, id: Id, pointers: &[String]) -> bool {
        self.graph.possible(id).any(|shape| pointers.contains(&shape.pointer))
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::{Dialect, Format, Manifest, Tier};
    use serde_json::{Value, json};

    use crate::{Contract, Rules};

    fn contract(document: &Value) -> Contract {
        let rules = Rules::from(&Manifest::with_defaults("test", Format::V25, Some(Tier::Decision)));
        Contract::compile(document, &rules).unwrap()
    }

    fn emitting(input: &Value) -> Contract {
        let handoff = json!({ "$ref": "#/$defs/Handoff" });
        let data = json!({ "required": ["handoff"], "properties": {
            "handoff": handoff, "rationale": { "type": "string" } } });
        contract(&json!({ "input": input, "data": data }))
    }

    fn paths(contract: &Contract, handoff: &Value) -> Vec<String> {
        let data = json!({ "rationale": "r", "handoff": handoff });
        let data = cog_json::Value::from(data);
        let violations = contract.check_data(data.node()).violations;
        violations.into_iter().map(|one| format!("{} {}", one.path, one.rule)).collect()
    }

    #[test]
    fn reference_to_the_definition_is_found() {
        let packet = json!({ "anyOf": [{ "$ref": "#/$defs/HandoffPacket" }, { "required": ["task"] }] });
        let both = emitting(&packet);
        assert!(both.takes_packet() && !both.requires_packet() && both.emits_handoff() && both.has_handoff());
        let own = contract(&json!({
            "data": { "properties": { "handoff": { "$ref": "#/$defs/Handoff" } } },
            "$defs": { "Handoff": { "type": "string" } },
        }));
        assert!(!own.takes_packet() && !own.emits_handoff() && own.has_handoff());
        assert!(!contract(&json!({ "data": {} })).has_handoff());
    }

    #[test]
    fn emitted_handoff_is_checked_by_the_definition() {
        let first = emitting(&json!({}));
        assert_eq!(
            paths(&first, &json!({ "constraints": [""], "steps": 1 })),
            [
                "data.handoff.primary_objective required",
                "data.handoff.artifacts required",
                "data.handoff.constraints[0] minLength",
                "data.handoff.steps additionalProperties",
            ]
        );
        let artifact = json!({ "name": "doc", "reference": "a.md" });
        let complete = json!({ "primary_objective": "Build it", "constraints": [], "artifacts": [artifact] });
        assert_eq!(paths(&first, &complete), [""; 0]);
    }

    #[test]
    fn receiver_of_a_packet_may_omit_the_objective() {
        let next = emitting(&json!({ "$ref": "#/$defs/HandoffPacket" }));
        assert!(next.requires_packet());
        assert_eq!(paths(&next, &json!({ "constraints": [], "artifacts": [] })), [""; 0]);
    }

    #[test]
    fn every_dialect_receives_the_definition() {
        for dialect in [
            Dialect::OpenAiStrict,
            Dialect::JsonSchema,
            Dialect::Anthropic,
            Dialect::Gemini,
            Dialect::LlamaCpp,
        ] {
            let projection = emitting(&json!({})).project(dialect);
            assert_eq!(projection.dialect, dialect);
            let schema = projection.schema.unwrap().to_string();
            for name in ["primary_objective", "next_immediate_step", "constraints", "reference"] {
                assert!(schema.contains(&format!("\"{name}\"")), "{dialect:?}: {name}");
            }
            assert!(!schema.contains("#/$defs/Handoff\"") || schema.contains("\"Handoff\":{"), "{schema}");
        }
    }

    #[test]
    fn sample_satisfies_the_definition() {
        for seed in 0..20 {
            let contract = emitting(&json!({}));
            let sample = contract.sample(seed).unwrap();
            assert_eq!(contract.check_data(sample.node()).violations, [], "{sample}");
        }
    }
}
