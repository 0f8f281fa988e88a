//! The confirmation of a halted tool call: `_continue` (docs/tools.md).

use cog_json::Node;
use cog_run::tools::{Continuation, Decision};
use cog_spec::{Code, ErrorBody};

use crate::fields::allow_only;

/// Reads `_continue {id, confirm | deny}`. With neither, the run stays halted.
///
/// # Errors
/// E1001 for an object of another form.
pub(super) fn read(node: Node<'_>) -> Result<Continuation, ErrorBody> {
    if !node.is_object() {
        return Err(wrong("_continue: must be an object of id, and confirm or deny"));
    }
    allow_only(node, "_continue.", &["id", "confirm", "deny"])?;
    let id = node.get("id").and_then(|id| id.as_str());
    let id = id.ok_or_else(|| wrong("_continue.id: must be a string"))?.to_owned();
    let decision = match (node.get("confirm"), node.get("deny")) {
        (Some(_), Some(_)) => return Err(wrong("_continue: `confirm` and `deny` cannot be used together")),
        (None, None) => Decision::Confirm(String::new()),
        (Some(text), None) => {
            let text = text.as_str().ok_or_else(|| wrong("_continue.confirm: must be a string"))?;
            Decision::Confirm(text.to_owned())
        }
        (None, Some(deny)) if deny.as_bool() == Some(true) => Decision::Deny,
        (None, Some(_)) => return Err(wrong("_continue.deny: must be true")),
    };
    Ok(Continuation { id, decision })
}

fn wrong(message: &str) -> ErrorBody {
    ErrorBody::new(Code::InvalidInput, message)
        .suggest(r#"Send {"_continue": {"id": "halt_…", "confirm": "YES"}}."#)
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn parse(text: &str) -> Result<Continuation, ErrorBody> {
        read(Value::parse(text).unwrap().node())
    }

    #[test]
    fn reads_each_decision() {
        let decision = |text| parse(text).unwrap().decision;
        assert_eq!(decision(r#"{"id": "halt_1", "confirm": "YES"}"#), Decision::yes());
        assert_eq!(decision(r#"{"id": "halt_1", "deny": true}"#), Decision::Deny);
        assert_eq!(decision(r#"{"id": "halt_1"}"#), Decision::Confirm(String::new()));
    }

    #[test]
    fn rejects_other_forms() {
        let bad = [
            "7",
            "{}",
            r#"{"id": 7}"#,
            r#"{"id": "a", "deny": false}"#,
            r#"{"id": "a", "confirm": true}"#,
            r#"{"id": "a", "confirm": "YES", "deny": true}"#,
            r#"{"id": "a", "confirmed": "YES"}"#,
        ];
        for text in bad {
            assert_eq!(parse(text).unwrap_err().code, Code::InvalidInput.into(), "{text}");
        }
    }
}
