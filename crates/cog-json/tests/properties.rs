//! Properties of every document and every split.

use cog_json::{Deviation, End, Event, EventKind, Limits, Parser, SyntaxError, Tolerance, Value};
use proptest::prelude::*;
use serde_json::Value as Serde;

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strict_accepts_what_serde_json_does_and_numbers_out_of_range(text in nearly_json()) {
        let ours = Value::parse(&text);
        let theirs = serde_json::from_str::<Serde>(&text);
        let is_out_of_range =
            theirs.as_ref().is_err_and(|error| error.to_string().starts_with("number out of range"));
        prop_assert!(ours.is_ok() == theirs.is_ok() || is_out_of_range, "{:?} {:?}", ours, theirs);
        if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
            prop_assert!(is_near(&ours.to_serde(), &theirs), "{ours} {theirs}");
        }
    }

    #[test]
    fn strict_does_not_depend_on_the_split((text, cuts) in (nearly_json(), cuts())) {
        let new = || Parser::strict(Limits::default());
        prop_assert_eq!(outcome(new(), chunks(text.as_bytes(), &cuts)), outcome(new(), [text.as_bytes()]));
    }

    #[test]
    fn tolerant_does_not_depend_on_the_split((text, cuts) in (reply(), cuts())) {
        let new = || Parser::tolerant(Limits::model_output());
        prop_assert_eq!(outcome(new(), chunks(text.as_bytes(), &cuts)), outcome(new(), [text.as_bytes()]));
    }

    #[test]
    fn tolerant_reads_what_strict_reads_without_deviations(text in nearly_json()) {
        let Ok(value) = Value::parse(&text) else { return Ok(()) };
        let outcome = outcome(Parser::tolerant(Limits::model_output()), [text.as_bytes()]);
        prop_assert_eq!(outcome.end, Ok(End::Complete));
        prop_assert_eq!(outcome.draft, Some(value.to_string()));
        prop_assert!(outcome.tolerated.iter().all(|it| it.rule == Tolerance::DuplicateKey) && !outcome.several);
    }

    #[test]
    fn what_is_written_reads_back(value in json()) {
        let ours = Value::from(&value);
        prop_assert_eq!(Value::parse(&ours.to_string()).unwrap(), ours.clone());
        prop_assert_eq!(Value::parse(&format!("{ours:#}")).unwrap(), ours.clone());
        prop_assert_eq!(format!("{ours:#}"), serde_json::to_string_pretty(&value).unwrap());
        prop_assert_eq!(ours.to_serde(), value);
    }

    #[test]
    fn each_draft_is_a_prefix_of_the_next((value, cuts) in (json(), cuts())) {
        let text = value.to_string();
        let mut parser = Parser::strict(Limits::default());
        let mut before = None;
        for chunk in chunks(text.as_bytes(), &cuts) {
            parser.push(chunk, &mut |_| {}).unwrap();
            let draft = parser.root().map(|root| root.to_serde());
            if let (Some(before), Some(draft)) = (&before, &draft) {
                prop_assert!(is_prefix(before, draft), "{before} {draft}");
            }
            before = draft;
        }
        parser.finish(&mut |_| {}).unwrap();
        prop_assert_eq!(parser.root().map(|root| root.to_serde()), Some(value));
    }

    #[test]
    fn paths_in_events_lead_to_their_values(value in json()) {
        let text = value.to_string();
        let mut complete = Vec::new();
        let mut parser = Parser::strict(Limits::default());
        parser.push(text.as_bytes(), &mut |event| {
            if event.kind == EventKind::Complete {
                complete.push((event.path.clone(), event.node.to_serde()));
            }
        }).unwrap();
        for (path, node) in complete {
            prop_assert_eq!(value.pointer(&path.pointer()), Some(&node));
            prop_assert_eq!(path.to_string().parse::<cog_json::Path>(), Ok(path));
        }
    }

    #[test]
    fn truncated_reply_is_never_complete((value, at) in (json(), any::<prop::sample::Index>())) {
        let text = format!("{{\"a\":{value}}}");
        let cut = text.floor_char_boundary(1 + at.index(text.len() - 1));
        let outcome = outcome(Parser::tolerant(Limits::model_output()), [&text.as_bytes()[..cut]]);
        prop_assert_eq!(outcome.end, Ok(End::Truncated));
    }
}

/// Any JSON value.
fn json() -> impl Strategy<Value = Serde> {
    let leaf = prop_oneof![
        Just(Serde::Null),
        any::<bool>().prop_map(Serde::from),
        any::<i64>().prop_map(Serde::from),
        any::<u64>().prop_map(Serde::from),
        (-1e9..1e9_f64).prop_map(Serde::from),
        text().prop_map(Serde::from),
    ];
    leaf.prop_recursive(5, 60, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Serde::from),
            prop::collection::vec((text(), inner), 0..24)
                .prop_map(|members| members.into_iter().collect::<Serde>()),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z]{0,12}", 1 => "[ -~]{0,20}", 1 => "\\PC{0,8}", 1 => "[\\x00-\\x1f\"\\\\/é😀]{0,6}"]
}

/// JSON with a few characters changed, which mostly makes it something else.
fn nearly_json() -> impl Strategy<Value = String> {
    let change = (any::<prop::sample::Index>(), 0..3_u8, prop::sample::select(SCRAPS));
    (json(), any::<bool>(), prop::collection::vec(change, 0..4)).prop_map(|(value, pretty, changes)| {
        let mut text = if pretty { format!("{value:#}") } else { value.to_string() };
        for (at, how, scrap) in changes {
            let from = text.floor_char_boundary(at.index(text.len() + 1));
            let to =
                if how == 0 { from } else { text.ceil_char_boundary((from + how as usize).min(text.len())) };
            text.replace_range(from..to, scrap);
        }
        text
    })
}

/// Replies of models, likely and unlikely.
fn reply() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![nearly_json(), prop::sample::select(SCRAPS).prop_map(str::to_owned)],
        1..6,
    )
    .prop_map(|parts| parts.concat())
}

const SCRAPS: &[&str] = &[
    "",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "'",
    "\\",
    "/",
    "//",
    "/*",
    "*/",
    "#",
    "\n",
    " ",
    "```",
    "```json\n",
    "<think>",
    "</think>",
    "None",
    "True",
    "nul",
    "-",
    "0",
    "1.",
    "e5",
    "1e999",
    "\\u",
    "\\ud83d",
    "\\ude00",
    "\\u00e9",
    "{\"a\":",
    "{'b'",
    "\u{feff}",
    "é",
    "\u{1}",
    "\"a\":1,",
    "*",
    "“a”：",
    "{ok: ",
    "\u{a0}",
    "=>",
    "(",
    ")",
    "# x\n",
    "...",
    "So: ",
    "[THINK]",
    "[/THINK]",
    "◁/think▷",
    "<|channel|>final<|message|>",
    "‘a’",
    "<plan>",
    "</plan>",
    " <b> ",
    "</b> x",
    "<a x=\"1\">",
    "<!--",
    "-->",
    "[NOTES]",
    "[[notes]]",
    "[[/notes]]",
    "<|note|>",
    "<|end_note|>",
    "<|end|>",
    "<|call|>",
    "<|channel|>analysis",
    "<channel|>",
    "<answer>",
    "[API]",
    "(url)",
    "`",
    "<notes>",
    "</notes>",
    "[draft]",
    "[/draft]",
    "</thinking>",
    "<|im_start|>assistant\n",
    "<|im_start|>",
    "user\n",
    "<start_of_turn>model",
    "<end_of_turn>",
    "<|end_header_id|>",
    "assistantfinal",
    "analysis",
    " to=functions.f ",
    "```tool_code\n",
    "✿ARGS✿",
    "< think >",
    "<|b| c>",
    "<｜x",
    "TRUE",
    "+5",
    ".5",
    "5.",
    "\n\"b\": 2",
    "\n c: 3",
    "\\'",
    "\u{200b}",
    "\n",
];

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![Just(vec![1]), prop::collection::vec(1..40_usize, 1..8)]
}

/// The text in chunks of these lengths, over and over.
fn chunks<'a>(mut text: &'a [u8], lengths: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut lengths = lengths.iter().cycle();
    std::iter::from_fn(move || {
        let (chunk, rest) = text.split_at((*lengths.next()?).min(text.len()));
        text = rest;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The result of a run, with texts joined.
#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<String>,
    end: Result<End, SyntaxError>,
    draft: Option<String>,
    tolerated: Vec<Deviation>,
    several: bool,
}

fn outcome<'a>(mut parser: Parser, chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut events = Vec::new();
    let fed =
        chunks.into_iter().try_for_each(|chunk| parser.push(chunk, &mut |event| note(event, &mut events)));
    let end = fed.and_then(|()| parser.finish(&mut |event| note(event, &mut events)));
    let draft = parser.root().map(|root| root.to_string());
    Outcome {
        events,
        end,
        draft,
        tolerated: parser.deviations().to_vec(),
        several: parser.has_second_object(),
    }
}

fn note(event: Event<'_>, events: &mut Vec<String>) {
    match event.kind {
        EventKind::Text { delta, first: false } => {
            events.last_mut().into_iter().for_each(|last| *last += delta);
        }
        EventKind::Complete => events.push(format!("{} complete {}", event.path, event.node)),
        EventKind::Text { delta, .. } => events.push(format!("{} text {delta}", event.path)),
        kind => events.push(format!("{} {kind:?}", event.path)),
    }
}

fn is_prefix(before: &Serde, after: &Serde) -> bool {
    match (before, after) {
        (Serde::String(before), Serde::String(after)) => after.starts_with(before.as_str()),
        (Serde::Array(before), Serde::Array(after)) => {
            before.len() <= after.len() && before.iter().zip(after).all(|(one, other)| is_prefix(one, other))
        }
        (Serde::Object(before), Serde::Object(after)) => {
            before.iter().all(|(key, one)| after.get(key).is_some_and(|other| is_prefix(one, other)))
        }
        (before, after) => before == after,
    }
}

/// Equal but for the last bits of floats, where `serde_json` is not exact.
fn is_near(one: &Serde, other: &Serde) -> bool {
    match (one, other) {
        (Serde::Number(one), Serde::Number(other)) if one != other => match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) => (one - other).abs() <= one.abs() * 1e-15,
            _ => false,
        },
        (Serde::Array(one), Serde::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_near(one, other))
        }
        (Serde::Object(one), Serde::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| other.get(key).is_some_and(|other| is_near(one, other)))
        }
        (one, other) => one == other,
    }
}
