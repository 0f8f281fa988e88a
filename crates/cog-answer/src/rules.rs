use std::sync::Arc;

use cog_json::Limits;
use cog_schema::Contract;
use cog_spec::{Dialect, Manifest, Response, RuntimeMeta, Secret, Warning};

/// What one run's answer is held to, and what is known of the run before the model speaks.
#[derive(Debug, Clone)]
pub struct AnswerRules {
    /// The session, which the first chunk and an error name.
    pub session_id: String,
    /// The module's manifest.
    pub manifest: Arc<Manifest>,
    /// The module's contract.
    pub contract: Arc<Contract>,
    /// How content travels and what a violation does: the manifest's, unless the caller sets it otherwise. `mode`
    /// is not looked at.
    pub response: Response,
    /// The provider's name; `meta.model` is `PROVIDER/MODEL` once the reply says which model answers.
    pub provider: String,
    /// The dialect the model was asked in. In OpenAI's strict one a null may stand for a member left out.
    pub asked: Dialect,
    /// Any repair is a violation (ruling R26).
    pub strict: bool,
    /// Someone reads the chunks as they come. Otherwise only those are built that the envelope is made of: the last,
    /// and the meta of a failure. Values are then checked as they become complete only where `response.on_violation`
    /// is abort or retry (ruling R48, R49).
    pub watch: bool,
    /// What the runtime knows of the run already: the model it asks, the trace, the media.
    pub runtime: RuntimeMeta,
    /// Warnings of the run so far.
    pub warnings: Vec<Warning>,
    /// The keys of the providers that may be asked. No message of the runtime repeats them, though a model that knows
    /// one may: what it answers is not changed.
    pub keys: Vec<Secret>,
    /// How large an answer may be.
    pub limits: Limits,
    /// The last `seq` of the stream that this one resumes; none for a stream of its own (docs/spec/streaming.md).
    pub resume_from: Option<u64>,
    /// What an end that a resumed stream can mend says of how to go on; none where nothing can be resumed.
    pub recovery: Option<RecoveryOffer>,
}

/// What an end that a resumed stream can mend (E2010, E2011) offers: `error.recovery` (docs/spec/streaming.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecoveryOffer {
    /// How long to wait, in milliseconds.
    pub retry_after_ms: u64,
    /// How often to try.
    pub max_retries: u32,
}

impl AnswerRules {
    /// The rules of a module's manifest and contract.
    pub fn new(session_id: impl Into<String>, manifest: Arc<Manifest>, contract: Arc<Contract>) -> Self {
        Self {
            session_id: session_id.into(),
            response: manifest.response,
            manifest,
            contract,
            provider: String::new(),
            asked: Dialect::Prompt,
            strict: false,
            watch: true,
            runtime: RuntimeMeta::default(),
            warnings: Vec::new(),
            keys: Vec::new(),
            limits: Limits::model_output(),
            resume_from: None,
            recovery: None,
        }
    }

    /// Whether the module makes media that its answer has places for (SPEC 2.2, `modalities.output`).
    pub fn makes_media(&self) -> bool {
        self.manifest.modalities.output.iter().any(|kind| !kind.output_types().is_empty())
            && self.contract.has_media_outputs()
    }

    /// A text of the runtime, without the keys.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.keys.iter().fold(text.to_owned(), |text, key| key.redact(&text))
    }
}
