use super::{Draft, MigrateError};
use crate::edit::line_end;

/// The section that is appended to the prompt.
const ENVELOPE: &str = r#"
## Envelope

Answer with one JSON object and nothing else. Put the result described above in `data`.

If you can answer:

```json
{
  "ok": true,
  "meta": { "confidence": 0.9, "risk": "low", "explain": "The answer in at most 280 characters" },
  "data": { "rationale": "The reasoning behind the answer, at any length" }
}
```

If you cannot answer:

```json
{
  "ok": false,
  "meta": { "confidence": 0.9, "risk": "none", "explain": "Why there is no answer" },
  "error": { "code": "E2004", "message": "What the caller needs to change" }
}
```

- `meta.confidence`: 0 to 1, how sure you are of the answer.
- `meta.risk`: none, low, medium or high, how much harm acting on the answer could do.
"#;

/// Appends the envelope section; the prompt itself is unchanged.
pub(super) fn add_envelope(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    let source = draft.require("prompt.md")?;
    let newline = line_end(&source.text);
    let gap = if source.text.ends_with('\n') { "" } else { newline };
    let section = ENVELOPE.replace('\n', newline);
    draft.put("prompt.md", source.text + gap + &section)
}
