//! The state of a halted run as JSON.

use cog_harmony::{Message, Reasoning, ToolCall};
use cog_json::{Node, Value, Writer};
use cog_spec::{PartAnswer, Usage};
use serde::Deserialize;

use super::{HaltedState, Progressed};
use crate::{RunOptions, options::stored, parts_state::CompositionState, tools::Round};

/// The format version.
const VERSION: u64 = 1;

impl HaltedState {
    /// Returns the state as JSON.
    pub(in crate::tools) fn to_text(&self) -> String {
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            w.field("cog_halted", &VERSION);
            w.field("id", &self.id);
            w.optional("owner", &self.owner);
            w.field("created_ms", &self.created_ms);
            w.field("module", &self.module);
            w.optional("directory", &self.directory);
            w.optional("trusted_for_run", &self.is_trusted_for_run.then_some(true));
            w.optional("provider", &self.provider);
            w.optional("model", &self.model);
            write_hashes(w.key("hashes"), &self.hashes);
            w.field("input", &self.input);
            w.optional("media", &(!self.media.is_empty()).then_some(&self.media));
            w.field("options", &self.options);
            stored::write(w.key("internal_options"), &self.options, &[]);
            w.key("messages").array(|w| self.messages.iter().for_each(|it| write_message(w, Some(it))));
            w.key("calls").array(|w| self.round.calls.iter().for_each(|call| write_call(w, call)));
            w.key("results")
                .array(|w| self.round.results.iter().for_each(|it| write_message(w, it.as_ref())));
            write_progressed(w, &self.progressed);
            w.optional("part", &self.part);
            write_parts(w, self.parts.as_ref());
        });
        text
    }

    /// Reads a state; none if it is not one of this version.
    pub(in crate::tools) fn read(text: &str) -> Option<Self> {
        Self::from_node(Value::parse(text).ok()?.node())
    }

    /// Reads a state from JSON; none if it is not one of this version.
    pub(in crate::tools) fn from_node(value: Node<'_>) -> Option<Self> {
        if value.get("cog_halted")?.as_u64() != Some(VERSION) {
            return None;
        }
        let mut options = RunOptions::read(value.get("options")?, &[]).ok()?;
        stored::read(value.get("internal_options")?, &mut options)?;
        options.owner = string(value, "owner");
        Some(Self {
            id: string(value, "id")?,
            owner: string(value, "owner"),
            created_ms: value.get("created_ms")?.as_u64()?,
            module: string(value, "module")?,
            directory: string(value, "directory"),
            is_trusted_for_run: value.get("trusted_for_run").is_some_and(|is| is.as_bool() == Some(true)),
            provider: string(value, "provider"),
            model: string(value, "model"),
            hashes: read_hashes(value.get("hashes")?)?,
            input: value.get("input")?.to_value(),
            media: match value.get("media") {
                Some(media) => Vec::deserialize(media).ok()?,
                None => Vec::new(),
            },
            options,
            messages: value.get("messages")?.elements().map(read_message).collect::<Option<_>>()?,
            round: Round {
                calls: value.get("calls")?.elements().map(read_call).collect::<Option<_>>()?,
                results: value.get("results")?.elements().map(read_result).collect::<Option<_>>()?,
            },
            progressed: read_progressed(value)?,
            parts: match value.get("parts") {
                Some(parts) => Some(read_parts(parts)?),
                None => None,
            },
            part: string(value, "part"),
        })
    }
}

/// Writes the hash of each part of a module.
pub(in crate::tools) fn write_hashes(w: &mut Writer<'_>, hashes: &[(String, String)]) {
    w.object(|w| {
        for (name, hash) in hashes {
            w.field(name, hash);
        }
    });
}

pub(in crate::tools) fn read_hashes(node: Node<'_>) -> Option<Vec<(String, String)>> {
    node.members().map(|(name, hash)| Some((name.to_owned(), hash.as_str()?.to_owned()))).collect()
}

/// Writes a message, and next to it the members that are only sent back to its provider. An absent message is null.
pub(in crate::tools) fn write_message(w: &mut Writer<'_>, message: Option<&Message>) {
    let Some(message) = message else { return w.null() };
    w.object(|w| {
        w.field("message", message);
        if let Some(reasoning) = &message.reasoning {
            w.field("provider", &reasoning.provider);
            w.field("reasoning", &reasoning.items);
        }
        if message.tool_calls.iter().any(|call| call.signature.is_some()) {
            let signatures: Vec<_> = message.tool_calls.iter().map(|call| call.signature.clone()).collect();
            w.field("signatures", &signatures);
        }
    });
}

pub(in crate::tools) fn read_message(node: Node<'_>) -> Option<Message> {
    let mut message = Message::read(node.get("message")?, "message").ok()?;
    let items = node.get("reasoning").map(|items| items.elements().map(Node::to_value).collect());
    message.reasoning =
        string(node, "provider").zip(items).map(|(provider, items)| Reasoning { provider, items });
    let signatures = node.get("signatures").into_iter().flat_map(Node::elements);
    for (call, signature) in message.tool_calls.iter_mut().zip(signatures) {
        call.signature = signature.as_str().map(str::to_owned);
    }
    Some(message)
}

fn read_result(node: Node<'_>) -> Option<Option<Message>> {
    if node.is_null() { Some(None) } else { read_message(node).map(Some) }
}

/// Writes a call as the model wrote it: its arguments need not be JSON.
pub(in crate::tools) fn write_call(w: &mut Writer<'_>, call: &ToolCall) {
    w.object(|w| {
        w.field("id", &call.id);
        w.field("name", &call.name);
        w.field("arguments", &call.arguments);
        w.optional("signature", &call.signature);
    });
}

pub(in crate::tools) fn read_call(node: Node<'_>) -> Option<ToolCall> {
    let call = ToolCall::new(string(node, "id")?, string(node, "name")?, string(node, "arguments")?);
    Some(ToolCall { signature: string(node, "signature"), ..call })
}

fn write_progressed(w: &mut Writer<'_>, progressed: &Progressed) {
    let Progressed { rounds, calls, is_high_risk, notes, halted_tools, usage } = progressed;
    w.field("round_count", rounds);
    w.field("call_count", calls);
    w.field("is_high_risk", is_high_risk);
    w.field("notes", notes);
    w.field("halted_tools", halted_tools);
    w.optional("usage", usage);
}

fn read_progressed(node: Node<'_>) -> Option<Progressed> {
    let count = |key: &str| node.get(key)?.as_u64().and_then(|count| u32::try_from(count).ok());
    Some(Progressed {
        rounds: count("round_count")?,
        calls: count("call_count")?,
        is_high_risk: node.get("is_high_risk")?.as_bool()?,
        notes: Vec::deserialize(node.get("notes")?).ok()?,
        halted_tools: Vec::deserialize(node.get("halted_tools")?).ok()?,
        usage: node.get("usage").and_then(Usage::read),
    })
}

/// Writes the parts of a composition: the answers of those that are done, and those that wait for a confirmation.
fn write_parts(w: &mut Writer<'_>, parts: Option<&CompositionState>) {
    let Some(parts) = parts else { return };
    w.key("parts").object(|w| {
        w.key("finished").object(|w| {
            for (path, answer) in parts.finished.answers() {
                w.field(path, answer);
            }
        });
        w.field("halted", &parts.halted);
    });
}

/// Reads the parts of a composition.
fn read_parts(node: Node<'_>) -> Option<CompositionState> {
    let finished = node.get("finished")?.members();
    let answer =
        |(path, answer): (&str, Node<'_>)| Some((path.to_owned(), PartAnswer::deserialize(answer).ok()?));
    Some(CompositionState {
        finished: finished.map(answer).collect::<Option<Vec<_>>>()?.into_iter().collect(),
        halted: Vec::deserialize(node.get("halted")?).ok()?,
    })
}

fn string(node: Node<'_>, key: &str) -> Option<String> {
    node.get(key)?.as_str().map(str::to_owned)
}
