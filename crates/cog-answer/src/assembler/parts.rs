//! The answer of a composed module: what its parts report, and the answer that they give.

use std::time::Duration;

use cog_json::Value;
use cog_spec::{Chunk, Dialect, ErrorBody, PartReport, Risk, Usage, Warning};

use super::Assembler;
use crate::{error, finalize::Failure, reply::Reply};

/// What the parts of a composition report about themselves.
#[derive(Debug, Clone, Default)]
pub struct PartsSummary {
    /// The reports, in the order in which the parts started.
    pub reports: Vec<PartReport>,
    /// The tokens and the cost of all parts; none if none are known.
    pub usage: Option<Usage>,
    /// The greatest risk of the parts that are done.
    pub risk: Option<Risk>,
    /// The warnings of the parts.
    pub warnings: Vec<Warning>,
}

impl Assembler {
    /// Returns whether a caller reads the chunks as they arrive.
    pub fn is_streamed(&self) -> bool {
        self.rules.is_streamed
    }

    /// Adds what the parts report, and their data, which are the partial data of a failure that has none of its own.
    /// The parts ran before the module's own reply.
    pub fn add_parts(&mut self, parts: PartsSummary, data: Option<Value>) {
        self.parts_data = data.filter(|_| self.rules.manifest.failure.partial_allowed);
        if let Some(usage) = &parts.usage {
            self.add_usage(usage);
        }
        self.rules.runtime.parts = parts.reports;
        self.rules.parts_risk = parts.risk;
        self.warn(parts.warnings);
    }

    /// Reads the next reply as the answer that the parts give: no model is called for it. `provider` and `model` are
    /// its names in `meta.model`.
    pub fn answer_from_parts(&mut self, provider: &str, model: &str) {
        self.rules.provider = provider.to_owned();
        self.rules.runtime.model = Some(format!("{provider}/{model}"));
        self.model.clone_from(&self.rules.runtime.model);
        (self.rules.dialect, self.rules.is_from_parts) = (Dialect::Prompt, true);
        self.reply = Reply::new(&self.rules);
    }

    /// Ends the run because a part failed. `is_interrupted` is whether the stream can be resumed, because a part may
    /// succeed later.
    pub fn fail_parts(
        mut self,
        error: ErrorBody,
        is_interrupted: bool,
        now: Duration,
        out: &mut impl Extend<Chunk>,
    ) {
        let is_resumable = is_interrupted || error::can_be_resumed(&error);
        let usage = self.spent.take();
        self.emit_error(Failure::new(error).without(&self.rules.keys), usage, is_resumable, now);
        out.extend(self.sequencer.drain());
    }
}
