//! The model of a run, for tools that ask it something themselves, as an MCP server does with sampling (docs/mcp-servers.md).

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use cog_harmony::Conversation;
use cog_provider::{ModelRequest, Provider, RetryHook};
use cog_spec::{Code, ErrorBody, FinishReason, Generation, ModelEvent, Usage};
use futures_util::StreamExt as _;

use crate::{Budget, budget::OpenCall, clock, provider, request_size};

/// The questions that one call of a tool may ask.
const MAX_QUESTIONS: usize = 10;
/// The bytes of a reply after which the rest is not read.
const MAX_REPLY: usize = 1 << 20;

/// The provider and the model of a run, with its budgets.
#[derive(Clone)]
pub(crate) struct RunModel {
    provider: Arc<dyn Provider>,
    /// The model and the options of the run, without messages.
    request: ModelRequest,
    budgets: Vec<Budget>,
    module: String,
}

impl RunModel {
    /// Returns the model of a run; none for a provider that calls none.
    pub(crate) fn new(
        provider: &Arc<dyn Provider>,
        request: &ModelRequest,
        budgets: &[Budget],
        module: &str,
    ) -> Option<Self> {
        if !provider::calls_model(provider.as_ref()) {
            return None;
        }
        let request = ModelRequest {
            model: request.model.clone(),
            generation: Generation { stop: Vec::new(), ask: None, ..request.generation.clone() },
            timeout: request.timeout,
            ..ModelRequest::new(Conversation::new([]))
        };
        Some(Self {
            provider: Arc::clone(provider),
            request,
            budgets: budgets.to_vec(),
            module: module.to_owned(),
        })
    }
}

/// What a call of a tool may ask the model of its run. The tokens count as tokens of the run.
pub struct CallModel {
    model: RunModel,
    max_tokens: Option<u64>,
    asked: Mutex<Asked>,
}

/// What a call has asked so far.
#[derive(Default)]
struct Asked {
    questions: usize,
    usage: Option<Usage>,
}

/// The reply of the model to a question of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// The model.
    pub model: String,
    /// Whether the reply ends because it reached its maximum of tokens.
    pub is_truncated: bool,
}

impl fmt::Debug for CallModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the model {}", self.model.request.model)
    }
}

impl CallModel {
    pub(crate) fn new(model: &RunModel, max_tokens: Option<u64>) -> Self {
        Self { model: model.clone(), max_tokens, asked: Mutex::default() }
    }

    /// Asks the model. `generation` has the tool's own limit of tokens, its temperature and its stop sequences.
    ///
    /// # Errors
    /// The call has asked too often, a budget is spent, the model does not support the messages, or it gives no answer.
    pub async fn ask(
        &self,
        messages: Conversation,
        generation: Generation,
    ) -> Result<ModelAnswer, ErrorBody> {
        self.begin()?;
        let RunModel { provider, request, budgets, module } = &self.model;
        let mut request = request.clone();
        request.messages = messages;
        let max_tokens = [request.generation.max_tokens, generation.max_tokens].into_iter().flatten().min();
        request.generation = generation.or(&request.generation);
        request.generation.max_tokens = max_tokens;
        provider.check(&request).map_err(|error| ErrorBody::from(&error))?;
        request_size::window(provider.as_ref(), &request)?;
        let name = provider.info().model_or_default(&request.model).to_owned();
        let input = request_size::input_tokens(&request, &name, budgets);
        let input_tokens = input.expected;
        let mut call = OpenCall::new(budgets, module, Arc::clone(provider), &name, input, max_tokens)?;
        let counter = call.counter();
        request.on_retry = Some(RetryHook::new(move |_| counter.admit_retry()));
        let mut events = match provider.call(&request).await {
            Ok(events) => events,
            Err(error) => {
                return Err(call.reject().unwrap_or_else(|| ErrorBody::from(&error)));
            }
        };
        let mut answer = ModelAnswer { text: String::new(), model: name.clone(), is_truncated: false };
        let mut usage = None;
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| ErrorBody::from(&error))?;
            call.observe(&event);
            match event {
                ModelEvent::Started { model: Some(model), .. } => answer.model = model,
                ModelEvent::Text(part) if answer.text.len() < MAX_REPLY => answer.text.push_str(&part),
                ModelEvent::Usage(counted) => usage = Some(counted),
                ModelEvent::Finished(reason) => answer.is_truncated = reason == FinishReason::Length,
                _ => {}
            }
        }
        let info = provider.info();
        let usage = usage.map(|usage: Usage| {
            let cost = info.reply_cost(&request.model, &answer.model, &usage, clock::now());
            Usage { cost, ..usage }
        });
        let counted = usage
            .clone()
            .unwrap_or_else(|| crate::budget::estimate(info, &name, input_tokens, answer.text.len() as u64));
        call.end(usage);
        self.add(&counted);
        Ok(answer)
    }

    /// Counts a question.
    fn begin(&self) -> Result<(), ErrorBody> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = asked.usage.as_ref().map_or(0, Usage::total);
        let message = if asked.questions >= MAX_QUESTIONS {
            format!("a call may ask the model {MAX_QUESTIONS} times")
        } else if self.max_tokens.is_some_and(|max| tokens >= max) {
            "`tools.max_tokens` is reached".to_owned()
        } else {
            asked.questions += 1;
            return Ok(());
        };
        Err(ErrorBody::new(Code::TokenLimit, message))
    }

    fn add(&self, usage: &Usage) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.usage = Some(asked.usage.take().map_or_else(|| usage.clone(), |sum| sum.plus(usage)));
    }

    /// Returns the tokens of the call's questions.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).usage.clone()
    }
}
