use cog_json::{Node, ToJson, Value, Writer};

use crate::{Code, Repair, Risk, RiskValue, Usage};

/// The keys of `meta` that are the runtime's own (ruling R27).
///
/// They are added after the module's meta schema was checked, and that check ignores them.
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
];

/// The control plane of an answer (SPEC 6): what a caller routes by without reading `data`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Meta {
    /// How sure the model says it is, 0 to 1; none in the first chunk of a stream.
    pub confidence: Option<f64>,
    /// How much harm the answer can do.
    pub risk: RiskValue,
    /// What the answer says, in at most 280 characters.
    pub explain: String,
    /// Fields of the module's own, in their order.
    pub extra: Vec<(String, Value)>,
    /// What the runtime adds.
    pub runtime: RuntimeMeta,
}

impl Meta {
    /// The longest `explain`, in Unicode scalar values (ruling R23).
    pub const MAX_EXPLAIN: usize = 280;

    /// A meta of the three required fields.
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
    /// where risk or explain is absent or of another type.
    ///
    /// Read and written by hand, as the fields of three types are members of one object in a fixed order.
    pub fn read(meta: Node<'_>) -> Option<Self> {
        let is_own = |(key, _): &(&str, Node<'_>)| {
            !RUNTIME_KEYS.contains(key) && !matches!(*key, "confidence" | "risk" | "explain")
        };
        let extra = meta.members().filter(is_own).map(|(key, value)| (key.to_owned(), value.to_value()));
        Some(Self {
            confidence: meta.get("confidence").and_then(Node::as_f64),
            risk: RiskValue::read(meta.get("risk")?)?,
            explain: meta.get("explain")?.as_str()?.to_owned(),
            extra: extra.collect(),
            runtime: RuntimeMeta::read(meta),
        })
    }

    /// The meta of an error that the runtime itself found: confidence 0, risk high (ruling R32).
    ///
    /// `message` is cut to the length of an `explain`.
    pub fn for_failure(message: &str) -> Self {
        Self::new(Some(0.0), Risk::High, message.chars().take(Self::MAX_EXPLAIN).collect::<String>())
    }
}

impl ToJson for Meta {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("confidence", &self.confidence);
            w.field("risk", &self.risk);
            w.field("explain", &self.explain);
            for (key, value) in &self.extra {
                w.field(key, value);
            }
            self.runtime.write_fields(w);
        });
    }
}

/// What the runtime knows of a run and adds to `meta` (ruling R27).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct RuntimeMeta {
    /// The model that answered, `VENDOR/MODEL`.
    pub model: Option<String>,
    /// From the first byte asked for to the envelope, in milliseconds.
    pub processing_time_ms: Option<u64>,
    /// Tokens of all attempts.
    pub usage: Option<Usage>,
    /// How often the model was asked, where more than once.
    pub attempts: Option<u32>,
    /// Every repair (ruling R26).
    pub repairs: Vec<Repair>,
    /// Providers that were asked before the one that answered, in order.
    pub fallbacks: Vec<Fallback>,
    /// Links the run to the caller's traces.
    pub trace_id: Option<String>,
    /// Each medium that reached the model.
    pub media_processed: Option<Value>,
    /// What was checked of each medium.
    pub media_validation: Option<Value>,
    /// What the run cost: amount, currency, and where the price is from.
    pub cost: Option<Value>,
}

/// A provider that gave no answer, so that the next one was asked: `{provider, code, message}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Its name.
    pub provider: String,
    /// The code of its fault.
    pub code: Code,
    /// What went wrong, for a person.
    pub message: String,
}

impl ToJson for Fallback {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("provider", &self.provider);
            w.field("code", &self.code);
            w.field("message", &self.message);
        });
    }
}

impl Fallback {
    fn read(node: Node<'_>) -> Option<Self> {
        let text = |key: &str| node.get(key).and_then(Node::as_str);
        Some(Self {
            provider: text("provider")?.to_owned(),
            code: text("code")?.parse().ok()?,
            message: text("message")?.to_owned(),
        })
    }
}

impl RuntimeMeta {
    /// Reads the runtime's own keys of a meta; a key with another type is left out.
    fn read(meta: Node<'_>) -> Self {
        let text = |key: &str| meta.get(key).and_then(Node::as_str).map(str::to_owned);
        let value = |key: &str| meta.get(key).map(Node::to_value);
        let list = |key: &str| meta.get(key).into_iter().flat_map(Node::elements);
        let time = meta.get("processing_time_ms").or_else(|| meta.get("latency_ms"));
        Self {
            model: text("model"),
            processing_time_ms: time.and_then(Node::as_u64),
            usage: meta.get("usage").and_then(Usage::read),
            attempts: meta.get("attempts").and_then(Node::as_u64).and_then(|count| count.try_into().ok()),
            repairs: list("repairs").filter_map(Repair::read).collect(),
            fallbacks: list("fallbacks").filter_map(Fallback::read).collect(),
            trace_id: text("trace_id"),
            media_processed: value("media_processed"),
            media_validation: value("media_validation"),
            cost: value("cost"),
        }
    }

    fn write_fields(&self, w: &mut Writer<'_>) {
        w.optional("model", &self.model);
        w.optional("processing_time_ms", &self.processing_time_ms);
        w.optional("usage", &self.usage);
        w.optional("attempts", &self.attempts);
        if !self.repairs.is_empty() {
            w.field("repairs", &self.repairs);
        }
        if !self.fallbacks.is_empty() {
            w.field("fallbacks", &self.fallbacks);
        }
        w.optional("trace_id", &self.trace_id);
        w.optional("media_processed", &self.media_processed);
        w.optional("media_validation", &self.media_validation);
        w.optional("cost", &self.cost);
    }
}

#[cfg(test)]
mod tests {
    use crate::RepairRule;

    use super::*;

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
