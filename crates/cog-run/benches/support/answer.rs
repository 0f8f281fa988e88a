//! The answer of the model in the benchmarks.

#![expect(clippy::unwrap_used, reason = "a benchmark stops when it cannot run")]

use cog_module::Module;

/// Returns an answer that matches the module's contract, with a rationale of about this many bytes.
pub(crate) fn answer(module: &Module, bytes: usize) -> String {
    let sentence = "Because the deadline is near. ";
    let mut data = module.contract.sample(0).unwrap().to_serde();
    data.as_object_mut()
        .unwrap()
        .insert("rationale".to_owned(), sentence.repeat(bytes / sentence.len()).into());
    let meta = serde_json::json!({ "confidence": 0.9, "risk": "low", "explain": "Done." });
    serde_json::json!({ "ok": true, "meta": meta, "data": data, "error": null }).to_string()
}
