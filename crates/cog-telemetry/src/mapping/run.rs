//! The span of a run.

use cog_run::{RunOutcome, spans::RunWork};

use crate::{attributes::Attributes, content::Recorded, names};

/// The error of a run that its caller stopped.
const CANCELLED: &str = "cancelled";

/// Returns the code of the error of a run.
pub(crate) fn error_type<'a>(run: &RunWork<'a>) -> Option<&'a str> {
    match run.end.outcome {
        RunOutcome::Answered => None,
        RunOutcome::Failed(code) => Some(code.as_str()),
        _ => Some(CANCELLED),
    }
}

/// Writes the attributes of a run. Its tokens have names of our own: programs that read traces add up those of all spans with the
/// names of the conventions, which are those of the calls.
pub(super) fn attributes(run: &RunWork<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    out.text(names::OPERATION, names::INVOKE_WORKFLOW);
    out.text(names::WORKFLOW, &run.manifest.name);
    out.text(names::MODULE_VERSION, &run.manifest.version);
    out.optional(names::MODULE_TIER, run.manifest.tier.map(|tier| tier.as_str()));
    if !run.session_id.is_empty() {
        out.text(names::CONVERSATION, run.session_id);
    }
    out.flag(names::OK, run.end.outcome == RunOutcome::Answered);
    out.integer(names::ATTEMPTS, i64::from(run.end.attempts));
    if run.end.repairs > 0 {
        out.count(names::REPAIRS, u64::try_from(run.end.repairs).ok());
    }
    if !run.end.fallbacks.is_empty() {
        out.texts(names::FALLBACKS, run.end.fallbacks.iter().map(|fallback| fallback.provider.as_str()));
    }
    if let Some(usage) = run.end.usage {
        out.count(names::RUN_INPUT_TOKENS, Some(usage.input_tokens));
        out.count(names::RUN_OUTPUT_TOKENS, Some(usage.output_tokens));
        if let Some(cost) = &usage.cost {
            out.number(names::RUN_COST, cost.amount.as_f64());
            out.text(names::RUN_CURRENCY, cost.currency.as_str());
        }
    }
    if let Some(meta) = run.meta {
        out.text(names::RISK, meta.risk.level().as_str());
        out.optional(names::MODEL, meta.runtime.model.as_deref());
        if meta.runtime.cache.is_some() {
            out.flag(names::CACHED, true);
        }
    }
    recorded.run(run, out);
}

/// The confidence of an answer, as an evaluation of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Evaluation<'a> {
    pub(crate) value: f64,
    /// Whether the tier of the module accepts the answer; none if it has no threshold.
    pub(crate) label: Option<&'static str>,
    /// What the model says about the answer, if content is recorded.
    pub(crate) explanation: Option<&'a str>,
}

/// Returns the confidence of an answer.
pub(crate) fn evaluation<'a>(run: &RunWork<'a>, recorded: &Recorded<'_>) -> Option<Evaluation<'a>> {
    let meta = run.meta?;
    let value = meta.confidence?;
    let threshold = run.manifest.tier.and_then(|tier| tier.min_confidence());
    let label = threshold.map(|threshold| if value < threshold { "low" } else { "sufficient" });
    let explanation = Some(meta.explain.as_str()).filter(|_| recorded.is_on());
    Some(Evaluation { value, label, explanation })
}
