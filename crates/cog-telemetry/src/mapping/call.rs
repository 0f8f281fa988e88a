//! The span of a call to a model.

use cog_run::{CallOutcome, provider::Modality, spans::CallWork};

use crate::{
    attributes::Attributes,
    content::{Recorded, finish_reason},
    names,
};

/// The error of a call that its run stopped.
const CANCELLED: &str = "cancelled";

/// Returns the code of the error of a call.
pub(crate) fn error_type<'a>(call: &CallWork<'a>) -> Option<&'a str> {
    match call.outcome {
        CallOutcome::Answered => None,
        CallOutcome::Failed(code) | CallOutcome::Retried(code) => Some(code.as_str()),
        _ => Some(CANCELLED),
    }
}

/// Returns the operation of a call.
pub(crate) fn operation(call: &CallWork<'_>) -> &'static str {
    if call.output_media.is_empty() { names::CHAT } else { "generate_content" }
}

/// Writes the attributes of a call.
pub(super) fn attributes(call: &CallWork<'_>, recorded: &Recorded<'_>, out: &mut impl Attributes) {
    out.text(names::OPERATION, operation(call));
    out.text(names::PROVIDER, names::provider(call.provider));
    out.text(names::REQUEST_MODEL, call.model);
    out.text(names::OUTPUT_TYPE, output_type(call));
    if let Some(temperature) = call.temperature {
        out.number(names::REQUEST_TEMPERATURE, temperature);
    }
    out.count(names::REQUEST_MAX_TOKENS, call.max_tokens);
    if let Some(seed) = call.seed {
        out.integer(names::REQUEST_SEED, seed);
    }
    out.optional(names::RESPONSE_MODEL, call.response_model);
    out.optional(names::RESPONSE_ID, call.response_id);
    if let Some(finish) = call.finish {
        out.texts(names::FINISH_REASONS, std::iter::once(finish_reason(finish)));
    }
    if let Some(time) = call.first_chunk {
        out.number(names::TIME_TO_FIRST_CHUNK, time.as_secs_f64());
    }
    usage(call, out);
    recorded.call(call, out);
}

fn usage(call: &CallWork<'_>, out: &mut impl Attributes) {
    let Some(usage) = call.usage else { return };
    out.count(names::INPUT_TOKENS, Some(usage.input_tokens));
    out.count(names::OUTPUT_TOKENS, Some(usage.output_tokens));
    out.count(names::CACHE_READ_TOKENS, usage.cached_input_tokens);
    out.count(names::CACHE_CREATION_TOKENS, usage.cache_write_input_tokens);
    out.count(names::REASONING_TOKENS, usage.reasoning_tokens);
    if let Some(cost) = &usage.cost {
        out.number(names::COST_AMOUNT, cost.amount.as_f64());
        out.text(names::COST_CURRENCY, cost.currency.as_str());
        // Calculated from list prices, not reported by the provider.
        out.text(names::COST_SOURCE, "local");
    }
}

fn output_type(call: &CallWork<'_>) -> &'static str {
    match call.output_media.first() {
        Some(Modality::Image) => "image",
        Some(Modality::Audio) => "speech",
        _ => "json",
    }
}
