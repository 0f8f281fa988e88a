//! Properties of every reply, for any split.

use cog_spec::{Chunk, ChunkType, Dialect, FinishReason, Format, Manifest, OnViolation, Tier};
use proptest::prelude::*;
use serde_json::json;

use crate::{AnswerRules, DataAccumulator, fold, testing::*};

/// JSON of a model, with duplicate keys.
#[derive(Debug, Clone)]
enum Json {
    Scalar(&'static str),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    fn write(&self, out: &mut String) {
        match self {
            Json::Scalar(text) => out.push_str(text),
            Json::Text(text) => out.push_str(&json!(text).to_string()),
            Json::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    out.push_str(&format!("{}: ", json!(key)));
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

fn any_json() -> impl Strategy<Value = Json> {
    let scalars = ["null", "true", "-0", "1.50", "1e3", "{}", "[]", "\"\"", "12345678901234567890123"];
    let leaf = prop_oneof![
        prop::sample::select(scalars.to_vec()).prop_map(Json::Scalar),
        "[a-zé\n\"\\\\🙂 ]{0,12}".prop_map(Json::Text),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array), object(inner)]
    })
}

fn object(inner: impl Strategy<Value = Json> + 'static) -> impl Strategy<Value = Json> {
    let keys = prop::sample::select(vec!["a", "b", "odd key", "ok", "data", "rationale", "risk", "optional"]);
    prop::collection::vec((keys, inner), 0..5).prop_map(Json::Object)
}

fn meta() -> impl Strategy<Value = Json> {
    let confidence = prop::sample::select(vec!["0", "0.3", "0.95", "1", "1.5"]).prop_map(Json::Scalar);
    let risk =
        prop::sample::select(vec!["low", "medium", "strange"]).prop_map(|word| Json::Text(word.to_owned()));
    let explain = "[a ]{0,4}".prop_map(Json::Text);
    (prop::option::of(confidence), prop::option::of(risk), prop::option::of(explain)).prop_map(
        |(one, two, three)| {
            let members = [
                one.map(|it| ("confidence", it)),
                two.map(|it| ("risk", it)),
                three.map(|it| ("explain", it)),
            ];
            Json::Object(members.into_iter().flatten().collect())
        },
    )
}

fn data() -> impl Strategy<Value = Json> {
    (object(any_json()), any::<bool>()).prop_map(|(object, with_rationale)| match object {
        Json::Object(mut members) if with_rationale => {
            members.push(("rationale", Json::Text("Because.".to_owned())));
            Json::Object(members)
        }
        other => other,
    })
}

fn envelope_text() -> impl Strategy<Value = String> {
    let ok = prop_oneof![8 => Just("true"), 1 => Just("false")].prop_map(|ok| ("ok", Json::Scalar(ok)));
    let error = Json::Object(vec![("code", Json::Text("E2006".into())), ("message", Json::Text("x".into()))]);
    let members = (
        prop::collection::vec(ok, 1..3),
        prop::collection::vec(meta().prop_map(|meta| ("meta", meta)), 0..2),
        prop::collection::vec(data().prop_map(|data| ("data", data)), 0..3),
        prop::option::weighted(0.2, prop_oneof![Just(Json::Scalar("null")), Just(error)]),
    );
    let ordered = members.prop_map(|(ok, meta, data, error)| {
        let mut members = [ok, meta, data].concat();
        members.extend(error.map(|error| ("error", error)));
        members
    });
    let ordered = ordered.boxed();
    prop_oneof![ordered.clone(), ordered.prop_shuffle()].prop_map(|members| Json::Object(members).text())
}

/// Returns an envelope one level deeper, as some dialects request it.
fn wrapped(envelope: &str) -> String {
    format!(r#"{{"envelope": {envelope}}}"#)
}

/// Wrappers that are repeated, have siblings, or contain something else.
fn oddly_wrapped() -> impl Strategy<Value = String> {
    let envelopes = (envelope_text(), envelope_text(), 0..6);
    envelopes.prop_map(|(one, two, form)| match form {
        0 => format!(r#"{{"envelope": {one}, "envelope": {two}}}"#),
        1 => format!(r#"{{"envelope": {one}, "more": {two}}}"#),
        2 => format!(r#"{{"envelope": {one}, {}"#, two.trim_start_matches(['{', ' '])),
        3 => format!(r#"{{"envelope": 1, "envelope": {two}}}"#),
        4 => format!(r#"{{"ok": true, "data": {{"rationale": "x"}}, "envelope": {one}}}"#),
        _ => format!(r#"{{"envelope": [{one}]}}"#),
    })
}

fn reply_text() -> impl Strategy<Value = String> {
    let json = prop_oneof![
        4 => envelope_text(),
        2 => envelope_text().prop_map(|text| wrapped(&text)),
        1 => oddly_wrapped(),
        1 => data().prop_map(|data| data.text()),
    ];
    let around = prop::sample::select(vec![
        ("", ""),
        ("Sure:\n```json\n", "\n```"),
        (" \n", "\n"),
        ("<think>{x}</think>", ""),
    ]);
    (json, around).prop_map(|(json, (before, after))| format!("{before}{json}{after}"))
}

/// The parameters of the rules.
#[derive(Debug, Clone)]
struct Setup {
    format: Format,
    tier: Tier,
    dialect: Dialect,
    chunk_type: ChunkType,
    buffer_size: u64,
}

impl Setup {
    fn rules(&self) -> AnswerRules {
        let mut manifest = Manifest::with_defaults("m", self.format, Some(self.tier));
        manifest.responsibility = "Answer".to_owned();
        let data =
            json!({ "type": "object", "properties": { "optional": { "type": "string" }, "a": {}, "b": {} } });
        let mut rules = rules(manifest, &json!({ "data": data }));
        rules.dialect = self.dialect;
        rules.response.chunk_type = self.chunk_type;
        rules.response.buffer_size = self.buffer_size;
        rules
    }
}

fn any_setup() -> impl Strategy<Value = Setup> {
    let format = prop::sample::select(vec![Format::V1, Format::V22, Format::V25]);
    let tier = prop::sample::select(Tier::ALL.to_vec());
    let dialect = prop::sample::select(vec![Dialect::OpenAiStrict, Dialect::Prompt]);
    let chunk_type = prop::sample::select(vec![ChunkType::Delta, ChunkType::Delta, ChunkType::Snapshot]);
    (format, tier, dialect, chunk_type, 0..40_u64).prop_map(
        |(format, tier, dialect, chunk_type, buffer_size)| Setup {
            format,
            tier,
            dialect,
            chunk_type,
            buffer_size,
        },
    )
}

/// Text with anchors, and parts of anchors.
const ANCHORS: [&str; 7] = ["<cite id=\"cit_01\"/>", "<cite ", "<ci", "<", "/>", "é x ", "<b>"];

/// What a module may say of violations, or nothing.
fn any_reaction() -> impl Strategy<Value = Option<OnViolation>> {
    prop::option::of(prop::sample::select(OnViolation::ALL.to_vec()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every stream is in order and adds up to its data (`chunks` checks it), and its fold does not depend on the
    /// split.
    #[test]
    fn the_fold_does_not_depend_on_the_split(setup in any_setup(), text in reply_text(), size in 1..20_usize) {
        let rules = setup.rules();
        let stop = Some(FinishReason::Stop);
        let complete = envelope(fold(chunks(&rules, &text, text.len(), stop.clone())));
        let split = envelope(fold(chunks(&rules, &text, size, stop)));
        prop_assert_eq!(split, complete);
    }

    /// An envelope one level deeper gives the chunks of the envelope itself.
    #[test]
    fn a_wrapped_reply_gives_the_chunks_of_its_envelope(text in envelope_text(), buffer_size in 0..40_u64) {
        let setup = Setup {
            format: Format::V22,
            tier: Tier::Decision,
            dialect: Dialect::OpenAiStrict,
            chunk_type: ChunkType::Delta,
            buffer_size,
        };
        let rules = setup.rules();
        let lines = |text: &str| -> Vec<String> {
            let chunks = chunks(&rules, text, text.len(), Some(FinishReason::Stop));
            chunks.iter().map(cog_json::ToJson::to_json).collect()
        };
        prop_assert_eq!(lines(&wrapped(&text)), lines(&text));
    }

    /// Whatever the split, an anchor of a citation is in one delta, and the deltas give the complete text.
    #[test]
    fn an_anchor_is_never_split(
        parts in prop::collection::vec(prop::sample::select(ANCHORS.to_vec()), 0..12),
        size in 1..20_usize,
        buffer_size in 0..40_u64,
    ) {
        let setup = Setup {
            format: Format::V22,
            tier: Tier::Decision,
            dialect: Dialect::Prompt,
            chunk_type: ChunkType::Delta,
            buffer_size,
        };
        let text = parts.concat();
        let reply = json!({
            "ok": true,
            "meta": { "confidence": 1, "risk": "low", "explain": "x" },
            "data": { "rationale": "x", "a": text },
        });
        let chunks = chunks(&setup.rules(), &reply.to_string(), size, Some(FinishReason::Stop));
        let deltas: Vec<&str> = chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Delta { field, delta, .. } if field == "data.a" => Some(delta.as_str()),
            _ => None,
        }).collect();
        let anchors = |text: &str| text.matches(ANCHORS[0]).count();
        prop_assert_eq!(deltas.concat(), &*text);
        prop_assert_eq!(deltas.iter().map(|delta| anchors(delta)).sum::<usize>(), anchors(&text));
    }

    /// Chunks in any order fold to the same envelope.
    #[test]
    fn the_fold_does_not_depend_on_the_order(setup in any_setup(), text in reply_text()) {
        let rules = setup.rules();
        let chunks = chunks(&rules, &text, 7, Some(FinishReason::Stop));
        let (end, inner) = chunks.split_last().unwrap();
        let turned = inner.iter().rev().chain([end]).cloned();
        prop_assert_eq!(fold(turned), fold(chunks.clone()));
    }

    /// A valid answer that is sent as a reply is unchanged and needs no repair.
    #[test]
    fn repair_is_idempotent(setup in any_setup(), text in reply_text()) {
        let rules = setup.rules();
        let mut first = envelope(fold(chunks(&rules, &text, 64, Some(FinishReason::Stop))));
        if first["ok"] != true {
            return Ok(());
        }
        let again = first.to_string();
        let second = envelope(fold(chunks(&rules, &again, 64, Some(FinishReason::Stop))));
        first["meta"].as_object_mut().unwrap().remove("repairs");
        prop_assert_eq!(second["meta"].get("repairs"), None);
        prop_assert_eq!(&second["meta"], &first["meta"]);
        prop_assert_eq!(&second["data"], &first["data"]);
    }

    /// For every reaction to violations, resumed or truncated, a stream is in order, adds up to its data, and has one
    /// end (`chunks` checks it, also with `verify`). Progress does not change the answer.
    #[test]
    fn every_stream_is_right_whatever_a_violation_does(
        setup in any_setup(),
        text in reply_text(),
        size in 1..20_usize,
        on_violation in any_reaction(),
        (resume_from, is_finished) in (prop::option::of(1..1000_u64), any::<bool>()),
    ) {
        let mut rules = setup.rules();
        rules.response.on_violation = on_violation;
        rules.response.max_attempts = Some(3);
        rules.resume_from = resume_from;
        let reason = is_finished.then_some(FinishReason::Stop);
        let live = envelope(fold(chunks(&rules, &text, size, reason.clone())));
        let attempts = live["meta"]["attempts"].as_u64().unwrap_or(1);
        let is_retried = matches!(on_violation, None | Some(OnViolation::Retry));
        prop_assert!(attempts == 1 || (is_retried && attempts == 3), "{attempts}");
    }

    /// Without a reader the envelope does not change, for every end of the reply.
    #[test]
    fn a_silent_run_gives_the_envelope_of_the_stream(
        setup in any_setup(),
        text in reply_text(),
        (size, cut) in (1..20_usize, prop_oneof![Just(1.0), 0.0..1.0_f64]),
        on_violation in any_reaction(),
        reason in prop::option::of(prop::sample::select(vec![
            FinishReason::Stop,
            FinishReason::Stop,
            FinishReason::Length,
            FinishReason::ContentFilter,
            FinishReason::Refusal(Some("No.".to_owned())),
        ])),
    ) {
        let mut rules = setup.rules();
        rules.response.on_violation = on_violation;
        rules.response.max_attempts = Some(2);
        let text = &text[..text.floor_char_boundary((text.len() as f64 * cut) as usize)];
        let live = envelope(fold(chunks(&rules, text, size, reason.clone())));
        rules.is_streamed = false;
        let silent = run(&rules, text, size, reason);
        prop_assert!(silent.len() <= 3, "the first chunk, the meta of a failure, the end: {silent:?}");
        prop_assert_eq!(envelope(fold(silent)), live);
    }

    /// A truncated reply is never an answer, and its partial data are part of it.
    #[test]
    fn a_cut_reply_is_never_an_answer(setup in any_setup(), text in reply_text(), cut in 0.0..1.0_f64) {
        let rules = setup.rules();
        let end = text.floor_char_boundary((text.len() as f64 * cut) as usize);
        let chunks = chunks(&rules, &text[..end], 5, None);
        prop_assert!(!fold(chunks).is_ok());
    }

    /// The chunks of a failed stream contain its partial data (ruling R43).
    #[test]
    fn partial_data_were_emitted(setup in any_setup(), text in reply_text(), cut in 0.0..1.2_f64) {
        let rules = setup.rules();
        let end = text.floor_char_boundary(((text.len() as f64 * cut) as usize).min(text.len()));
        let chunks = chunks(&rules, &text[..end], 5, Some(FinishReason::Stop));
        let mut streamed = DataAccumulator::default();
        chunks.iter().for_each(|chunk| streamed.apply(chunk));
        let partial = chunks.last().and_then(|end| match end {
            Chunk::Error { partial_data, .. } => partial_data.as_ref().map(cog_json::Value::to_serde),
            _ => None,
        });
        let streamed = streamed.into_data().unwrap_or_else(|| json!({}));
        prop_assert!(partial.is_none_or(|partial| contains(&streamed, &partial)));
    }
}

/// Returns whether a value contains another. Lists from which violating elements were removed are not compared.
fn contains(outer: &serde_json::Value, inner: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Object};
    match (outer, inner) {
        (Object(outer), Object(inner)) => {
            inner.iter().all(|(key, inner)| outer.get(key).is_some_and(|outer| contains(outer, inner)))
        }
        (Array(outer), Array(inner)) if outer.len() == inner.len() => {
            outer.iter().zip(inner).all(|(outer, inner)| contains(outer, inner))
        }
        (Array(outer), Array(inner)) => outer.len() > inner.len(),
        (outer, inner) => outer == inner,
    }
}
