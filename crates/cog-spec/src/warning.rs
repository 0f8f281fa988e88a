use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;

string_enum! {
    /// The code of a warning (docs/spec/streaming.md).
    WarningCode {
        /// The content is not what its name or header hinted.
        ContentHint = "W1014",
        /// Confidence is low for the tier.
        LowConfidence = "W2001",
        /// The answer did not pass its gate: it should be reviewed.
        GateNotPassed = "W2002",
        /// There is no calibration for the confidence, or it is stale: the confidence is not measured.
        NotCalibrated = "W2003",
        /// An optional part of a composition failed.
        OptionalPartFailed = "W3002",
        /// Insights beyond the limit were removed.
        InsightsTruncated = "W3004",
        /// A citation of the answer is invalid, or an anchor has none.
        CitationInvalid = "W3006",
        /// The answer has a field that the schema does not name.
        UnknownField = "W3007",
        /// Aggregation lowered the risk.
        RiskLowered = "W3008",
        /// The model generated a media file for which the answer has no field.
        MediaUnplaced = "W3009",
        /// The rounds of a composition ended before their condition was true.
        RoundsEnded = "W3010",
        /// The answer fails a check of severity `warning`.
        CheckFailed = "W3011",
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
        /// A setting that the manifest or the operator prefers was not sent, because the model does not support it.
        SettingOmitted = "W4015",
        /// The provider rejected a part of the request, which was sent again without it.
        RequestReduced = "W4016",
        /// A tool that the manifest allows is not available in this run.
        ToolUnavailable = "W4017",
        /// The context that the module emits could not be stored.
        ContextNotStored = "W4018",
        /// The media in the result of a tool are sent in a message of the user, because the provider accepts only text there.
        ResultMediaMoved = "W4019",
        /// The model does not have a capability that the module prefers.
        CapabilityMissing = "W4020",
        /// The stored answer in the cache is damaged, so the model was called.
        CacheDamaged = "W4021",
        /// The cache cannot be read, or the answer cannot be stored in it.
        CacheUnusable = "W4024",
        /// `forms.json` of the module is damaged, edited, or older than the module, so it does not choose the form.
        FormsIgnored = "W4025",
        /// Evidence that the run requests is absent, or says little.
        EvidenceAbsent = "W4026",
        /// The handoff packet of the input is addressed to another agent.
        HandoffMisaddressed = "W4022",
        /// A text file among the artifacts of a handoff packet could not be read; the model receives only its reference.
        ArtifactNotRead = "W4023",
        /// A parameter of another interface had no effect, or a message was sent to the model as the caller's words.
        RequestAdapted = "W4030",
        /// The session could not be resumed: this is a new one.
        SessionNew = "W4013",
    }
}

/// A warning about a successful or failed run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "warning"))]
#[non_exhaustive]
pub struct Warning {
    /// The code of the warning.
    #[cfg_attr(feature = "schema", schemars(with = "String", regex(pattern = r"^W[0-9]{4}$")))]
    pub code: WarningCode,
    /// The message, one sentence.
    pub message: String,
    /// The fallback that was used, such as `sync`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_used: Option<String>,
}

impl Warning {
    /// Creates a warning without a fallback.
    pub fn new(code: WarningCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fallback_used: None }
    }

    /// Adds the fallback that was used, such as `sync`.
    #[must_use]
    pub fn with_fallback(mut self, fallback: impl Into<String>) -> Self {
        self.fallback_used = Some(fallback.into());
        self
    }

    /// Creates the warning for a stream that was requested of a module that does not stream (ruling R55).
    pub fn sync_instead_of_stream() -> Self {
        let message = "The module does not stream (`response.mode: sync`): it returned one envelope instead.";
        Self::new(WarningCode::SyncInsteadOfStream, message).with_fallback("sync")
    }
}
