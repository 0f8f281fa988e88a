//! The model of the parts of `review-pipeline`.

use std::time::Duration;

use cog_testkit::{Mock, Reply};
use serde_json::json;

/// The parts of `review-pipeline`.
pub(crate) const PARTS: [&str; 4] = ["code-analyzer", "security-reviewer", "style-reviewer", "review-merger"];

/// Returns what distinguishes the requests of a part: the name of its schema.
fn mark(part: &str) -> String {
    format!(r#""name":"{part}""#)
}

/// Returns a model that replies to each part in chunks, with this pause between them.
pub(crate) fn model(pause: Duration) -> Mock {
    let issue = |title: &str, risk: &str| json!({ "title": title, "category": "kind", "risk": risk, "line": 1, "problem": "It is wrong.", "remedy": "Change it." });
    let (injection, names) = (issue("Injection", "high"), issue("Names", "low"));
    let data = [
        json!({ "language": "python", "summary": "A query.", "inputs": ["u"], "rationale": "It says def." }),
        json!({ "issues": [injection], "rationale": "u is not bound." }),
        json!({ "issues": [names], "rationale": "f says nothing." }),
        json!({ "verdict": "reject", "issues": [injection, names], "rationale": "The injection decides." }),
    ];
    Mock::start(PARTS.iter().zip(data).map(|(part, data)| {
        let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "Done." });
        let text = json!({ "ok": true, "meta": meta, "data": data, "error": null }).to_string();
        Reply::text(text).chunk_size(24).pause(pause).delay(Duration::from_millis(10)).when(mark(part))
    }))
}

/// Returns how often the model was called for each part.
pub(crate) fn calls(mock: &Mock) -> [usize; 4] {
    let requests: Vec<String> = mock.requests().iter().map(|request| request.body.to_string()).collect();
    PARTS.map(|part| requests.iter().filter(|body| body.contains(&mark(part))).count())
}
