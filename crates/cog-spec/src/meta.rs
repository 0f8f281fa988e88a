use std::collections::BTreeMap;

use cog_json::{Node, Value};
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    Agreement, CacheHit, Calibration, CalibrationReport, Code, ConfidenceSource, GateReport, Grounding,
    Judgement, PartReport, PassedChecks, Risk, RiskValue, Usage, string_enum::string_enum,
};

/// The keys of `meta` that the runtime writes (ruling R27). A module's meta schema does not apply to them.
pub const RUNTIME_KEYS: &[&str] = &[
    "model",
    "processing_time_ms",
    "latency_ms",
    "usage",
    "attempts",
    "repairs",
    "fallbacks",
    "trace_id",
    "media_processed",
    "media_validation",
    "cost",
    "cache",
    "parts",
    "evidence",
    "confidence_source",
    "calibration",
    "gate",
];

/// The control plane: what a caller decides by without reading `data` (SPEC 6).
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "meta"))]
#[non_exhaustive]
pub struct Meta {
    /// The confidence that the model reports, from 0 to 1.
    #[cfg_attr(feature = "schema", schemars(with = "f64", range(min = 0, max = 1)))]
    pub confidence: Option<f64>,
    /// The harm that the answer can do.
    pub risk: RiskValue,
    /// A summary of the answer, at most 280 characters.
    #[cfg_attr(feature = "schema", schemars(length(max = 280)))]
    pub explain: String,
    /// The module's own fields, in their order.
    #[serde(flatten, serialize_with = "members")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Vec<(String, Value)>,
    /// The fields that the runtime adds.
    #[serde(flatten)]
    pub runtime: RuntimeMeta,
}

fn members<S: Serializer>(members: &[(String, Value)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(members.iter().map(|(key, value)| (key, value)))
}

impl Meta {
    /// The maximum length of `explain`, in Unicode scalar values (ruling R23).
    pub const MAX_EXPLAIN: usize = 280;

    /// Creates a meta of the three required fields.
    pub fn new(confidence: Option<f64>, risk: impl Into<RiskValue>, explain: impl Into<String>) -> Self {
        Self {
            confidence,
            risk: risk.into(),
            explain: explain.into(),
            extra: Vec::new(),
            runtime: RuntimeMeta::default(),
        }
    }

    /// Reads a meta: the required fields, the runtime's own keys (ruling R27), and the module's own fields. None
    /// if risk or explain is absent or of another type.
    ///
    /// Read by hand, because a field of the runtime that has another type is only ignored.
    pub fn read(meta: Node<'_>) -> Option<Self> {
        let mut read = Self {
            confidence: meta.get("confidence").and_then(Node::as_f64),
            risk: RiskValue::read(meta.get("risk")?)?,
            explain: meta.get_str("explain")?.to_owned(),
            extra: Vec::new(),
            runtime: RuntimeMeta::default(),
        };
        let mut has_runtime_keys = false;
        for (key, value) in meta.members() {
            match key {
                "confidence" | "risk" | "explain" => {}
                key if RUNTIME_KEYS.contains(&key) => has_runtime_keys = true,
                key => read.extra.push((key.to_owned(), value.to_value())),
            }
        }
        // The meta of a model has none of them: then the dozen look-ups are spared.
        if has_runtime_keys {
            read.runtime = RuntimeMeta::read(meta);
        }
        Some(read)
    }

    /// Creates the meta of an error that the runtime found: confidence 0, risk high (ruling R32).
    ///
    /// `message` is truncated to the maximum length of `explain`.
    pub fn for_failure(message: &str) -> Self {
        Self::new(Some(0.0), Risk::High, message.chars().take(Self::MAX_EXPLAIN).collect::<String>())
    }
}

/// The fields of `meta` that the runtime adds (ruling R27).
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(transform = crate::schema::add_latency))]
#[non_exhaustive]
pub struct RuntimeMeta {
    /// The model that replied, as `PROVIDER/MODEL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub model: Option<String>,
    /// The time from the start of the run to the envelope, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processing_time_ms: Option<u64>,
    /// The tokens of all attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The number of model calls, if more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub attempts: Option<u32>,
    /// Every repair (ruling R26).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<Repair>,
    /// The providers that failed before the one that replied, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<Fallback>,
    /// The identifier that links the run to the caller's traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub trace_id: Option<String>,
    /// The media items that were sent to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::schema::Object>"))]
    pub media_processed: Option<Value>,
    /// The results of checking the media items.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::ArrayOrObject"))]
    pub media_validation: Option<Value>,
    /// The cost of the run: amount, currency, and the source of the price.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Object"))]
    pub cost: Option<Value>,
    /// The cache of answers, if the answer is from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheHit>,
    /// The parts of a composition, in the order in which they started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartReport>,
    /// What is known about the answer besides what the model states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What `confidence` is, in a run that asks for a measured one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1)))]
    pub confidence_source: Option<ConfidenceSource>,
    /// The cases behind the calibration, in a run that asks for a measured confidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationReport>,
    /// What the gate of the run says about the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateReport>,
}

impl RuntimeMeta {
    /// Returns whether the answer, or one of a part that it is made of, did not pass its gate, so that a person should review it.
    pub fn wants_review(&self) -> bool {
        self.gate.is_some_and(|gate| !gate.passed) || self.parts.iter().any(|part| part.review)
    }
}

/// What is known about an answer besides what the model states of itself (docs/evidence.md). Evidence that was not collected is
/// absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "evidence"))]
pub struct Evidence {
    /// The probabilities of the tokens of the deciding fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprob: Option<FieldProbabilities>,
    /// The confidence before a calibration replaced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub stated: Option<f64>,
    /// How many runs of the same request gave this answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// Which strings of the answer occur in the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grounding: Option<Grounding>,
    /// What another model says about the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<Judgement>,
    /// The checks of the module that the answer passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<PassedChecks>,
    /// The number of repairs of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<u32>,
    /// The number of calls to the model until this answer was valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u32>,
}

impl Evidence {
    /// The kinds of evidence that a calibration can read, with the confidence itself.
    pub const KINDS: &'static [&'static str] =
        &[Calibration::STATED, "logprob", "agreement", "grounding", "judge", "checks"];

    /// Returns the number of a kind, from 0 to 1; none if the answer has no such evidence.
    pub fn value(&self, kind: &str) -> Option<f64> {
        match kind {
            Calibration::STATED => self.stated,
            "logprob" => self.logprob.as_ref().map(|found| found.value),
            "agreement" => self.agreement.as_ref().map(|found| found.value),
            "grounding" => self.grounding.as_ref().map(|found| found.value),
            "judge" => self.judge.as_ref().map(|found| found.value),
            "checks" => self.checks.as_ref().map(|found| found.value),
            _ => None,
        }
    }
}

/// How probable a model found the deciding fields of its answer: enums, booleans and numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "field_probabilities"))]
pub struct FieldProbabilities {
    /// The product of the fields, from 0 to 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub value: f64,
    /// Each field by its name, from 0 to 1.
    pub fields: BTreeMap<String, f64>,
}

/// A provider that failed, so that the next one was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "fallback"))]
pub struct Fallback {
    /// The name of the provider.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub provider: String,
    /// The code of its error.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1)))]
    pub code: Code,
    /// The message of its error.
    pub message: String,
}

impl RuntimeMeta {
    fn read(meta: Node<'_>) -> Self {
        let text = |key: &str| meta.get_str(key).map(str::to_owned);
        let value = |key: &str| meta.get(key).map(Node::to_value);
        let time = meta.get("processing_time_ms").or_else(|| meta.get("latency_ms"));
        Self {
            model: text("model"),
            processing_time_ms: time.and_then(Node::as_u64),
            usage: meta.get("usage").and_then(Usage::read),
            attempts: meta.get("attempts").and_then(Node::as_u64).and_then(|count| count.try_into().ok()),
            repairs: list(meta.get("repairs")),
            fallbacks: list(meta.get("fallbacks")),
            trace_id: text("trace_id"),
            media_processed: value("media_processed"),
            media_validation: value("media_validation"),
            cost: value("cost"),
            cache: read_as(meta, "cache"),
            parts: list(meta.get("parts")),
            evidence: read_as(meta, "evidence"),
            confidence_source: read_as(meta, "confidence_source"),
            calibration: read_as(meta, "calibration"),
            gate: read_as(meta, "gate"),
        }
    }
}

/// Returns a member that has the form of `T`.
fn read_as<'a, T: Deserialize<'a>>(meta: Node<'a>, key: &str) -> Option<T> {
    meta.get(key).and_then(|member| T::deserialize(member).ok())
}

/// Returns the elements that have the form of `T`.
fn list<'a, T: Deserialize<'a>>(list: Option<Node<'a>>) -> Vec<T> {
    list.into_iter().flat_map(Node::elements).filter_map(|element| T::deserialize(element).ok()).collect()
}

string_enum! {
    /// The kind of a repair (ruling R24). A repair changes form, never meaning.
    RepairRule {
        /// Text around the JSON was removed.
        SurroundingText = "surrounding_text",
        /// A code fence around the JSON was removed.
        CodeFence = "code_fence",
        /// A comma before a closing bracket was removed.
        TrailingComma = "trailing_comma",
        /// A string in single quotes was accepted.
        SingleQuotes = "single_quotes",
        /// A comment was removed.
        Comment = "comment",
        /// A raw control character in a string was read as its escape.
        RawNewline = "raw_newline",
        /// `None`, `True` or `False` was read as `null`, `true` or `false`.
        PythonLiteral = "python_literal",
        /// A key without quotes was accepted.
        BareKey = "bare_key",
        /// A string in typographic quotes was accepted.
        SmartQuotes = "smart_quotes",
        /// `\'` was read as `'`.
        EscapedQuote = "escaped_quote",
        /// White space that JSON does not have, or a character of no width, was removed.
        UnicodeSpace = "unicode_space",
        /// `TRUE`, `Null` or the like was read as `true` or `null`.
        LiteralCase = "literal_case",
        /// A number such as `+5`, `.5` or `5.` was read as JSON.
        NumberForm = "number_form",
        /// A leading or doubled comma was removed.
        ExtraComma = "extra_comma",
        /// A comma between two members on separate lines was added.
        MissingComma = "missing_comma",
        /// A key appeared twice; the last value counts.
        DuplicateKey = "duplicate_key",
        /// A member of the reply that is not part of an envelope was dropped (ruling R74).
        DropMember = "drop_member",
        /// A reply without an envelope was wrapped (ruling R28).
        Wrap = "wrap",
        /// `meta.confidence` was absent and filled.
        FillConfidence = "fill_confidence",
        /// `meta.risk` was absent and filled.
        FillRisk = "fill_risk",
        /// `meta.explain` was absent and filled.
        FillExplain = "fill_explain",
        /// What a model states about a generated media file was replaced with what the file says.
        MediaFact = "media_fact",
        /// White space around `meta.explain` was trimmed.
        TrimExplain = "trim_explain",
        /// `meta.explain` was truncated to 280 characters (ruling R23).
        TruncateExplain = "truncate_explain",
        /// Insights beyond the limit were removed (ruling R30).
        CutInsights = "cut_insights",
    }
}

/// A repair of the form of a reply (ruling R26). Values are only given for paths under `meta`; elsewhere `before` and
/// `after` are sizes in bytes, so that the entry never repeats business content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "repair"))]
pub struct Repair {
    /// The kind of the repair.
    #[cfg_attr(feature = "schema", schemars(with = "String", length(min = 1)))]
    pub rule: RepairRule,
    /// The path from the envelope, such as `meta.explain`; empty for the complete reply.
    pub path: String,
    /// The value before the repair, or its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
    pub before: Option<Value>,
    /// The value after the repair, or its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::Anything"))]
    pub after: Option<Value>,
}

#[cfg(test)]
mod tests {
    use cog_json::ToJson as _;

    use super::*;
    use crate::RepairRule;

    #[test]
    fn reads_what_it_writes() {
        let mut meta = Meta::new(Some(0.5), Risk::Low, "Done.");
        meta.extra.push(("area".to_owned(), Value::parse("[1]").unwrap()));
        meta.runtime.model = Some("offline/sample".to_owned());
        meta.runtime.processing_time_ms = Some(12);
        meta.runtime.usage = Some(Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() });
        meta.runtime.attempts = Some(2);
        let before = Some(Value::parse("2").unwrap());
        meta.runtime.repairs.push(Repair {
            rule: RepairRule::Comment,
            path: "data".to_owned(),
            before,
            after: None,
        });
        meta.runtime.fallbacks.push(Fallback {
            provider: "openai".to_owned(),
            code: Code::RateLimited,
            message: "slow".to_owned(),
        });
        let value = Value::parse(&meta.to_json()).unwrap();
        assert_eq!(Meta::read(value.node()), Some(meta));
    }
}
