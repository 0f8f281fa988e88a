//! What is asked, whoever is asked.

use std::{sync::Arc, time::Duration};

use cog_answer::Correction;
use cog_harmony::{Conversation, Message};
use cog_module::Module;
use cog_provider::{ModelRequest, Provider};
use cog_schema::Loss;
use cog_spec::{Dialect, Generation, Modality};

use crate::compiled::Compiled;

/// What is asked, whoever is asked: each provider gets it as a request of its own.
pub(crate) struct RequestSpec {
    pub(crate) module: Arc<Module>,
    pub(crate) compiled: Arc<Compiled>,
    pub(crate) generation: Generation,
}

impl RequestSpec {
    /// The request to a provider for the answer to `messages`; `model` is empty for the provider's own.
    pub(crate) fn to(
        &self,
        provider: &dyn Provider,
        model: &str,
        messages: Conversation,
        timeout: Duration,
    ) -> ModelRequest {
        let told = self.compiled.told(&self.module, self.dialect(provider, model));
        ModelRequest {
            model: model.to_owned(),
            messages,
            output: told.map(|told| Arc::clone(&told.output)),
            makes: self.makes(provider, model),
            generation: self.generation.clone(),
            timeout: Some(timeout),
        }
    }

    /// The kinds of media that the module wants and the model makes.
    fn makes(&self, provider: &dyn Provider, model: &str) -> Vec<Modality> {
        let made = provider.makes(model);
        let wanted = self.module.manifest.modalities.output.iter();
        wanted.copied().filter(|kind| made.contains(kind)).collect()
    }

    /// How a model is told the schema of its answer. Those that make media take none beside that.
    fn dialect(&self, provider: &dyn Provider, model: &str) -> Dialect {
        if self.makes(provider, model).is_empty() { provider.dialect() } else { Dialect::Prompt }
    }

    /// What a dialect cannot say of the contract.
    pub(crate) fn lost(&self, dialect: Dialect) -> Vec<Loss> {
        self.compiled.told(&self.module, dialect).map(|told| told.lost.clone()).unwrap_or_default()
    }
}

/// MediaSink the question one that asks again: after its first `own` messages stand the model's answer, and what is wrong
/// with that (ruling R49).
pub(crate) fn correct(question: &mut Conversation, own: usize, correction: Correction) {
    let said = Some(correction.answer).filter(|said| !said.trim().is_empty()).map(Message::assistant);
    question.0.truncate(own);
    question.0.extend(said.into_iter().chain([Message::user(correction.feedback)]));
}

/// The model that a request asks, by name; the provider's own where it names none.
pub(crate) fn model_of<'a>(request: &'a ModelRequest, provider: &'a dyn Provider) -> &'a str {
    if request.model.is_empty() { provider.model() } else { &request.model }
}

/// The dialect that a request is in.
pub(crate) fn dialect_of(request: &ModelRequest, provider: &dyn Provider) -> Dialect {
    request.output.as_ref().map_or(provider.dialect(), |output| output.dialect)
}
