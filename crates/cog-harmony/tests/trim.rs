//! What trimming guarantees, for every history and every limit.

use std::collections::{HashMap, HashSet};

use cog_harmony::{
    Conversation, Detail, Message, Part, Role, TokenCounter, ToolCall, TrimError, TrimReport, is_summary,
    trim_messages,
};
use cog_json::Value;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn result_is_within_the_limit((history, limit) in trimmable()) {
        if let Ok(trimmed) = trim(&history, limit) {
            prop_assert!(trimmed.tokens <= limit, "{} > {limit}", trimmed.tokens);
            prop_assert_eq!(trimmed.tokens, counter().conversation(&trimmed.conversation));
            prop_assert_eq!(trimmed.tokens_before, counter().conversation(&history));
        }
    }

    #[test]
    fn system_messages_last_user_message_and_summaries_stay((history, limit) in trimmable()) {
        let Ok(trimmed) = trim(&history, limit) else { return Ok(()) };
        let last_user = history.0.iter().rfind(|message| message.role == Role::User);
        for message in history.0.iter().filter(|message| message.role == Role::System).chain(last_user) {
            prop_assert_eq!(found(&trimmed, message), Some(message));
        }
        for summary in history.0.iter().filter(|message| is_summary(message)) {
            let texts = |message: &Message| -> Vec<Part> {
                message.content.iter().filter(|part| part.as_text().is_some() && !is_marker(part)).cloned().collect()
            };
            prop_assert_eq!(found(&trimmed, summary).map(texts), Some(texts(summary)));
        }
    }

    #[test]
    fn calls_stay_with_their_results((history, limit) in trimmable()) {
        let Ok(trimmed) = trim(&history, limit) else { return Ok(()) };
        let ids = |conversation: &Conversation| -> (Vec<String>, Vec<String>) {
            let calls = conversation.0.iter().flat_map(|message| &message.tool_calls).map(|call| call.id.clone());
            let results = conversation.0.iter().filter_map(|message| message.tool_call_id.clone());
            (calls.collect(), results.collect())
        };
        let (calls, results) = ids(&trimmed.conversation);
        prop_assert_eq!(calls, results);
    }

    #[test]
    fn messages_keep_their_order_and_change_only_by_markers((history, limit) in trimmable()) {
        let Ok(trimmed) = trim(&history, limit) else { return Ok(()) };
        let mut rest = history.0.iter();
        for message in &trimmed.conversation.0 {
            let before = rest.find(|before| before.id == message.id);
            prop_assert!(before.is_some(), "{:?} is out of order", message.id);
            let before = before.unwrap();
            let unchanged = Message { content: before.content.clone(), ..message.clone() };
            prop_assert_eq!(&unchanged, before);
            prop_assert_eq!(message.content.len(), before.content.len());
            for (now, before) in message.content.iter().zip(&before.content) {
                prop_assert!(now == before || (is_image(before) && is_marker(now)), "{now:?} {before:?}");
            }
        }
    }

    #[test]
    fn oldest_images_go_first_and_all_images_before_any_message((history, limit) in trimmable()) {
        let Ok(trimmed) = trim(&history, limit) else { return Ok(()) };
        let last_user = history.0.iter().rposition(|message| message.role == Role::User);
        let is_droppable = |at: usize| Some(at) != last_user && history.0[at].role != Role::System;
        let mut left = Vec::new();
        for (at, message) in history.0.iter().enumerate().filter(|(at, _)| is_droppable(*at)) {
            let Some(now) = found(&trimmed, message) else { continue };
            let images = message.content.iter().zip(&now.content).filter(|(before, _)| is_image(before));
            left.extend(images.map(|(before, now)| (at, before == now)));
        }
        let first_left = left.iter().position(|(_, is_left)| *is_left).unwrap_or(left.len());
        prop_assert!(left[first_left..].iter().all(|(_, is_left)| *is_left), "{left:?}");
        if trimmed.conversation.0.len() < history.0.len() {
            prop_assert!(left.iter().all(|(_, is_left)| !is_left), "{left:?}");
        }
    }

    #[test]
    fn every_removal_is_reported((history, limit) in trimmable()) {
        let Ok(trimmed) = trim(&history, limit) else { return Ok(()) };
        let ids: HashSet<_> = trimmed.conversation.0.iter().map(|message| &message.id).collect();
        let gone = history.0.iter().enumerate().filter(|(_, message)| !ids.contains(&message.id));
        let gone: HashSet<String> = gone.map(|(at, _)| format!("messages[{at}]")).collect();
        let (parts, messages): (Vec<_>, Vec<_>) = trimmed.removed.iter().partition(|removed| removed.marker.is_some());
        prop_assert_eq!(messages.iter().map(|removed| removed.path.clone()).collect::<HashSet<_>>(), gone);
        let markers: u64 = parts.iter().map(|part| counter().text(part.marker.as_deref().unwrap())).sum();
        let removed: u64 = trimmed.removed.iter().map(|removed| removed.tokens).sum();
        prop_assert_eq!(trimmed.tokens, trimmed.tokens_before - removed + markers);
    }

    #[test]
    fn history_within_the_limit_stays_as_it_is(history in history()) {
        let tokens = counter().conversation(&history);
        let trimmed = trim(&history, tokens).unwrap();
        prop_assert_eq!(&trimmed.conversation, &history);
        prop_assert!(trimmed.removed.is_empty());
    }

    #[test]
    fn trimming_again_changes_nothing((history, limit) in trimmable()) {
        let Ok(trimmed) = trim(&history, limit) else { return Ok(()) };
        let again = trim(&trimmed.conversation, limit).unwrap();
        prop_assert_eq!(again.conversation, trimmed.conversation);
    }

    #[test]
    fn error_has_the_smallest_limit_that_succeeds((history, limit) in trimmable()) {
        let Err(error) = trim(&history, limit) else { return Ok(()) };
        prop_assert!(error.required > limit);
        prop_assert!(error.system + error.last_user + error.summaries <= error.required);
        prop_assert_eq!(trim(&history, error.required).map(|trimmed| trimmed.tokens), Ok(error.required));
        prop_assert!(trim(&history, error.required - 1).is_err());
    }
}

#[test]
fn reply_is_removed_with_its_question() {
    let history = Conversation::new([
        Message::user("a question that is long enough to be removed"),
        Message::assistant("a"),
        Message::user("b"),
        Message::assistant("c"),
        Message::user("d"),
    ]);
    let tokens = counter().conversation(&history);
    let trimmed = trim(&history, tokens - 1).unwrap();
    assert_eq!(trimmed.conversation.0, history.0[2..]);
}

#[test]
fn long_loop_of_tools_is_trimmed_after_the_last_question() {
    let mut messages = vec![Message::user("Fix it.")];
    for round in 0..50 {
        messages.extend(group(round, 2));
    }
    let history = Conversation(messages);
    let trimmed = trim(&history, 500).unwrap();
    assert_eq!(trimmed.conversation.0.first(), history.0.first());
    assert_eq!(trimmed.conversation.0.last(), history.0.last());
    assert!(trimmed.conversation.0.len() > 3 && trimmed.conversation.0.len() % 3 == 1);
}

#[test]
fn error_names_the_counts() {
    let history = Conversation::new([Message::system("You count."), Message::user("a b c")]);
    let error = trim(&history, 5).unwrap_err();
    assert_eq!(error.system + error.last_user + 3, error.required);
    assert!(error.to_string().starts_with("cannot trim to 5 tokens: "), "{error}");
}

#[test]
fn results_that_are_not_behind_their_call_belong_to_it() {
    let [calls, first, second] = group(0, 2).try_into().unwrap();
    let history = Conversation::new([
        Message::user("a"),
        calls,
        second,
        Message::assistant("between"),
        first,
        Message::user("b"),
    ]);
    let trimmed =
        trim(&history, 30.max(counter().conversation(&Conversation::new([Message::user("b")])))).unwrap();
    let has = |role| trimmed.conversation.0.iter().any(|message| message.role == role);
    assert!(!has(Role::Tool) && !trimmed.conversation.0.iter().any(|message| !message.tool_calls.is_empty()));
}

#[test]
fn summary_has_its_name_or_metadata() {
    let named = |name: &str| Message { name: Some(name.to_owned()), ..Message::user("a") };
    let marked = |metadata: &str| Message { metadata: Value::parse(metadata).ok(), ..named("Ada") };
    assert!(is_summary(&named("summary")) && is_summary(&marked(r#"{"summary":true}"#)));
    assert!(!is_summary(&Message::user("a")) && !is_summary(&named("Ada")));
    assert!(!is_summary(&marked(r#"{"summary":false}"#)) && !is_summary(&marked("{}")));
}

#[test]
fn system_message_does_not_separate_a_reply_from_its_question() {
    let question = || Message::user("a question that is long enough to be removed");
    let summary = Message { name: Some("summary".to_owned()), ..Message::user("b") };
    for (between, left) in [(Message::system("b"), 2), (summary, 3)] {
        let history = Conversation::new([question(), between, Message::assistant("c"), Message::user("d")]);
        let trimmed = trim(&history, counter().conversation(&history) - 1).unwrap();
        assert_eq!(trimmed.conversation.messages().len(), left);
    }
}

#[test]
fn images_go_before_other_media() {
    let parts = vec![
        Part::media("application/pdf", "AAAA".repeat(1000)),
        Part::image_at("https://example.com/a.png"),
    ];
    let history = Conversation::new([Message::new(Role::User, parts), Message::user("b")]);
    let trimmed = trim(&history, counter().conversation(&history) - 1).unwrap();
    let kinds: Vec<_> = trimmed.removed.iter().map(|removed| removed.kind).collect();
    assert_eq!(kinds, ["image_url"]);
}

#[test]
fn media_that_cost_no_more_than_their_text_stay() {
    let tokens = counter().text("[file removed: application/pdf]");
    let file = Part::media("application/pdf", "AAAA".repeat(usize::try_from(tokens).unwrap()));
    let mut summary = Message::new(Role::User, vec![file]);
    summary.name = Some("summary".to_owned());
    let history = Conversation::new([summary.clone(), Message::assistant("a"), Message::user("b")]);
    let trimmed = trim(&history, counter().conversation(&history) - 1).unwrap();
    assert_eq!(trimmed.conversation.0, [summary, Message::user("b")]);
}

fn counter() -> TokenCounter {
    TokenCounter::new("gpt-4o")
}

fn trim(history: &Conversation, limit: u64) -> Result<TrimReport, TrimError> {
    trim_messages(history.clone(), limit, &counter())
}

fn found<'a>(trimmed: &'a TrimReport, message: &Message) -> Option<&'a Message> {
    let by_id: HashMap<_, _> = trimmed.conversation.0.iter().map(|message| (&message.id, message)).collect();
    by_id.get(&message.id).copied()
}

fn is_image(part: &Part) -> bool {
    matches!(part, Part::Image(_))
}

fn is_marker(part: &Part) -> bool {
    part.as_text().is_some_and(|text| text.starts_with("[image removed: "))
}

fn trimmable() -> impl Strategy<Value = (Conversation, u64)> {
    history().prop_flat_map(|history| {
        let tokens = counter().conversation(&history);
        (Just(history), 0..=tokens)
    })
}

fn history() -> impl Strategy<Value = Conversation> {
    prop::collection::vec(unit(), 0..12).prop_map(|units| {
        let mut messages: Vec<Message> = Vec::new();
        for (at, unit) in units.into_iter().enumerate() {
            let unit = match unit {
                Unit::Messages(unit) => unit,
                Unit::Calls(calls) => group(at, calls),
            };
            messages.extend(unit);
        }
        for (at, message) in messages.iter_mut().enumerate() {
            message.id = Some(format!("msg_{at}"));
        }
        Conversation(messages)
    })
}

#[derive(Debug, Clone)]
enum Unit {
    Messages(Vec<Message>),
    Calls(usize),
}

fn unit() -> impl Strategy<Value = Unit> {
    let message =
        (prop::sample::select(&[Role::User, Role::Assistant][..]), prop::collection::vec(part(), 1..4));
    let one = |message: Message| Unit::Messages(vec![message]);
    prop_oneof![
        6 => message.prop_map(move |(role, parts)| one(Message::new(role, parts))),
        1 => "[a-z ]{0,60}".prop_map(move |text| one(Message::system(text))),
        1 => prop::collection::vec(part(), 1..3).prop_map(move |parts| {
            one(Message { name: Some("summary".to_owned()), ..Message::new(Role::User, parts) })
        }),
        2 => (1usize..4).prop_map(Unit::Calls),
    ]
}

fn part() -> impl Strategy<Value = Part> {
    let image = (0u32..3000, prop::sample::select(&[None, Some(Detail::Low), Some(Detail::High)][..]));
    prop_oneof![
        2 => "[a-zé字 ]{0,80}".prop_map(Part::text),
        1 => image.prop_map(|(number, detail)| {
            let mut part = Part::image_at(format!("https://example.com/{number}.png?X-Signature=abc"));
            if let Part::Image(image) = &mut part {
                image.detail = detail;
            }
            part
        }),
    ]
}

/// A message with calls, and its results.
fn group(at: usize, calls: usize) -> Vec<Message> {
    let ids: Vec<String> = (0..calls).map(|call| format!("call_{at}_{call}")).collect();
    let call = |id: &String| ToolCall {
        id: id.clone(),
        name: "search".to_owned(),
        arguments: r#"{"q":"a"}"#.to_owned(),
        ..ToolCall::default()
    };
    let calling =
        Message { tool_calls: ids.iter().map(call).collect(), ..Message::new(Role::Assistant, Vec::new()) };
    let result = |id: String| Message {
        tool_call_id: Some(id),
        ..Message::new(Role::Tool, vec![Part::text(r#"{"status":"success","results":[]}"#)])
    };
    std::iter::once(calling).chain(ids.into_iter().map(result)).collect()
}
