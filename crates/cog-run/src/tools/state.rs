//! The state of a halted run: what it needs to continue in another process.

use std::sync::Arc;

use cog_harmony::{Conversation, Message, Reasoning, ToolCall};
use cog_json::{Node, ToJson as _, Value, Writer};
use cog_module::{Module, Origin, Trust};
use cog_provider::ProviderInfo;
use cog_spec::{Code, ErrorBody, PartAnswer, Usage};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Round, results::CONFIRMATION_REQUIRED};
use crate::{
    RunOptions, clock, media_files::StoredMedia, options, parts_state::CompositionState, session::random_id,
};

/// The number of messages that a run creates again from its input: the prompt and the input.
pub(crate) const INITIAL_MESSAGES: usize = 2;

/// The counts of a run so far.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Progressed {
    pub(super) rounds: u32,
    pub(super) calls: u32,
    pub(super) is_high_risk: bool,
    pub(super) notes: Vec<CallNote>,
    /// The tools with a halted call.
    pub(super) halted_tools: Vec<String>,
    /// The tokens before the run was halted.
    pub(super) usage: Option<Usage>,
}

/// A call that was executed, for errors and for the state of a halted run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallNote {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) status: String,
}

/// The state of a halted run.
#[derive(Debug, Clone)]
pub(crate) struct HaltedState {
    pub(super) id: String,
    pub(super) owner: Option<String>,
    pub(super) created_ms: u64,
    /// The name of the module.
    pub(super) module: String,
    /// The directory of the module, if it has one.
    pub(super) directory: Option<String>,
    /// Whether the user chose the module for this run.
    pub(super) is_trusted_for_run: bool,
    /// The provider that was called.
    pub(super) provider: Option<String>,
    /// Its model.
    pub(super) model: Option<String>,
    /// The hash of each part of the module.
    pub(super) hashes: Vec<(String, String)>,
    pub(super) input: Value,
    /// The stored media of the input.
    pub(super) media: Vec<StoredMedia>,
    pub(super) options: RunOptions,
    /// The messages after the prompt and the input.
    pub(super) messages: Vec<Message>,
    pub(super) round: Round,
    pub(super) progressed: Progressed,
    /// The parts of a composition, which ran before.
    pub(super) parts: Option<CompositionState>,
    /// The path of the part that waits for the confirmation; none if the module itself waits.
    pub(super) part: Option<String>,
}

impl HaltedState {
    /// Creates the state of a run.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub(super) fn new(
        module: &Arc<Module>,
        input: &Value,
        options: &RunOptions,
        round: Round,
    ) -> Result<Self, ErrorBody> {
        let id = random_id("halt_").map_err(|error| {
            ErrorBody::new(Code::InternalError, format!("cannot generate random numbers: {error}"))
        })?;
        let directory = match &module.origin {
            // The run may continue from another working directory.
            Origin::Directory(directory) => {
                let absolute = std::path::absolute(directory);
                Some(absolute.as_ref().unwrap_or(directory).display().to_string())
            }
            _ => None,
        };
        Ok(Self {
            id,
            owner: options.owner.clone(),
            created_ms: clock::millis(clock::now()),
            module: module.manifest.name.clone(),
            directory,
            is_trusted_for_run: module.trust == Trust::ForThisRun,
            provider: None,
            model: None,
            hashes: hashes(module),
            input: input.clone(),
            media: Vec::new(),
            options: options.clone(),
            messages: Vec::new(),
            round,
            progressed: Progressed::default(),
            parts: None,
            part: None,
        })
    }

    /// Adds the messages of the conversation that the run does not create from its input.
    #[must_use]
    pub(super) fn with_messages(mut self, conversation: &Conversation) -> Self {
        self.messages = conversation.messages().iter().skip(INITIAL_MESSAGES).cloned().collect();
        self
    }

    /// Adds the provider of the run and its model.
    #[must_use]
    pub(super) fn with_model(mut self, provider: &ProviderInfo, model: &str) -> Self {
        self.provider = Some(provider.name.clone().into_owned());
        self.model = Some(provider.model_or_default(model).to_owned());
        self
    }

    /// Returns the names of the stored media.
    pub(super) fn media_names(&self) -> impl Iterator<Item = &str> {
        self.media.iter().map(|media| media.file.as_str())
    }

    /// Returns the round that waits for a confirmation; none if a part waits.
    pub(super) fn own_round(&self) -> Option<&Round> {
        self.part.is_none().then_some(&self.round)
    }

    /// Returns the first call that waits for a confirmation, with the hash of its arguments.
    pub(super) fn halted_call(&self) -> Option<(&ToolCall, String)> {
        let (_, call) = self.round.open().next()?;
        Some((call, hash(&call.arguments)))
    }

    /// Returns the error that ends the run.
    pub(super) fn error(&self) -> ErrorBody {
        let Some((call, hash)) = self.halted_call() else {
            return ErrorBody::new(Code::InternalError, "the halted run has no call that waits");
        };
        let messages = Conversation::new(self.round.messages()).to_json();
        let messages = Value::parse(&messages).unwrap_or_default();
        let mut details = String::new();
        Writer::compact(&mut details).object(|w| {
            w.field("reason", CONFIRMATION_REQUIRED);
            w.key("halted").object(|w| self.write_halted(w, call, &hash));
            w.field("tools", &self.progressed.notes);
            w.field("messages", &messages);
        });
        // An agent that reads the command could confirm its own call.
        let message = format!("`{}` needs a confirmation; it was not executed", call.name);
        ErrorBody::new(Code::PermissionDenied, message)
            .with_recoverable(true)
            .suggest(
                "Ask the person who is responsible to check the arguments, and to confirm or deny the call.",
            )
            .with_details(Value::parse(&details).unwrap_or_default())
    }

    /// Writes the id, the call that waits, and the part of a composition that made it. The person who confirms the call sees its
    /// arguments as the tool receives them.
    fn write_halted(&self, w: &mut Writer<'_>, call: &ToolCall, hash: &str) {
        w.field("id", &self.id);
        w.field("tool", &call.name);
        w.field("call_id", &call.id);
        w.field("arguments", &Value::parse(&call.arguments).unwrap_or_default());
        w.field("arguments_sha256", hash);
        w.optional("part", &self.part);
    }
}

/// Returns the names of the parts of a module that changed since these hashes.
pub(super) fn changed(hashes_before: &[(String, String)], module: &Module) -> Vec<String> {
    let now = hashes(module);
    let changed = hashes_before.iter().filter(|known| !now.contains(known));
    changed.map(|(name, _)| name.clone()).collect()
}

/// Returns the hash of each part of a module that a run depends on.
pub(super) fn hashes(module: &Module) -> Vec<(String, String)> {
    let manifest = format!("{:?}", module.manifest);
    let parts = [
        ("manifest", hash(&manifest)),
        ("prompt", hash(module.prompt.text())),
        ("schema", hash(&module.schema.to_string())),
    ];
    parts.map(|(name, hash)| (name.to_owned(), hash)).into()
}

/// Returns the SHA-256 of a string in hexadecimal.
pub(super) fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

// The state of a halted run as JSON.

/// The format version.
const VERSION: u64 = 1;

impl HaltedState {
    /// Returns the state as JSON.
    pub(super) fn to_text(&self) -> String {
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
            options::write_stored(w.key("internal_options"), &self.options, &[]);
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
    pub(super) fn read(text: &str) -> Option<Self> {
        Self::from_node(Value::parse(text).ok()?.node())
    }

    /// Reads a state from JSON; none if it is not one of this version.
    pub(super) fn from_node(value: Node<'_>) -> Option<Self> {
        if value.get("cog_halted")?.as_u64() != Some(VERSION) {
            return None;
        }
        let mut options = RunOptions::read(value.get("options")?, &[]).ok()?;
        options::read_stored(value.get("internal_options")?, &mut options)?;
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
pub(super) fn write_hashes(w: &mut Writer<'_>, hashes: &[(String, String)]) {
    w.object(|w| {
        for (name, hash) in hashes {
            w.field(name, hash);
        }
    });
}

pub(super) fn read_hashes(node: Node<'_>) -> Option<Vec<(String, String)>> {
    node.members().map(|(name, hash)| Some((name.to_owned(), hash.as_str()?.to_owned()))).collect()
}

/// Writes a message, and next to it the members that are only sent back to its provider. An absent message is null.
pub(super) fn write_message(w: &mut Writer<'_>, message: Option<&Message>) {
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

pub(super) fn read_message(node: Node<'_>) -> Option<Message> {
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
pub(super) fn write_call(w: &mut Writer<'_>, call: &ToolCall) {
    w.object(|w| {
        w.field("id", &call.id);
        w.field("name", &call.name);
        w.field("arguments", &call.arguments);
        w.optional("signature", &call.signature);
    });
}

pub(super) fn read_call(node: Node<'_>) -> Option<ToolCall> {
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
    Some(Progressed {
        rounds: u32::try_from(node.get("round_count")?.as_u64()?).ok()?,
        calls: u32::try_from(node.get("call_count")?.as_u64()?).ok()?,
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
