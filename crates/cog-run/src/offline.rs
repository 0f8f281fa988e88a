//! The offline provider: returns golden answers, or a sample of the schema (docs/spec/golden-tests.md).

use std::sync::Arc;

use cog_answer::aggregated_risk;
use cog_harmony::handoff::Handoff;
use cog_json::Value;
use cog_module::{Module, golden};
use cog_provider::{ModelFuture, ModelRequest, ModelStream, OFFLINE, Provider, ProviderError, ProviderInfo};
use cog_spec::{Code, ErrorBody, FinishReason, Modality, ModelEvent, Risk, Warning, WarningCode};
use futures_util::stream;

use crate::input::CheckedInput;

/// The maximum number of samples to find one with a handoff.
const MAX_SAMPLES: u64 = 16;

/// The number of bytes per event, so that an offline reply is streamed too.
const PART_BYTES: usize = 48;

/// Returns the provider that answers without a model, and the warning that every such answer has.
///
/// # Errors
/// E4001 when no golden answer matches the input and the schema has no sample.
pub(crate) fn provider(
    module: &Module,
    input: &CheckedInput,
) -> Result<(Arc<dyn Provider>, Warning), ErrorBody> {
    let offline = Offline::new(module, input).ok_or_else(|| {
        let message =
            "no provider is configured, no golden answer matches the input, and the schema has no sample";
        ErrorBody::new(Code::ProviderUnavailable, message)
            .suggest("Set a provider's key; `cog doctor` lists them.")
    })?;
    let warning = offline.warning();
    Ok((Arc::new(offline), warning))
}

/// A provider with a fixed answer.
struct Offline {
    /// Its model is `golden` or `sample`.
    info: ProviderInfo,
    text: String,
    warning: String,
}

impl Offline {
    /// Returns the golden answer for this input, otherwise a sample; none when the schema has no sample.
    fn new(module: &Module, input: &CheckedInput) -> Option<Self> {
        let cases = golden::discover(module).cases;
        let case = golden::find_case(&cases, input.original().node());
        match case.and_then(|case| Some((case, case.expected.answer()?))) {
            Some((case, answer)) => Some(Self {
                info: info("golden"),
                text: answer.to_string(),
                warning: format!("No model was called: this is the golden answer `{}`.", case.name),
            }),
            None => Self::sample(module, input.packet()),
        }
    }

    fn sample(module: &Module, packet: Option<&Handoff>) -> Option<Self> {
        let contract = &module.contract;
        let mut data = contract.sample(0)?;
        if contract.emits_handoff() {
            // It is optional in some schemas.
            let mut samples = (0..MAX_SAMPLES).filter_map(|seed| contract.sample(seed));
            let found = samples.find(|data| data.get("handoff").is_some()).unwrap_or(data);
            data = with_valid_handoff(&found, packet);
        }
        // The risk that the rule of the module gives the sample, so that the rule changes nothing.
        let risk = aggregated_risk(module.manifest.risk_rule, data.node()).unwrap_or(Risk::Medium).as_str();
        let explain = "A sample of the schema, not an answer.";
        Some(Self {
            info: info("sample"),
            text: format!(
                r#"{{"ok":true,"meta":{{"confidence":0.0,"risk":"{risk}","explain":"{explain}"}},"data":{data},"error":null}}"#
            ),
            warning: "No model was called: this is a sample of the schema, and its values mean nothing."
                .to_owned(),
        })
    }

    /// Returns W4001, which every offline answer contains.
    fn warning(&self) -> Warning {
        Warning::new(WarningCode::NoModelCalled, self.warning.clone())
    }

    fn events(&self) -> Vec<Result<ModelEvent, ProviderError>> {
        let started = ModelEvent::Started {
            model: Some(self.info.model.clone().into_owned()),
            id: None,
            fingerprint: None,
        };
        let texts = parts(&self.text).map(|part| ModelEvent::Text(part.to_owned()));
        let finished = ModelEvent::Finished(FinishReason::Stop);
        std::iter::once(started).chain(texts).chain([finished]).map(Ok).collect()
    }
}

/// Returns a sample whose handoff satisfies what no schema expresses: artifacts that do not repeat a name, and the
/// objective and the constraints of the packet that it follows.
fn with_valid_handoff(data: &Value, packet: Option<&Handoff>) -> Value {
    let mut data = data.to_serde();
    if let Some(handoff) = data.get_mut("handoff").and_then(serde_json::Value::as_object_mut) {
        handoff.insert("artifacts".to_owned(), serde_json::json!([]));
        if let Some(packet) = packet {
            handoff.remove("primary_objective");
            handoff.insert("constraints".to_owned(), packet.constraints().collect());
        }
    }
    Value::from(data)
}

/// Describes the offline provider, which accepts every modality.
fn info(model: &'static str) -> ProviderInfo {
    let mut info = ProviderInfo::new(OFFLINE, model);
    info.input = Modality::ALL;
    info
}

/// Splits a string into parts of about [`PART_BYTES`] bytes, at character boundaries.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, after) = rest.split_at_checked(rest.ceil_char_boundary(PART_BYTES)).unwrap_or((rest, ""));
        rest = after;
        Some(part)
    })
}

impl Provider for Offline {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        let reply: ModelStream = Box::pin(stream::iter(self.events()));
        Box::pin(std::future::ready(Ok(reply)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_end_at_character_boundaries() {
        let text = "ä".repeat(100);
        assert_eq!(parts(&text).collect::<String>(), text);
        assert!(parts(&text).count() > 3);
    }
}
