//! The request of a run, independent of the provider.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use cog_answer::Correction;
use cog_harmony::{Conversation, Message, Reasoning, Role, ToolChoice};
use cog_json::Value;
use cog_module::Module;
use cog_provider::{ImageRequest, ModelRequest, OutputSchema, Provider, ProviderError, RetryHook};
use cog_schema::{Enforcement, Loss};
use cog_spec::{Ask, Dialect, ErrorBody, Form, Generation, Modality, Warning, WarningCode};

use crate::{
    compiled::{Compiled, ProjectedContract},
    events::Listeners,
    form::{self, AskedModel, Choice},
    input::CheckedInput,
    prompt, request_size,
    tools::{ToolSet, VendorTools, fit_media},
};

/// The request of a run, from which each provider's request is built.
pub(crate) struct RequestSpec {
    pub(crate) module: Arc<Module>,
    pub(crate) compiled: Arc<Compiled>,
    /// The input of the run if its prompt may have examples, of which this input is none.
    pub(crate) example_input: Option<Value>,
    /// The parameters that the caller of this run chose.
    pub(crate) chosen: Generation,
    /// The parameters that the runtime and the manifest prefer.
    pub(crate) preferred: Generation,
    /// The request for a model that generates only images, if the module generates images.
    pub(crate) image: Option<Arc<ImageRequest>>,
    /// The texts that replace the calls and references of the prompt.
    pub(crate) texts: Arc<[String]>,
    /// The tools that the model may call.
    pub(crate) tools: Option<Arc<ToolSet>>,
    /// Whether the probabilities of the answer's tokens are requested in every form.
    pub(crate) wants_probabilities: bool,
    /// Whether the budgets have room for a second call that explains the answer.
    pub(crate) may_explain: bool,
    /// The listeners of the run.
    pub(crate) listeners: Listeners,
}

impl RequestSpec {
    /// Builds the request to a provider from `messages`. An empty `model` is the provider's default.
    pub(crate) fn request_for(
        &self,
        provider: &dyn Provider,
        model: &str,
        messages: Conversation,
        timeout: Duration,
    ) -> ModelRequest {
        let output = self.output(provider, model);
        ModelRequest {
            model: model.to_owned(),
            messages,
            merges_system: output.as_ref().is_some_and(|output| output.form.is_one_message),
            // In the other forms, the model states its confidence. Without a grammar, only a run that asks for them has them.
            probabilities: self.wants_probabilities
                || output.as_ref().is_some_and(|output| output.form.is_data() && output.grammar.is_some()),
            output,
            output_media: self.makes(provider, model),
            image: self.image.clone(),
            tools: self
                .tools
                .as_ref()
                .map(|set| set.request(&self.vendor_tools(provider, model), ToolChoice::Auto)),
            generation: self.chosen.or(&self.preferred),
            cache_key: self.cache_key(),
            stream_options: true,
            renames_token_limit: false,
            timeout: Some(timeout),
            on_retry: self.on_retry(provider),
            on_reply: self.listeners.reply_hook(),
        }
    }

    /// Returns what reports the attempts that the provider retries; none without listeners.
    fn on_retry(&self, provider: &dyn Provider) -> Option<RetryHook> {
        (!self.listeners.is_empty()).then(|| self.listeners.retry_hook(provider.info(), || true))
    }

    /// Builds the request to the first provider, with the warnings about parameters that were left out.
    ///
    /// # Errors
    /// The prompt is too long, also for the context window of the model, or neither this provider nor one of the fallback
    /// providers supports the request.
    pub(crate) fn first_request(
        &self,
        provider: &dyn Provider,
        model: &str,
        others: &VecDeque<Arc<dyn Provider>>,
        input: &CheckedInput,
        timeout: Duration,
    ) -> Result<(ModelRequest, Vec<Warning>), ErrorBody> {
        let output = self.output(provider, model);
        let messages = prompt::conversation(&self.module, output.as_deref(), input, &self.texts, Vec::new())?;
        let mut request = self.request_for(provider, model, messages, timeout);
        match request_size::window(provider, &request) {
            Err(error) if others.is_empty() => return Err(error),
            _ => {} // the driver falls back to a provider with a larger window
        }
        match self.fit(provider, &mut request) {
            Ok(omitted) => Ok((request, omitted)),
            // The driver falls back to the provider that supports the request.
            Err(error) if error.allows_fallback() && self.has_support(others, &request) => {
                Ok((request, Vec::new()))
            }
            Err(error) => Err(ErrorBody::from(&error)),
        }
    }

    /// Builds the request to a fallback provider from the one to the provider that failed.
    pub(crate) fn next_request(
        &self,
        provider: &dyn Provider,
        failed: &mut ModelRequest,
        timeout: Duration,
    ) -> ModelRequest {
        let mut messages = std::mem::take(&mut failed.messages);
        let output = self.output(provider, "");
        let new = instructions(output.as_deref());
        replace_instructions(&mut messages, instructions(failed.output.as_deref()), new);
        self.request_for(provider, "", messages, timeout)
    }

    /// Removes the parameters that are only preferred and that the provider does not support, with a warning for each.
    ///
    /// # Errors
    /// The provider does not support the request, for example a parameter that the caller chose.
    pub(crate) fn fit(
        &self,
        provider: &dyn Provider,
        request: &mut ModelRequest,
    ) -> Result<Vec<Warning>, ProviderError> {
        let mut warnings = Vec::new();
        if let Some(tools) = request.tools.as_deref().filter(|tools| tools.relaxed > 0) {
            let vendor = &provider.info().name;
            let message = format!(
                "`strict` was not sent for {} of {} tools, because {vendor} limits the strict tools of a request and their optional parameters",
                tools.relaxed,
                tools.definitions.len()
            );
            warnings.push(Warning::new(WarningCode::SettingOmitted, message));
        }
        if request.tools.is_some() {
            warnings.extend(fit_media(provider.info(), &request.model, &mut request.messages.0));
        }
        loop {
            let Err(error) = provider.check(request) else { return Ok(warnings) };
            let Some(option) = option_of(&error).filter(|option| self.is_only_preferred(option)) else {
                return Err(error);
            };
            if !request.generation.remove(option) {
                return Err(error);
            }
            let message = format!("`{option}` was not sent: {error}");
            warnings.push(Warning::new(WarningCode::SettingOmitted, message));
        }
    }

    /// Returns whether one of the fallback providers supports the request, with its own model.
    pub(crate) fn has_support(&self, others: &VecDeque<Arc<dyn Provider>>, request: &ModelRequest) -> bool {
        let timeout = request.timeout.unwrap_or_default();
        others.iter().any(|other| {
            let mut own = self.request_for(other.as_ref(), "", request.messages.clone(), timeout);
            self.fit(other.as_ref(), &mut own).is_ok()
        })
    }

    /// Returns the name of the requests of this module in the provider's cache, unless their system text depends on the
    /// input.
    fn cache_key(&self) -> Option<String> {
        let manifest = &self.module.manifest;
        let is_stable = prompt::has_stable_system(&self.module.prompt);
        is_stable.then(|| format!("{}@{}", manifest.name, manifest.version))
    }

    /// Returns whether the caller of this run did not choose a parameter.
    pub(crate) fn is_only_preferred(&self, option: &str) -> bool {
        self.chosen.names().all(|chosen| chosen != option)
    }

    /// Returns the schema of the answer in the dialect of a provider, and the instructions about it.
    pub(crate) fn output(&self, provider: &dyn Provider, model: &str) -> Option<Arc<OutputSchema>> {
        let output = &self.projected(provider, model)?.output;
        let Some(input) = self.example_input.as_ref().filter(|_| output.form.examples > 0) else {
            return Some(Arc::clone(output));
        };
        let max = form::max_examples(provider.info().context_window(model));
        let section = form::section(self.compiled.examples(&self.module), input, output.form, max);
        let instructions = format!("{}{section}", output.instructions).into();
        Some(Arc::new(OutputSchema { instructions, ..(**output).clone() }))
    }

    fn projected(&self, provider: &dyn Provider, model: &str) -> Option<&ProjectedContract> {
        let form = self.form_choice(provider, model).form;
        self.compiled.projected(&self.module, self.dialect(provider, model), form)
    }

    /// Returns how a model receives tools.
    pub(crate) fn vendor_tools(&self, provider: &dyn Provider, model: &str) -> VendorTools {
        let tools = provider.info().tool_settings(model);
        let dialect = if tools.supported { tools.dialect } else { provider.info().dialect };
        let answer = self.projected(provider, model).map(|projected| projected.members).unwrap_or_default();
        VendorTools { dialect, limits: tools.limits, plain_arguments: tools.plain_arguments, answer }
    }

    /// Returns the form in which a model is asked.
    pub(crate) fn form_choice(&self, provider: &dyn Provider, model: &str) -> Choice<'_> {
        let info = provider.info();
        let dialect = self.dialect(provider, model);
        let asked = AskedModel { provider: &info.name, model: info.model_or_default(model), dialect };
        let obstacles = self.compiled.obstacles();
        let choice = form::choose(self.ask(), &self.module, obstacles, asked);
        if self.may_explain { choice } else { choice.in_one_call(&self.module, obstacles) }
    }

    /// Returns what the caller, the settings or the manifest say about the form.
    pub(crate) fn ask(&self) -> Ask {
        self.chosen.ask.or(self.preferred.ask).unwrap_or_default()
    }

    /// Returns the media kinds that the module wants and the model generates.
    fn makes(&self, provider: &dyn Provider, model: &str) -> Vec<Modality> {
        let made = provider.info().output_media(model);
        let wanted = self.module.manifest.modalities.output.iter();
        wanted.copied().filter(|kind| made.contains(kind)).collect()
    }

    /// Returns the dialect of the answer's schema. Models accept no schema while they generate media, some none together with tools,
    /// and some none at all.
    fn dialect(&self, provider: &dyn Provider, model: &str) -> Dialect {
        let info = provider.info();
        let tools = provider.info().tool_settings(model);
        let fits_tools = self.tools.is_none() || !tools.supported || tools.with_schema;
        let has_schema = self.makes(provider, model).is_empty() && info.has_schema(model) && fits_tools;
        if has_schema { info.dialect } else { Dialect::Prompt }
    }

    /// Returns the constraints that the dialect of a provider cannot express, and those that its engine does not enforce.
    pub(crate) fn lost(&self, provider: &dyn Provider, model: &str) -> Vec<Loss> {
        let Some(projected) = self.projected(provider, model) else { return Vec::new() };
        let sent = projected.output.schema.as_ref().map(cog_json::Value::to_serde);
        let measured = provider.info().engine.and_then(Enforcement::by_engine);
        let ignored = measured.zip(sent).map(|(engine, sent)| engine.losses(&sent));
        projected.lost.iter().cloned().chain(ignored.into_iter().flatten()).collect()
    }
}

/// Returns the instructions about the answer, the end of the system message.
pub(crate) fn instructions(output: Option<&OutputSchema>) -> &str {
    output.map_or("", |output| &output.instructions)
}

/// Replaces the instructions at the end of the system message, as another provider has another dialect.
pub(crate) fn replace_instructions(messages: &mut Conversation, old: &str, new: &str) {
    let system = messages.0.iter_mut().find(|message| message.role == Role::System);
    if let Some(system) = system.filter(|_| old != new) {
        let text = system.text();
        let prompt = text.strip_suffix(old).unwrap_or(&text);
        *system = Message::system(format!("{prompt}{new}"));
    }
}

/// Returns the parameter that the provider does not support.
fn option_of(error: &ProviderError) -> Option<&'static str> {
    match error {
        ProviderError::Request(error) => error.option(),
        _ => None,
    }
}

/// Replaces the messages after the first `initial` by the model's answer and its violations, for the next attempt
/// (ruling R49). The reasoning that led to the answer is part of it.
pub(crate) fn correct(
    messages: &mut Conversation,
    initial: usize,
    correction: Correction,
    reasoning: Reasoning,
) {
    let text = Some(correction.answer).filter(|answer| !answer.trim().is_empty());
    let reasoning = Some(reasoning).filter(|reasoning| !reasoning.items.is_empty());
    let answer = text.map(|text| Message { reasoning, ..Message::assistant(text) });
    messages.0.truncate(initial);
    messages.0.extend(answer.into_iter().chain([Message::user(correction.feedback)]));
}

/// Returns the name of the requested model, or the provider's default.
pub(crate) fn model_of<'a>(request: &'a ModelRequest, provider: &'a dyn Provider) -> &'a str {
    provider.info().model_or_default(&request.model)
}

/// Returns the form of a request.
pub(crate) fn form_of(request: &ModelRequest) -> &'static Form {
    request.output.as_ref().map_or(Form::ENVELOPE, |output| output.form)
}

/// Returns the dialect of a request.
pub(crate) fn dialect_of(request: &ModelRequest, provider: &dyn Provider) -> Dialect {
    request.output.as_ref().map_or(provider.info().dialect, |output| output.dialect)
}
