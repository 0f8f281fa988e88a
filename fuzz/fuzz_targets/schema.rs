//! Schemas: compiled or refused, projected to each dialect, and their samples fit them.
#![no_main]

use cog_schema::{Contract, Rules};
use cog_spec::{Dialect, Format, Manifest, Tier};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

const DIALECTS: [Dialect; 4] = [Dialect::OpenAiStrict, Dialect::Anthropic, Dialect::Gemini, Dialect::LlamaCpp];

fuzz_target!(|data: &[u8]| {
    let Ok(schema) = serde_json::from_slice::<serde_json::Value>(data) else { return };
    let tiers = [Tier::Exec, Tier::Decision, Tier::Exploration];
    let manifest = Manifest::with_defaults("m", Format::V25, Some(tiers[data.len() % 3]));
    let rules = Rules::from(&manifest);
    for document in [json!({ "input": schema.clone(), "data": schema.clone() }), schema] {
        let Ok(contract) = Contract::compile(&document, &rules) else { continue };
        for dialect in DIALECTS {
            contract.project(dialect);
        }
        if let Some(sample) = contract.sample_input(data.len() as u64) {
            let violations = contract.check_input(sample.node());
            assert!(violations.is_empty(), "{sample} {violations:?}");
        }
        contract.media_fields();
    }
});
