use cog_json::{Node, ToJson, Writer};

use crate::tier::words;

words! {
    /// The warnings of a run (docs/spec/streaming.md).
    WarningCode {
        /// The content is not what its name or header hinted.
        ContentHint = "W1014",
        /// Confidence is low for the tier.
        LowConfidence = "W2001",
        /// An optional part of a composition failed.
        OptionalPartFailed = "W3002",
        /// Insights beyond the limit were removed.
        InsightsTruncated = "W3004",
        /// The answer has a field that the schema does not name.
        UnknownField = "W3007",
        /// Aggregation lowered the risk.
        RiskLowered = "W3008",
        /// The model generated a media file for which the answer has no field.
        MediaUnplaced = "W3009",
        /// No model was called: the answer is a golden one or a sample.
        NoModelCalled = "W4001",
        /// One envelope instead of a stream.
        SyncInsteadOfStream = "W4010",
        /// The model receives only a part of a media file, because it does not support the rest.
        MediaInPart = "W4011",
        /// A media file is inside the answer, because it could not be stored elsewhere.
        MediaInline = "W4012",
        /// The model cannot generate media of a kind that the answer has a field for.
        MediaNotGenerated = "W4014",
        /// The session could not be resumed: this is a new one.
        SessionNew = "W4013",
    }
}

/// An entry of `_warnings`: a fact that the caller should know about a valid answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The code.
    pub code: WarningCode,
    /// The description, in one sentence.
    pub message: String,
    /// The fallback that was used, if any: `sync`.
    pub fallback_used: Option<String>,
}

impl Warning {
    /// Returns a warning without a fallback.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fallback_used: None }
    }

    /// Sets the name of the fallback: `sync`.
    #[must_use]
    pub fn with_fallback(mut self, fallback: impl Into<String>) -> Self {
        self.fallback_used = Some(fallback.into());
        self
    }

    /// Reads an entry of `_warnings`; none where a field is absent or the code is unknown.
    pub fn read(node: Node<'_>) -> Option<Self> {
        Some(Self {
            code: node.get("code")?.as_str()?.parse().ok()?,
            message: node.get("message")?.as_str()?.to_owned(),
            fallback_used: node.get("fallback_used").and_then(Node::as_str).map(str::to_owned),
        })
    }

    /// Returns the warning about a stream that was requested from a module without streams (ruling R55).
    pub fn sync_instead_of_stream() -> Self {
        let message = "The module does not stream (`response.mode: sync`): it returned one envelope instead.";
        Self::new(WarningCode::SyncInsteadOfStream, message).with_fallback("sync")
    }
}

impl ToJson for Warning {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("code", self.code.as_str());
            w.field("message", &self.message);
            w.optional("fallback_used", &self.fallback_used);
        });
    }
}
