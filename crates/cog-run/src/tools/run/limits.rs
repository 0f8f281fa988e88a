//! The limits of a run's tool calls.

use std::sync::Arc;

use cog_harmony::{Message, Part, ToolChoice};
use cog_json::Value;
use cog_provider::{Provider, ToolRequest};
use cog_spec::{Code, Dialect, ErrorBody, Usage, Warning, WarningCode};

use super::{Progressed, Round, ToolRun};
use crate::{clock, preflight};

impl ToolRun {
    /// Checks that the price of a model is known if the cost of the run is limited.
    ///
    /// # Errors
    /// E4001 if it is unknown.
    pub(crate) fn check_price(&self, provider: &dyn Provider, model: &str) -> Result<(), ErrorBody> {
        let info = provider.info();
        if self.limits.max_cost.is_none() || !preflight::calls_model(provider) {
            return Ok(());
        }
        let model = info.model_or_default(model);
        let one = Usage { input_tokens: 1, ..Usage::default() };
        if info.cost(model, &one, clock::now()).is_some() {
            return Ok(());
        }
        let message = format!(
            "`tools.max_cost` limits the cost of the run, but the price of {}/{model} is unknown",
            info.name
        );
        Err(ErrorBody::new(Code::ProviderUnavailable, message).with_recoverable(false).suggest(
            "Choose a model with a known price, or set `tools.max_tokens` in place of `tools.max_cost`.",
        ))
    }

    /// Counts a round that the model requests.
    ///
    /// # Errors
    /// A limit of the run is reached: E2001 for rounds and calls, E2003 for tokens and cost.
    pub(crate) fn begin(&mut self, round: &Round, usage: Option<&Usage>) -> Result<(), ErrorBody> {
        let rounds = self.progressed.rounds + 1;
        let calls = round.calls.len() as u64;
        let calls = u64::from(self.progressed.calls) + calls;
        let limits = &self.limits;
        let counted = [
            (u64::from(rounds), u64::from(limits.max_rounds), "max_rounds", "rounds of tool calls"),
            (calls, u64::from(limits.max_calls), "max_calls", "tool calls"),
        ];
        if let Some((.., name, what)) = counted.into_iter().find(|(used, max, ..)| used > max) {
            return Err(self.limit_error(Code::LowConfidence, name, what));
        }
        self.check_spent(usage)?;
        self.progressed.rounds = rounds;
        self.progressed.calls = u32::try_from(calls).unwrap_or(u32::MAX);
        Ok(())
    }

    /// Checks the tokens and the cost so far. An unknown number never counts as zero.
    fn check_spent(&self, usage: Option<&Usage>) -> Result<(), ErrorBody> {
        let tokens = usage.map(Usage::total);
        if self.limits.max_tokens.is_some_and(|max| tokens.is_none_or(|tokens| tokens > max)) {
            return Err(self.spent_error("max_tokens", "tokens", tokens.is_none()));
        }
        let cost = usage.and_then(|usage| usage.cost).map(|cost| cost.amount.as_f64());
        if self.limits.max_cost.is_some_and(|max| cost.is_none_or(|cost| cost > max)) {
            return Err(self.spent_error("max_cost", "cost", cost.is_none()));
        }
        Ok(())
    }

    fn spent_error(&self, name: &str, what: &str, is_unknown: bool) -> ErrorBody {
        if !is_unknown {
            return self.limit_error(Code::TokenLimit, name, what);
        }
        let message = format!(
            "`tools.{name}` limits the {what} of the run, but the {what} so far cannot be determined"
        );
        let suggestion = format!(
            "Choose a model that reports its tokens and has a known price, or remove `tools.{name}`."
        );
        self.error(Code::TokenLimit, name, message, suggestion)
    }

    fn limit_error(&self, code: Code, name: &str, what: &str) -> ErrorBody {
        let Progressed { rounds, calls, .. } = &self.progressed;
        let message = format!(
            "the run reached its limit of {what} after {rounds} rounds with {calls} tool calls, before the model answered"
        );
        let suggestion =
            format!("Raise `tools.{name}`, or change the prompt so that fewer calls are needed.");
        self.error(code, name, message, suggestion)
    }

    fn error(&self, code: Code, name: &str, message: String, suggestion: String) -> ErrorBody {
        let Progressed { rounds, calls, notes, .. } = &self.progressed;
        let details = serde_json::json!({
            "reason": "tool_limit", "limit": name, "rounds": rounds, "calls": calls, "tools": notes,
        });
        ErrorBody::new(code, message)
            .with_recoverable(true)
            .suggest(suggestion)
            .with_details(Value::from(details))
    }

    /// Returns the tools of the next request. After the last round the model must answer with what it knows.
    pub(crate) fn next_request(&self, dialect: Dialect) -> Arc<ToolRequest> {
        let Progressed { rounds, calls, .. } = self.progressed;
        let is_last = rounds >= self.limits.max_rounds || calls >= self.limits.max_calls;
        self.set.request(dialect, if is_last { ToolChoice::None } else { ToolChoice::Auto })
    }

    /// Returns the warning that media in the results of tools are sent in another place; once in a run.
    pub(crate) fn moved_media(
        &mut self,
        provider: &dyn Provider,
        model: &str,
        results: &[Message],
    ) -> Option<Warning> {
        let info = provider.info();
        let is_media = |part: &Part| part.as_text().is_none();
        let with_media = results.iter().find(|result| result.content.iter().any(is_media))?;
        if self.has_warned || !info.moves_result_media(model) {
            return None;
        }
        self.has_warned = true;
        let tool = with_media.name.as_deref().unwrap_or_default();
        let model = info.model_or_default(model);
        let message = format!(
            "{}/{model} receives only text in the results of tools: the media of `{tool}` follow in a message of the user",
            info.name
        );
        Some(Warning::new(WarningCode::ResultMediaMoved, message))
    }
}
