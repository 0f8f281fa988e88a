//! Inserts keys into `module.yaml` between existing lines.

use super::{Draft, MigrateError};
use crate::{
    LoadError,
    source::{Edits, Source, after_line, line_end},
    yaml::{self, Node},
};

const TIER: &str = "\
# The tier decides which answers succeed. `cog migrate` chose decision: a person reviews the answer.
# exec: a program acts on it (confidence of at least 0.9, risk none or low); exploration: any idea is welcome.
tier: decision
";

const RESPONSE: &str = "\
# Response mode: sync (one envelope), streaming, or both.
response:
  mode: sync
";

pub(super) const FILE: &str = "module.yaml";

/// Adds the tier after `responsibility`.
pub(super) fn add_tier(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    add(draft, "responsibility", TIER)
}

/// Adds the response mode after the tier.
pub(super) fn add_response(draft: &mut Draft<'_>) -> Result<(), MigrateError> {
    add(draft, "tier", RESPONSE)
}

/// Inserts lines after the line on which the value of `key` ends.
fn add(draft: &mut Draft<'_>, key: &str, lines: &str) -> Result<(), MigrateError> {
    let source = draft.require(FILE)?;
    let root = parse(&source)?;
    let is_flow = source.text.get(root.span.start..).is_some_and(|text| text.starts_with('{'));
    if is_flow {
        return Err(MigrateError::FlowStyle { path: source.path.clone() });
    }
    let end = root.get(key).map_or(source.text.len(), |value| value.span.end);
    let at = after_line(&source.text, end);
    let mut edits = Edits::default();
    let newline = line_end(&source.text);
    if at == source.text.len() && !source.text.ends_with('\n') {
        edits.insert(at, newline);
    }
    edits.insert(at, lines.replace('\n', newline));
    draft.put(FILE, edits.apply(&source.text))
}

pub(super) fn parse(source: &Source) -> Result<Node, MigrateError> {
    yaml::parse(source).map_err(|problem| MigrateError::Load(LoadError { diagnostics: vec![problem] }))
}

// The prompt.

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
