//! The second call of a form without a rationale: it sees the answer and explains it (ruling R91).

use std::{pin::pin, sync::Arc};

use cog_answer::PendingReply;
use cog_harmony::Message;
use cog_json::{Node, Value};
use cog_provider::{ModelRequest, OutputSchema};
use cog_spec::{Dialect, ErrorBody, FinishReason, Form, ModelEvent, Usage};
use futures_util::StreamExt as _;
use serde_json::json;

use super::Driver;
use crate::{clock, preflight, request};

/// What the model is asked once its answer is known.
const QUESTION: &str = "Explain in one or two sentences why this is the answer.";
/// The bytes of a reply after which the rest is not read.
const MAX_REPLY: usize = 16 * 1024;
/// The maximum length of a rationale in characters. A small model would otherwise write without an end.
const MAX_RATIONALE: usize = 600;

impl Driver {
    /// Asks the model for the rationale that its answer lacks, and adds it. An answer for which none arrives fails its check.
    ///
    /// # Errors
    /// The run was cancelled, or its time has passed.
    pub(super) async fn explain(&mut self, pending: &mut PendingReply) -> Result<(), ErrorBody> {
        let Some(answer) = pending.unexplained() else { return Ok(()) };
        if !preflight::calls_model(self.run.provider.as_ref()) {
            return Ok(());
        }
        // A stored reply would be read as the answer, and nothing would explain it.
        self.run.cache = None;
        let request = self.request_for_rationale(&answer);
        let first = std::mem::replace(&mut self.run.request, request);
        let asked = self.ask_why().await;
        self.run.request = first;
        let Some((text, usage)) = asked? else { return Ok(()) };
        pending.add_usage(&usage);
        if let Some(rationale) = rationale(&text) {
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
                schema: Some(schema.into()),
                instructions: "".into(),
            })
        });
        request.tools = None;
        request.timeout = Some(self.remaining());
        request
    }

    /// Calls the model. None if a budget or the provider refuses the call.
    async fn ask_why(&mut self) -> Result<Option<(String, Usage)>, ErrorBody> {
        if let Err(error) = self.admit() {
            tracing::warn!(code = %error.code, "the answer is not explained: a budget is spent");
            return Ok(None);
        }
        self.open_call();
        let provider = Arc::clone(&self.run.provider);
        let sent = self.run.request.clone();
        let called = self.within_deadline(async { Ok(provider.call(&sent).await) }).await;
        let mut events = match called {
            Ok(Ok(events)) => pin!(events),
            Ok(Err(error)) => {
                tracing::warn!(error = error.outline(), "the answer is not explained");
                self.call.take().iter_mut().for_each(|call| call.fail(&error));
                self.refund();
                return Ok(None);
            }
            Err(error) => {
                self.end_explanation(None);
                return Err(error);
            }
        };
        let (mut text, mut usage, mut is_complete) = (String::new(), None, false);
        loop {
            let event = self.within_deadline(async { Ok(events.next().await) }).await;
            match event {
                Ok(Some(Ok(event))) => {
                    self.observe_explanation(&event);
                    match event {
                        ModelEvent::Text(part) if text.len() < MAX_REPLY => text.push_str(&part),
                        ModelEvent::Usage(counted) => usage = Some(counted),
                        ModelEvent::Finished(reason) => is_complete = reason == FinishReason::Stop,
                        _ => {}
                    }
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => {
                    tracing::warn!(error = error.outline(), "the explanation of the answer broke off");
                    break;
                }
                Err(error) => {
                    self.end_explanation(usage);
                    return Err(error);
                }
            }
        }
        let usage = usage.map(|usage| self.priced(usage));
        self.end_explanation(usage.clone());
        let counted = usage.unwrap_or(Usage { uncounted_calls: Some(1), ..Usage::default() });
        let text = if is_complete { text } else { String::new() };
        Ok(Some((text, counted)))
    }

    fn observe_explanation(&mut self, event: &ModelEvent) {
        self.call.iter_mut().for_each(|call| call.observe(event));
        self.counted.iter_mut().for_each(|call| call.observe(event));
    }

    /// Adds the tokens of the call to the budgets, and reports its end.
    fn end_explanation(&mut self, usage: Option<Usage>) {
        if let Some(mut call) = self.call.take() {
            call.set_usage(usage.clone());
        }
        if let Some(call) = self.counted.take() {
            call.end(usage);
        }
    }

    fn priced(&self, usage: Usage) -> Usage {
        let info = self.run.provider.info();
        let model = request::model_of(&self.run.request, self.run.provider.as_ref());
        let cost = info.reply_cost(&self.run.request.model, model, &usage, clock::now());
        Usage { cost, ..usage }
    }
}

/// Returns the rationale of a reply: its field, or its text.
fn rationale(text: &str) -> Option<String> {
    let field = Value::parse(text).ok();
    let field = field.as_ref().and_then(|value| value.get("rationale")).and_then(Node::as_str);
    let text = field.unwrap_or(text).trim();
    (!text.is_empty() && !text.starts_with('{')).then(|| text.to_owned())
}
