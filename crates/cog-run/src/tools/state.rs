//! The state of a halted run: what it needs to continue in another process.

pub(super) mod text;

use std::sync::Arc;

use cog_harmony::{Conversation, Message, ToolCall};
use cog_json::{ToJson as _, Value, Writer};
use cog_module::{Module, Origin, Trust};
use cog_provider::ProviderInfo;
use cog_spec::{Code, ErrorBody, Usage};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Round, content::CONFIRMATION_REQUIRED};
use crate::{RunOptions, clock, media_files::StoredMedia, parts_state::CompositionState, session::random_id};

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
        let id = &self.id;
        let message = format!("`{}` needs a confirmation; it was not executed", call.name);
        ErrorBody::new(Code::PermissionDenied, message)
            .with_recoverable(true)
            .suggest(format!(
                "Check the arguments, then run `cog run --continue {id} --confirm YES`, or `--deny` instead."
            ))
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
