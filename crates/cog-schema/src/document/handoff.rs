//! The definitions of a handoff: what a module emits for the next agent, and the packet that it receives (docs/handoff.md).

use serde_json::{Value, json};

/// The context of a packet, which a module emits.
pub(super) const CONTEXT: &str = "Handoff";

/// A complete packet.
pub(super) const PACKET: &str = "HandoffPacket";

/// Returns the definition of the context that a module emits. A module that receives a packet hands over its objective unchanged, so
/// the model may omit it.
///
/// Every object is closed and no member is a map, so that each dialect can express it.
pub(super) fn context(requires_objective: bool) -> Value {
    let objective = requires_objective.then_some("primary_objective");
    let required: Vec<&str> = objective.into_iter().chain(["constraints", "artifacts"]).collect();
    json!({
        "type": "object",
        "description": "What another agent needs to take over the task, without the conversation so far.",
        "required": required,
        "additionalProperties": false,
        "properties": {
            "primary_objective": text("The task. It never changes when it is handed over again."),
            "status": text("How far the task is, such as `in_progress`."),
            "completed_steps": texts("The steps that are completed, with their result."),
            "next_immediate_step": text("The step to begin with."),
            "constraints": texts("What the receiver must obey. Every constraint that was received stays, word for word."),
            "artifacts": {
                "type": "array",
                "description": "Files and pages that the receiver needs. Only references, never content.",
                "items": {
                    "type": "object",
                    "required": ["name", "reference"],
                    "additionalProperties": false,
                    "properties": {
                        "name": text("A short name, such as `design_doc`."),
                        "reference": text("A path or a URL."),
                    },
                },
            },
            "history_summary": text("What was discussed and decided, in a few sentences."),
        },
    })
}

/// Returns the definition of a packet. Its hashes and limits are checked elsewhere.
pub(super) fn packet() -> Value {
    let reference = json!({
        "anyOf": [
            { "type": "string", "minLength": 1 },
            {
                "type": "object",
                "properties": {
                    "url": { "type": "string" },
                    "path": { "type": "string" },
                    "media_type": { "type": "string" },
                    "sha256": { "type": "string", "pattern": "^[0-9A-Fa-f]{64}$" },
                },
            },
        ],
    });
    json!({
        "type": "object",
        "description": "A handoff packet: a task of another agent, with its state.",
        "required": ["protocol", "meta", "context"],
        "properties": {
            "protocol": { "type": "string", "const": "harmony_handoff_v1" },
            "meta": {
                "type": "object",
                "required": ["source_agent", "target_agent", "timestamp"],
                "properties": {
                    "source_agent": text("The agent that hands over."),
                    "target_agent": text("The agent that takes over."),
                    "timestamp": { "type": "string", "format": "date-time" },
                },
            },
            "context": {
                "type": "object",
                "required": ["primary_objective"],
                "properties": {
                    "primary_objective": text("The task, which does not change."),
                    "status": text("How far the task is."),
                    "completed_steps": texts("The steps that are completed."),
                    "next_immediate_step": text("The step to begin with."),
                    "constraints": texts("What the receiver must obey."),
                    "artifacts": {
                        "type": "object",
                        "description": "Files and pages by name: a path or a URL.",
                        "additionalProperties": reference,
                    },
                },
            },
            "history_summary": text("What was discussed and decided."),
        },
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string", "minLength": 1 }, "description": description })
}
