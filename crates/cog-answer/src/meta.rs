//! Meta as it stands in JSON, read back.

use cog_json::{Node, Value};
use cog_spec::{Fallback, Meta, RUNTIME_KEYS, Repair, RiskValue, RuntimeMeta, Usage};

/// Reads a meta: the three required fields, the runtime's own keys (ruling R27), and what else there is. None
/// where risk or explain is absent or of another kind.
pub(crate) fn read(meta: Node<'_>) -> Option<Meta> {
    let own = |(key, _): &(&str, Node<'_>)| {
        !RUNTIME_KEYS.contains(key) && !matches!(*key, "confidence" | "risk" | "explain")
    };
    Some(Meta {
        confidence: meta.get("confidence").and_then(Node::as_f64),
        risk: RiskValue::read(meta.get("risk")?)?,
        explain: meta.get("explain")?.as_str()?.to_owned(),
        extra: meta.members().filter(own).map(|(key, value)| (key.to_owned(), value.to_value())).collect(),
        runtime: runtime(meta),
    })
}

fn runtime(meta: Node<'_>) -> RuntimeMeta {
    let text = |key: &str| meta.get(key).and_then(Node::as_str).map(str::to_owned);
    let value = |key: &str| meta.get(key).map(Node::to_value);
    let time = meta.get("processing_time_ms").or_else(|| meta.get("latency_ms"));
    RuntimeMeta {
        model: text("model"),
        processing_time_ms: time.and_then(Node::as_u64),
        usage: meta.get("usage").and_then(usage),
        attempts: meta.get("attempts").and_then(Node::as_u64).and_then(|count| count.try_into().ok()),
        repairs: meta.get("repairs").into_iter().flat_map(Node::elements).filter_map(repair).collect(),
        fallbacks: meta.get("fallbacks").into_iter().flat_map(Node::elements).filter_map(fallback).collect(),
        trace_id: text("trace_id"),
        media_processed: value("media_processed"),
        media_validation: value("media_validation"),
        cost: value("cost"),
    }
}

fn usage(usage: Node<'_>) -> Option<Usage> {
    let count = |key: &str| usage.get(key).and_then(Node::as_u64);
    Some(Usage {
        input_tokens: count("input_tokens")?,
        output_tokens: count("output_tokens")?,
        cached_input_tokens: count("cached_input_tokens"),
        reasoning_tokens: count("reasoning_tokens"),
    })
}

fn repair(repair: Node<'_>) -> Option<Repair> {
    let value = |key: &str| -> Option<Value> { repair.get(key).map(Node::to_value) };
    Some(Repair {
        rule: repair.get("rule")?.as_str()?.parse().ok()?,
        path: repair.get("path")?.as_str()?.to_owned(),
        before: value("before"),
        after: value("after"),
    })
}

fn fallback(fallback: Node<'_>) -> Option<Fallback> {
    let text = |key: &str| fallback.get(key).and_then(Node::as_str);
    Some(Fallback {
        provider: text("provider")?.to_owned(),
        code: text("code")?.parse().ok()?,
        message: text("message")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use cog_json::ToJson;
    use cog_spec::{Code, RepairRule, Risk};

    use super::*;

    #[test]
    fn what_is_written_reads_back() {
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
        assert_eq!(read(value.node()), Some(meta));
    }
}
