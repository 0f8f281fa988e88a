use std::sync::Arc;

use cog_provider::Provider;
use cog_spec::{ErrorBody, ModelEvent, Usage};

use super::Budget;
use crate::clock;

/// The bytes of text that count as one token in an estimate.
const TOKEN_BYTES: u64 = 4;

/// A call that the budgets of a run have admitted. One that is dropped before its usage is known, because its run was
/// cancelled, counts with an estimate: otherwise a client could cancel each run before its end and pay for none.
pub(crate) struct OpenCall {
    budgets: Vec<Budget>,
    module: String,
    provider: Arc<dyn Provider>,
    model: String,
    /// An estimate of the tokens of the request.
    input_tokens: u64,
    /// The bytes of the reply so far.
    output_bytes: u64,
    is_open: bool,
}

impl OpenCall {
    /// Counts a call in each budget, or in none of them.
    ///
    /// # Errors
    /// E4002 if one of them is spent.
    pub(crate) fn new(
        budgets: &[Budget],
        module: &str,
        (provider, model): (Arc<dyn Provider>, &str),
        input_tokens: u64,
    ) -> Result<Self, ErrorBody> {
        for (index, budget) in budgets.iter().enumerate() {
            if let Err(error) = budget.admit(module) {
                budgets.iter().take(index).for_each(|earlier| earlier.withdraw(module));
                return Err(error);
            }
        }
        let (module, model) = (module.to_owned(), model.to_owned());
        let budgets = budgets.to_vec();
        Ok(Self { budgets, module, provider, model, input_tokens, output_bytes: 0, is_open: true })
    }

    /// Observes an event of the reply.
    pub(crate) fn observe(&mut self, event: &ModelEvent) {
        let bytes = match event {
            ModelEvent::Text(text) | ModelEvent::Reasoning(text) => text.len(),
            ModelEvent::ToolCall(part) => part.arguments.len(),
            _ => 0,
        };
        self.output_bytes = self.output_bytes.saturating_add(bytes as u64);
    }

    /// Ends the call with its usage, or with an estimate if that is unknown.
    pub(crate) fn end(mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.is_open = false;
            self.budgets.iter().for_each(|budget| budget.add(&self.module, &usage, false));
        }
    }

    /// Ends a call that the provider rejected: it is counted, without tokens.
    pub(crate) fn reject(mut self) {
        self.is_open = false;
    }

    fn estimate(&self) -> Usage {
        let output_tokens = self.output_bytes.div_ceil(TOKEN_BYTES);
        let usage = Usage { input_tokens: self.input_tokens, output_tokens, ..Usage::default() };
        let cost = self.provider.info().cost(&self.model, &usage, clock::now());
        Usage { cost, ..usage }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if self.is_open {
            let usage = self.estimate();
            self.budgets.iter().for_each(|budget| budget.add(&self.module, &usage, true));
        }
    }
}
