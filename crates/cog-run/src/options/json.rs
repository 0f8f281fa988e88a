//! Options as JSON: `_options` of a request (docs/spec/streaming.md), and options that are stored.

use std::{fmt::Display, str::FromStr, time::Duration};

use cog_harmony::Conversation;
use cog_json::{Kind, Node, ToJson, Value, Writer};
use cog_spec::{Ask, Code, ErrorBody, EvidenceRequest, GateRule, Generation, Warning};
use serde::Deserialize as _;

use super::{Approval, Caller, Decision, RunOptions};

/// The keys of `_options` that belong to a run.
const KEYS: [&str; 18] = [
    "chunk_type",
    "provider",
    "model",
    "strict",
    "accept",
    "escalate",
    "timeout_ms",
    "on_violation",
    "max_attempts",
    "effort",
    "verbosity",
    "service_tier",
    "ask",
    "evidence",
    "risk",
    "max_tool_rounds",
    "max_tool_calls",
    "handoff_to",
];
/// The maximum timeout that a request may set: one day in milliseconds.
const MAX_MS: u64 = 24 * 3600 * 1000;
/// The maximum number of attempts that a request may set.
const MAX_ATTEMPTS: u64 = 10;
/// The maximum number of tool calls that a request may set.
const MAX_TOOL_CALLS: u32 = 1_000;
/// The maximum length in bytes of the name of a provider, a model or an agent.
const MAX_NAME: usize = 256;

impl RunOptions {
    /// Reads the options of a request from an object. The keys in `extra` belong to the caller and are
    /// skipped.
    ///
    /// # Errors
    /// E1001 for an unknown key, a value of another type, or a number out of range. The error has the path
    /// and the allowed values.
    pub fn read(node: Node<'_>, extra: &[&str]) -> Result<Self, ErrorBody> {
        if !node.is_object() {
            return Err(error("_options", "type", format!("found {}; allowed: an object", kind_name(node))));
        }
        let mut options = Self::default();
        for (key, value) in node.members() {
            let member = Member { key, value };
            match key {
                "chunk_type" => options.chunk_type = Some(member.keyword()?),
                "provider" => options.provider = Some(member.name()?),
                "model" => options.model = Some(member.name()?),
                "strict" => options.strict = member.flag()?,
                "accept" => options.accept = Some(member.share()?),
                "escalate" => options.escalate = member.flag()?,
                "timeout_ms" => options.timeout = Some(Duration::from_millis(member.number(MAX_MS)?)),
                "on_violation" => options.on_violation = Some(member.keyword()?),
                "max_attempts" => options.max_attempts = member.number(MAX_ATTEMPTS)?.try_into().ok(),
                "effort" => options.generation.effort = Some(member.keyword()?),
                "verbosity" => options.generation.verbosity = Some(member.keyword()?),
                "service_tier" => options.generation.service_tier = Some(member.keyword()?),
                "ask" => options.generation.ask = Some(member.keyword()?),
                "evidence" => options.evidence = Some(member.evidence()?),
                "risk" => options.risk = Some(member.keyword()?),
                "max_tool_rounds" => options.max_tool_rounds = Some(member.count(MAX_TOOL_CALLS)?),
                "max_tool_calls" => options.max_tool_calls = Some(member.count(MAX_TOOL_CALLS)?),
                "handoff_to" => options.handoff_to = Some(member.name()?),
                _ if extra.contains(&key) => {}
                _ => return Err(unknown(key, extra)),
            }
        }
        Ok(options)
    }
}

/// Writes the keys of `_options` that are set, at most with the maxima of a request. Options that a request cannot set are
/// omitted.
impl ToJson for RunOptions {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.optional("chunk_type", &self.chunk_type.map(|it| it.as_str()));
            w.optional("provider", &self.provider);
            w.optional("model", &self.model);
            w.optional("strict", &self.strict.then_some(true));
            w.optional("accept", &self.accept);
            w.optional("escalate", &self.escalate.then_some(true));
            let ms = self.timeout.map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX).min(MAX_MS));
            w.optional("timeout_ms", &ms);
            w.optional("on_violation", &self.on_violation.map(|it| it.as_str()));
            let attempts = self.max_attempts.map(|it| u64::from(it).min(MAX_ATTEMPTS));
            w.optional("max_attempts", &attempts);
            w.optional("effort", &self.generation.effort);
            w.optional("verbosity", &self.generation.verbosity);
            w.optional("service_tier", &self.generation.service_tier);
            w.optional("ask", &self.generation.ask.map(Ask::as_str));
            w.optional("evidence", &self.evidence.as_ref().map(ToString::to_string));
            w.optional("risk", &self.risk);
            w.optional("max_tool_rounds", &self.max_tool_rounds.map(|it| it.min(MAX_TOOL_CALLS)));
            w.optional("max_tool_calls", &self.max_tool_calls.map(|it| it.min(MAX_TOOL_CALLS)));
            w.optional("handoff_to", &self.handoff_to);
        });
    }
}

/// A member of `_options`.
struct Member<'a> {
    key: &'a str,
    value: Node<'a>,
}

impl Member<'_> {
    fn flag(&self) -> Result<bool, ErrorBody> {
        self.value.as_bool().ok_or_else(|| self.error("type", "true or false"))
    }

    /// Returns a number from 1 to this maximum.
    fn number(&self, max: u64) -> Result<u64, ErrorBody> {
        let allowed = format!("a whole number from 1 to {max}");
        if self.value.kind() != Kind::Number {
            return Err(self.error("type", allowed));
        }
        let number = self.value.as_u64().filter(|number| (1..=max).contains(number));
        number.ok_or_else(|| self.error("bounds", allowed))
    }

    /// Returns a number from 1 to this maximum.
    fn count(&self, max: u32) -> Result<u32, ErrorBody> {
        Ok(u32::try_from(self.number(u64::from(max))?).unwrap_or(max))
    }

    fn share(&self) -> Result<f64, ErrorBody> {
        let range = GateRule::RANGE;
        let allowed = || format!("a number from {} to {}", range.start(), range.end());
        let Some(share) = self.value.as_f64() else { return Err(self.error("type", allowed())) };
        range.contains(&share).then_some(share).ok_or_else(|| self.error("bounds", allowed()))
    }

    fn name(&self) -> Result<String, ErrorBody> {
        let name = self.value.as_str().map(str::trim).filter(|name| !name.is_empty());
        let name = name.filter(|name| name.len() <= MAX_NAME);
        name.map(str::to_owned).ok_or_else(|| self.error("type", "a name"))
    }

    /// Returns what to collect: a list of strings, or one string with commas.
    fn evidence(&self) -> Result<EvidenceRequest, ErrorBody> {
        let items: Option<Vec<&str>> = match self.value.as_str() {
            Some(text) => Some(text.split(',').collect()),
            None => self.value.elements().map(Node::as_str).collect(),
        };
        let items = items.filter(|items| !items.is_empty());
        let items = items.ok_or_else(|| self.error("type", "a list of strings"))?;
        EvidenceRequest::from_items(items)
            .map_err(|invalid| error(&format!("_options.{}", self.key), "enum", invalid.to_string()))
    }

    fn keyword<T: FromStr<Err = cog_spec::ParseEnumError>>(&self) -> Result<T, ErrorBody> {
        let Some(keyword) = self.value.as_str() else { return Err(self.error("type", "a string")) };
        keyword.parse().map_err(|error: cog_spec::ParseEnumError| {
            let invalid = self.error("enum", error.allowed.join(", "));
            match cog_schema::nearest(keyword, error.allowed.iter().copied()) {
                Some(near) => invalid.suggest(format!("Did you mean `{near}`?")),
                None => invalid,
            }
        })
    }

    fn error(&self, rule: &str, allowed: impl Display) -> ErrorBody {
        let found = match self.value.kind() {
            Kind::Number | Kind::String | Kind::Bool => shortened(self.value.to_json()),
            _ => kind_name(self.value).to_owned(),
        };
        error(&format!("_options.{}", self.key), rule, format!("found {found}; allowed: {allowed}"))
    }
}

fn unknown(key: &str, extra: &[&str]) -> ErrorBody {
    let mut known: Vec<&str> = KEYS.iter().chain(extra).copied().collect();
    let near = cog_schema::nearest(key, known.iter().copied());
    known.sort_unstable();
    let path = format!("_options.{}", shortened(key.to_owned()));
    let error = error(&path, "unknown", format!("unknown option; allowed: {}", known.join(", ")));
    match near {
        Some(near) => error.suggest(format!("Did you mean `{near}`?")),
        None => error,
    }
}

fn error(path: &str, rule: &str, message: String) -> ErrorBody {
    let violation = serde_json::json!({ "path": path, "rule": rule, "message": message });
    ErrorBody::new(Code::InvalidInput, format!("{path}: {message}"))
        .with_details(Value::from(serde_json::json!({ "violations": [violation] })))
}

/// Returns the first 64 characters of a value, for a message.
fn shortened(text: String) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn kind_name(node: Node<'_>) -> &'static str {
    match node.kind() {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

// Options that are stored, so that a run that continues or starts again has them: those that are not part of its request.

/// Writes the options that are set, and the warnings of the run, as an object.
pub(crate) fn write_stored(w: &mut Writer<'_>, options: &RunOptions, warnings: &[Warning]) {
    let Generation { temperature, max_tokens, seed, stop, .. } = &options.generation;
    w.object(|w| {
        w.optional("owner", &options.owner);
        w.optional("trace_id", &options.trace_id);
        w.optional("instructions", &options.instructions);
        w.field("messages", &*options.messages);
        w.optional("by_agent", &(options.caller == Caller::Agent).then_some(true));
        w.optional("buffer_size", &options.buffer_size);
        w.optional("continues", &options.approval.as_ref().map(|halted| halted.id.clone()));
        w.optional("confirms", &options.approval.as_ref().map(|halted| halted.decision == Decision::yes()));
        w.optional("temperature", temperature);
        w.optional("max_tokens", max_tokens);
        w.optional("seed", seed);
        w.field("stop", stop);
        w.field("warnings", warnings);
    });
}

/// Reads the stored options, and returns the warnings of the run; none when the object is invalid.
pub(crate) fn read_stored(node: Node<'_>, options: &mut RunOptions) -> Option<Vec<Warning>> {
    // Without it, a run that starts again after a restart would be the operator's: with the operator's context and uploads.
    options.owner = node.get("owner").and_then(text);
    options.trace_id = node.get("trace_id").and_then(text);
    options.instructions = node.get("instructions").and_then(text);
    options.messages = Conversation::read(node.get("messages")?).ok()?.0;
    if node.get("by_agent").is_some() {
        options.caller = Caller::Agent;
    }
    let is_confirmed = node.get("confirms").and_then(|it| it.as_bool()).unwrap_or_default();
    let decision = if is_confirmed { Decision::yes() } else { Decision::Deny };
    options.approval = node.get("continues").and_then(text).map(|id| Approval { id, decision });
    options.buffer_size = node.get("buffer_size").and_then(|size| size.as_u64());
    options.generation = Generation {
        temperature: node.get("temperature").and_then(|it| it.as_f64()),
        max_tokens: node.get("max_tokens").and_then(|it| it.as_u64()),
        seed: node.get("seed").and_then(|it| it.as_i64()),
        stop: node.get("stop")?.elements().map(text).collect::<Option<_>>()?,
        // The others are options of the request.
        ..std::mem::take(&mut options.generation)
    };
    node.get("warnings")?.elements().map(|it| Warning::deserialize(it).ok()).collect()
}

fn text(node: Node<'_>) -> Option<String> {
    node.as_str().map(str::to_owned)
}

impl RunOptions {
    /// Returns these options. What they do not set comes from the former run that this one continues.
    #[must_use]
    pub(crate) fn or_former(&self, former: &Self) -> Self {
        Self {
            provider: self.provider.clone().or_else(|| former.provider.clone()),
            model: self.model.clone().or_else(|| former.model.clone()),
            strict: self.strict || former.strict,
            accept: self.accept.or(former.accept),
            escalate: self.escalate || former.escalate,
            timeout: self.timeout.or(former.timeout),
            generation: self.generation.or(&former.generation),
            on_violation: self.on_violation.or(former.on_violation),
            max_attempts: self.max_attempts.or(former.max_attempts),
            instructions: self.instructions.clone().or_else(|| former.instructions.clone()),
            messages: if self.messages.is_empty() { former.messages.clone() } else { self.messages.clone() },
            chunk_type: self.chunk_type.or(former.chunk_type),
            buffer_size: self.buffer_size.or(former.buffer_size),
            evidence: self.evidence.clone().or_else(|| former.evidence.clone()),
            risk: self.risk.or(former.risk),
            max_tool_rounds: self.max_tool_rounds.or(former.max_tool_rounds),
            max_tool_calls: self.max_tool_calls.or(former.max_tool_calls),
            trace_id: self.trace_id.clone().or_else(|| former.trace_id.clone()),
            handoff_to: self.handoff_to.clone().or_else(|| former.handoff_to.clone()),
            caller: former.caller,
            approval: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RunOptions, ErrorBody> {
        RunOptions::read(Value::parse(text).unwrap().node(), &["detach"])
    }

    #[test]
    fn options_read_back_as_written() {
        let text = r#"{"chunk_type":"snapshot","provider":"a,b","model":"m","strict":true,"accept":0.95,"escalate":true,"timeout_ms":1500,"on_violation":"retry","max_attempts":3,"effort":"low","verbosity":"high","service_tier":"flex","ask":"data","evidence":"agreement=3,grounding","risk":"high","max_tool_rounds":2,"max_tool_calls":5,"handoff_to":"coder"}"#;
        assert_eq!(read(text).unwrap().to_json(), text);
        assert_eq!(read("{}").unwrap().to_json(), "{}");
    }

    #[test]
    fn extra_keys_are_skipped_and_unknown_keys_are_rejected() {
        assert!(read(r#"{"detach": 1}"#).is_ok());
        let error = read(r#"{"timeout": 1}"#).unwrap_err();
        assert_eq!(error.code.as_str(), "E1001");
        assert!(error.message.starts_with("_options.timeout: "), "{}", error.message);
        assert_eq!(read(r#"{"modle": 1}"#).unwrap_err().suggestion.unwrap(), "Did you mean `model`?");
    }

    #[test]
    fn invalid_values_are_rejected() {
        let bad = [
            "[]",
            r#"{"timeout_ms": 0}"#,
            r#"{"timeout_ms": -5}"#,
            r#"{"timeout_ms": 1.5}"#,
            r#"{"timeout_ms": 86400001}"#,
            r#"{"timeout_ms": "5"}"#,
            r#"{"max_attempts": 0}"#,
            r#"{"max_attempts": 11}"#,
            r#"{"max_attempts": 1e30}"#,
            r#"{"on_violation": "ignore"}"#,
            r#"{"chunk_type": null}"#,
            r#"{"effort": "extreme"}"#,
            r#"{"verbosity": 3}"#,
            r#"{"service_tier": "default"}"#,
            r#"{"risk": "higher"}"#,
            r#"{"evidence": "agreement=1"}"#,
            r#"{"evidence": ["opinion"]}"#,
            r#"{"evidence": []}"#,
            r#"{"evidence": [1]}"#,
            r#"{"evidence": true}"#,
            r#"{"max_tool_rounds": 0}"#,
            r#"{"max_tool_calls": 1001}"#,
            r#"{"handoff_to": " "}"#,
            r#"{"strict": "yes"}"#,
            r#"{"accept": 1.5}"#,
            r#"{"accept": 0}"#,
            r#"{"accept": "high"}"#,
            r#"{"escalate": "yes"}"#,
            r#"{"model": " "}"#,
            r#"{"provider": ["a"]}"#,
        ];
        for text in bad {
            assert_eq!(read(text).map_err(|error| error.code.to_string()).unwrap_err(), "E1001", "{text}");
        }
    }
}

#[cfg(test)]
mod stored_tests {
    use cog_harmony::Message;
    use cog_json::Value;
    use cog_spec::WarningCode;

    use super::*;

    fn round_trip(options: &RunOptions, warnings: &[Warning]) -> (RunOptions, Vec<Warning>) {
        let mut text = String::new();
        write_stored(&mut Writer::compact(&mut text), options, warnings);
        let mut read_back = RunOptions::default();
        let warnings = read_stored(Value::parse(&text).unwrap().node(), &mut read_back).unwrap();
        (read_back, warnings)
    }

    #[test]
    fn options_read_back_as_written() {
        let generation = Generation {
            temperature: Some(0.25),
            max_tokens: Some(100),
            seed: Some(-7),
            stop: vec!["END".to_owned()],
            ..Generation::default()
        };
        let options = RunOptions {
            owner: Some("token:ada".to_owned()),
            trace_id: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
            instructions: Some("be kind".to_owned()),
            messages: vec![Message::user("2 + 2"), Message::assistant("4")],
            caller: Caller::Agent,
            buffer_size: Some(64),
            approval: Some(Approval { id: "halt_1".to_owned(), decision: Decision::yes() }),
            generation,
            ..RunOptions::default()
        };
        let warnings = [Warning::new(WarningCode::SessionNew, "a new run")];
        let (read_back, warnings_back) = round_trip(&options, &warnings);
        assert_eq!((&read_back.owner, &read_back.trace_id), (&options.owner, &options.trace_id));
        assert_eq!((read_back.caller, read_back.buffer_size), (options.caller, options.buffer_size));
        assert_eq!(read_back.instructions, options.instructions);
        assert_eq!(read_back.messages, options.messages);
        assert_eq!(read_back.approval, options.approval);
        assert_eq!(read_back.generation, options.generation);
        assert_eq!(warnings_back, warnings);
    }

    #[test]
    fn unset_options_stay_unset() {
        let (read_back, warnings) = round_trip(&RunOptions::default(), &[]);
        assert_eq!((read_back.trace_id, read_back.caller), (None, Caller::User));
        assert_eq!((read_back.generation, warnings), (Generation::default(), Vec::new()));
    }
}
