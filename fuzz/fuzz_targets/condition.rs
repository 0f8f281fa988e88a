//! Conditions: parsed, or rejected at a range of the text; a negation has the other value, or the same error.
#![no_main]

use cog_flow::Condition;
use cog_json::Value;
use cog_rules::Document;
use libfuzzer_sys::fuzz_target;

const DOCUMENT: &str = r#"{"ok": true, "meta": {"confidence": 0.8, "risk": "low"},
    "data": {"a": [{"b": 1}, {"b": "x"}, null], "length": 2, "s": "\u00e9t\u00e9", "": -0.0, "n": null, "d": "2026-01-31"}}"#;

fuzz_target!(|text: &str| {
    let document = Value::parse(DOCUMENT).expect("the document is JSON");
    let document = Document::Envelope(document.node());
    match Condition::parse(text) {
        Err(error) => assert!(text.get(error.range).is_some(), "{}", error.message),
        Ok(condition) => {
            let value = condition.evaluate(document);
            let _ = condition.explain(document);
            if let Ok(negated) = Condition::parse(&format!("!({text})")) {
                assert_eq!(negated.evaluate(document).ok(), value.ok().map(|value| !value));
            }
        }
    }
});
