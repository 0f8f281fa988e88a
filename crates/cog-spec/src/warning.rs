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
        /// Insights were cut to the limit.
        InsightsCut = "W3004",
        /// A field that the schema does not name was kept.
        UnknownFieldKept = "W3007",
        /// Aggregation lowered the risk.
        RiskLowered = "W3008",
        /// The model made a medium for which the answer has no place.
        MediaUnplaced = "W3009",
        /// No model was asked.
        NoModelAsked = "W4001",
        /// One envelope instead of a stream.
        SyncInsteadOfStream = "W4010",
        /// The model gets a part of a medium alone, because it takes no more of it.
        MediaInPart = "W4011",
        /// A medium stands in the answer itself, because it could not be kept elsewhere.
        MediaInline = "W4012",
        /// The model makes no medium of a kind that the answer has a place for.
        MediaNotMade = "W4014",
        /// The session was begun afresh.
        SessionAfresh = "W4013",
    }
}

/// One entry of `_warnings`: what a caller should know of an answer that stands all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// Which warning.
    pub code: WarningCode,
    /// What it is about, in a sentence.
    pub message: String,
    /// What was done instead, where something was: `sync`.
    pub fallback_used: Option<String>,
}

impl Warning {
    /// A warning without a fallback.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fallback_used: None }
    }

    /// Adds what was done instead, a name: `sync`.
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

    /// A stream was requested of a module that does not stream (ruling R55).
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
