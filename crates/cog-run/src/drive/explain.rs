//! The second call of a form without a rationale: it sees the answer and explains it (ruling R91).

use std::{pin::pin, sync::Arc};

use cog_answer::PendingReply;
use cog_harmony::{Message, Role};
use cog_json::{Node, Value};
use cog_provider::{ModelRequest, ModelStream, OutputSchema};
use cog_spec::{Dialect, ErrorBody, FinishReason, Form, ModelEvent, Usage};
use serde_json::json;

use super::{
    Driver,
    reply::{Arrived, Called, Reply, is_lost},
};
use crate::{clock, compiled::grammar, provider, request};

/// What the model is asked once its answer is known.
const QUESTION: &str = "Explain in one or two sentences why this is the answer.";
/// The bytes of a reply after which the rest is not read.
const MAX_REPLY: usize = 16 * 1024;
/// The maximum length of a rationale in characters. A small model would otherwise write without an end.
const MAX_RATIONALE: usize = 600;

/// The reply to the question.
#[derive(Default)]
struct Explanation {
    model: Option<String>,
    text: String,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    /// Why the reply broke off.
    lost: Option<ErrorBody>,
}

impl Explanation {
    fn observe(&mut self, event: ModelEvent) {
        match event {
            ModelEvent::Started { model, .. } => self.model = model,
            ModelEvent::Text(part) if self.text.len() < MAX_REPLY => self.text.push_str(&part),
            ModelEvent::Usage(counted) => self.usage = Some(counted),
            ModelEvent::Finished(reason) => self.finish = Some(reason),
            _ => {}
        }
    }

    /// Returns the rationale: the field of the reply, or its text. None of an incomplete reply.
    fn rationale(&self) -> Option<String> {
        if self.finish != Some(FinishReason::Stop) {
            return None;
        }
        let field = Value::parse(&self.text).ok();
        let field = field.as_ref().and_then(|value| value.get("rationale")).and_then(Node::as_str);
        // Text that is half an object is no rationale; a field may begin like one.
        let text =
            field.or_else(|| Some(self.text.as_str()).filter(|text| !text.trim().starts_with('{')))?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

impl Driver {
    /// Asks the model for the rationale that its answer lacks, and adds it. An answer for which none arrives fails its check.
    ///
    /// # Errors
    /// The run was cancelled, or its time has passed.
    pub(super) async fn explain(&mut self, pending: &mut PendingReply) -> Result<(), ErrorBody> {
        let Some(answer) = pending.unexplained() else { return Ok(()) };
        if !provider::calls_model(self.run.provider.as_ref()) {
            return Ok(());
        }
        let request = self.request_for_rationale(&answer);
        let first = std::mem::replace(&mut self.run.request, request);
        let asked = self.ask_why(pending).await;
        self.run.request = first;
        if let Some(rationale) = asked? {
            pending.put_rationale(rationale);
        }
        Ok(())
    }

    fn request_for_rationale(&self, answer: &Value) -> ModelRequest {
        let mut request = self.run.request.clone();
        request.messages.0.extend([Message::assistant(answer.to_string()), Message::user(QUESTION)]);
        let dialect = request::dialect_of(&request, self.run.provider.as_ref());
        let has_schema = !matches!(dialect, Dialect::Prompt | Dialect::JsonObject);
        request.output = has_schema.then(|| {
            let schema = json!({
                "type": "object",
                "properties": { "rationale": { "type": "string", "minLength": 1, "maxLength": MAX_RATIONALE } },
                "required": ["rationale"],
                "additionalProperties": false,
            });
            Arc::new(OutputSchema {
                name: "rationale".to_owned(),
                dialect,
                form: Form::ENVELOPE,
                grammar: grammar(dialect, Some(&schema)),
                schema: Some(schema.into()),
                instructions: "".into(),
            })
        });
        request.tools = None;
        request.probabilities = false;
        request.timeout = Some(self.remaining());
        request
    }

    /// Calls the model. None if a budget or the provider refuses the call, or if the reply has no rationale.
    async fn ask_why(&mut self, pending: &mut PendingReply) -> Result<Option<String>, ErrorBody> {
        if let Err(error) = self.admit() {
            tracing::warn!(code = %error.code, "the answer is not explained: a budget is spent");
            return Ok(None);
        }
        if let Some(cache) = &mut self.run.cache {
            cache.add_reply();
        }
        self.record(&[Message::user(QUESTION)]);
        let explanation = match self.open().await {
            Called::Reply(events) => self.read_explanation(events).await,
            Called::Failed(error) if is_lost(&error) => {
                self.call.iter_mut().for_each(|call| call.fail(&error));
                Explanation { lost: Some(self.error_of(&error)), ..Explanation::default() }
            }
            Called::Failed(error) => {
                tracing::warn!(error = error.outline(), "the answer is not explained");
                self.call.take().iter_mut().for_each(|call| call.fail(&error));
                self.refund();
                return Ok(None);
            }
            Called::Lost(error) => Explanation { lost: Some(error), ..Explanation::default() },
        };
        self.settle(&explanation, pending);
        match explanation.lost {
            // The run itself goes on: what it lacks is a rationale.
            Some(error) if self.run.cancellation.reason().is_none() && !self.remaining().is_zero() => {
                tracing::warn!(code = %error.code, "the explanation of the answer broke off");
                Ok(None)
            }
            Some(error) => Err(error),
            None => Ok(explanation.rationale()),
        }
    }

    async fn read_explanation(&mut self, events: ModelStream) -> Explanation {
        let cancellation = self.run.cancellation.clone();
        let mut cancelled = pin!(cancellation.wait());
        let mut reply = Reply::new(events, self.deadline());
        let mut explanation = Explanation::default();
        loop {
            match self.next(&mut reply, None, cancelled.as_mut()).await {
                Arrived::Event(event) => explanation.observe(event),
                Arrived::Due => {}
                Arrived::Complete => return explanation,
                Arrived::Lost(error) => return Explanation { lost: Some(error), ..explanation },
            }
        }
    }

    /// Adds the tokens of the call to the run and its budgets, and reports and records its end. The tokens of a reply that broke
    /// off are estimated.
    fn settle(&mut self, explanation: &Explanation, pending: &mut PendingReply) {
        let counted = explanation.usage.clone().filter(|_| explanation.finish.is_some());
        let counted = counted.map(|usage| self.priced(usage, explanation.model.as_deref()));
        match (&counted, &explanation.finish) {
            (Some(usage), _) => pending.add_usage(usage),
            // The provider counts nothing.
            (None, Some(_)) => pending.add_lost_call(&Usage::default()),
            (None, None) => {
                let known = explanation.usage.clone().unwrap_or_default();
                let estimate = self.estimate();
                pending.add_lost_call(&Usage {
                    input_tokens: known.input_tokens.max(estimate.input_tokens),
                    output_tokens: known.output_tokens.max(estimate.output_tokens),
                    ..estimate
                });
            }
        }
        if let Some(mut call) = self.call.take() {
            call.set_usage(counted.clone());
        }
        if let Some(call) = self.counted.take() {
            call.end(counted.clone());
        }
        if let Some(recorder) = self.run.recorder.as_mut().filter(|recorder| recorder.has_reply()) {
            let model = explanation.model.as_deref().or(pending.model());
            recorder.end_reply(model, counted.as_ref(), Message::new(Role::Assistant, Vec::new()));
        }
    }

    fn priced(&self, usage: Usage, model: Option<&str>) -> Usage {
        let info = self.run.provider.info();
        let model = model.unwrap_or_else(|| request::model_of(&self.run.request, self.run.provider.as_ref()));
        let cost = info.reply_cost(&self.run.request.model, model, &usage, clock::now());
        Usage { cost, ..usage }
    }
}
