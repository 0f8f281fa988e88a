//! Reads envelopes and errors as they are written.

use cog_json::Node;
use serde::Deserialize as _;

use super::{Envelope, ErrorBody, Outcome};
use crate::{Code, ErrorCode, Meta, Warning};

impl Envelope {
    /// Reads an envelope that was written as JSON. None if the node is not an envelope.
    pub fn read(envelope: Node<'_>) -> Option<Self> {
        let value = |key: &str| envelope.get(key).map(Node::to_value);
        let outcome = match envelope.get("ok")?.as_bool()? {
            true => Outcome::Success { data: value("data")? },
            false => {
                let error = ErrorBody::read(envelope.get("error")?)?;
                Outcome::Failure { error, partial_data: value("partial_data") }
            }
        };
        let warnings = envelope.get("_warnings").into_iter().flat_map(Node::elements);
        Some(Self {
            meta: Meta::read(envelope.get("meta")?)?,
            outcome,
            warnings: warnings.map(|warning| Warning::deserialize(warning).ok()).collect::<Option<_>>()?,
            emitted_context: value("_emitted_context"),
            handoff: value("_handoff"),
        })
    }
}

impl ErrorBody {
    /// Reads an error that was written as JSON. None if the node is not an error.
    pub fn read(error: Node<'_>) -> Option<Self> {
        let text = |key: &str| error.get(key).and_then(Node::as_str).map(str::to_owned);
        Some(Self {
            code: ErrorCode::read(&text("code")?)?,
            message: text("message")?,
            recoverable: error.get("recoverable").and_then(Node::as_bool),
            suggestion: text("suggestion"),
            details: error.get("details").map(Node::to_value),
        })
    }
}

impl ErrorCode {
    /// Reads a code of the table, or one that a manifest may declare.
    fn read(code: &str) -> Option<Self> {
        let standard = code.parse::<Code>().ok().map(Self::Standard);
        standard.or_else(|| Self::is_declarable(code).then(|| Self::Declared(code.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use cog_json::{ToJson as _, Value};

    use super::*;
    use crate::{Risk, WarningCode};

    fn written_and_read(envelope: &Envelope) -> Option<Envelope> {
        let value = Value::parse(&envelope.to_json()).unwrap();
        Envelope::read(value.node())
    }

    #[test]
    fn reads_what_it_writes() {
        let value = |text: &str| Value::parse(text).unwrap();
        let mut success =
            Envelope::success(Meta::new(None, Risk::Low, "Done."), value(r#"{"n":1e400,"a":[]}"#));
        success.warnings.push(Warning::new(WarningCode::LowConfidence, "low"));
        success.emitted_context = Some(value("[1]"));
        success.handoff = Some(value("{}"));
        assert_eq!(written_and_read(&success), Some(success));

        let error = ErrorBody::new(Code::Timeout, "slow").suggest("Wait.").with_details(value(r#"{"a":1}"#));
        let mut failure = Envelope::failure(error.with_recoverable(false));
        assert_eq!(written_and_read(&failure), Some(failure.clone()));
        let declared = ErrorBody::with_code(ErrorCode::Declared("E5001".to_owned()), "no");
        failure.outcome = Outcome::Failure { error: declared, partial_data: Some(value("{}")) };
        assert_eq!(written_and_read(&failure), Some(failure));
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        for text in [
            "1",
            "{}",
            r#"{"ok":true,"meta":{"confidence":1,"risk":"low","explain":"a"}}"#,
            r#"{"ok":true,"data":{}}"#,
            r#"{"ok":false,"meta":{"confidence":1,"risk":"low","explain":"a"},"error":{"code":"X","message":"a"}}"#,
            r#"{"ok":true,"meta":{"confidence":1,"risk":"low","explain":"a"},"data":{},"_warnings":[1]}"#,
        ] {
            assert_eq!(Envelope::read(Value::parse(text).unwrap().node()), None, "{text}");
        }
    }
}
