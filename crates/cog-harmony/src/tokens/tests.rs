use super::*;
use crate::Detail;

const PIXEL: &str = "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==";

fn image(url: &str, detail: Option<Detail>) -> Part {
    let mut part = Part::image_at(url);
    if let Part::Image(image) = &mut part {
        image.detail = detail;
    }
    part
}

#[test]
fn message_has_the_tokens_of_its_parts_and_its_frame() {
    let counter = TokenCounter::new("gpt-4o");
    let text = "You count words.";
    let message = Message::system(text);
    assert_eq!(counter.message(&message).total, MESSAGE + counter.text(text));
    let named = Message { name: Some("Ada".to_owned()), ..message.clone() };
    assert_eq!(counter.message(&named).total, MESSAGE + counter.text(text) + NAME + counter.text("Ada"));
    let name = "search".to_owned();
    let arguments = r#"{"q":1}"#.to_owned();
    let call = ToolCall { id: "call_1".to_owned(), name, arguments, ..ToolCall::default() };
    let calling = Message { tool_calls: vec![call], ..Message::assistant("") };
    let expected = MESSAGE + CALL + counter.text("search") + counter.text(r#"{"q":1}"#);
    assert_eq!(counter.message(&calling).total, expected);
    let conversation = Conversation::new([message.clone(), message.clone()]);
    assert_eq!(counter.conversation(&conversation), REPLY + 2 * counter.message(&message).total);
}

#[test]
fn images_count_by_detail_and_size() {
    let counter = TokenCounter::new("gpt-4o");
    let parts = vec![
        image(PIXEL, Some(Detail::Low)),
        image("https://example.com/a.png", Some(Detail::Low)),
        image(PIXEL, None),
        image("https://example.com/a.png", Some(Detail::High)),
    ];
    let counts: Vec<_> = parts.iter().map(|part| counter.part(part).tokens).collect();
    assert_eq!(counts, [85, 85, 255, 1445]);
    let counted = counter.message(&Message::new(crate::Role::User, parts));
    assert_eq!((counted.images, counted.image_tokens), (4, 85 + 85 + 255 + 1445));
    assert_eq!(counted.estimates, [Estimate::ImageSize]);
    let low = counter.part(&image("https://example.com/a.png", Some(Detail::Low)));
    assert_eq!(low.estimate, None, "low detail has the same tokens for every size");
}

#[test]
fn media_of_unknown_size_count_the_maximum_or_nothing() {
    for part in [
        image("https://example.com/a.png", None),
        Part::media("audio/mpeg", "AAAA".repeat(1000)),
        Part::media("application/pdf", "AAAA".repeat(1000)),
    ] {
        let high = TokenCounter::new("").part(&part);
        let low = TokenCounter::at_least("").part(&part);
        assert!(high.tokens > 100 && high.estimate.is_some(), "{part:?}");
        assert_eq!((low.tokens, low.estimate), (0, high.estimate), "{part:?}");
    }
}

#[test]
fn reasoning_counts_by_its_json() {
    let reasoning = Reasoning {
        provider: "openai".to_owned(),
        items: vec![cog_json::Value::parse(r#"{"encrypted":"x"}"#).unwrap()],
    };
    let message = Message { reasoning: Some(reasoning), ..Message::assistant("a") };
    let counted = TokenCounter::new("gpt-4o").message(&message);
    assert_eq!(counted.estimates, [Estimate::Native]);
    assert!(counted.total > TokenCounter::new("gpt-4o").message(&Message::assistant("a")).total);
}

#[test]
fn upper_bound_is_at_least_the_lower_bound() {
    for text in ["", "a", "The quick brown fox", "審査する", "\u{0}\u{7f}", "1234567890"] {
        for model in ["gpt-4o", "claude-sonnet-5-5", "unknown"] {
            let high = TokenCounter::new(model).text(text);
            let low = TokenCounter::at_least(model).text(text);
            assert!(low <= high && high <= text.len() as u64, "{model} {text}: {low} to {high}");
        }
    }
}

#[test]
fn lower_bound_of_a_definition_has_its_names_and_descriptions() {
    let schema = r#"{"type":"object","required":["city"],"properties":{"city":{"type":"string","description":"The name of the city."}},"anyOf":[{"description":"Any."}]}"#;
    let tool = ToolDefinition {
        name: "weather".to_owned(),
        description: "Returns the weather of a city.".to_owned(),
        parameters: cog_json::Value::parse(schema).unwrap(),
        strict: true,
    };
    let lower = TokenCounter::at_least("gpt-4o");
    let upper = TokenCounter::new("gpt-4o");
    let texts = ["weather", "Returns the weather of a city.", "city", "The name of the city.", "Any."];
    assert_eq!(lower.definition(&tool), texts.iter().map(|text| lower.text(text)).sum::<u64>());
    let texts = ["weather", "Returns the weather of a city.", schema];
    assert_eq!(upper.definition(&tool), texts.iter().map(|text| upper.text(text)).sum::<u64>());
}

#[test]
fn estimates_and_tokenizers_are_described() {
    let estimates = [Estimate::ImageSize, Estimate::AudioLength, Estimate::File, Estimate::Native];
    let texts: std::collections::HashSet<_> = estimates.iter().map(|estimate| estimate.as_str()).collect();
    assert_eq!(texts.len(), estimates.len());
    let names = ["gpt-4o", ""].map(|model| TokenCounter::new(model).tokenizer());
    let expected = ["o200k_base", "the tokenizer of 8 that counts most"];
    assert_eq!(names, if cfg!(feature = "tokenizers") { expected } else { ["bytes"; 2] });
    assert_eq!(TokenCounter::new("gpt-4o").is_exact(), cfg!(feature = "tokenizers"));
    assert!(!TokenCounter::new("").is_exact());
}

#[test]
fn names_have_the_facts_of_their_family() {
    for (name, tokenizer, images) in [
        ("gpt-4o-mini", Some("o200k_base"), OPENAI),
        ("openai/gpt-oss-120b", Some("o200k_base"), OPENAI),
        ("ft:gpt-3.5-turbo:acme", Some("cl100k_base"), OPENAI),
        ("gpt-6-luna", None, OPENAI),
        ("claude-sonnet-5-5", None, CLAUDE),
        ("claude-opus-4-1", None, CLAUDE_BEFORE_4_7),
        ("anthropic/claude-opus-4.7", None, CLAUDE),
        ("gemini-2.5-flash", None, GEMINI_2),
        ("gemini-3.8-flash", None, GEMINI),
        ("Qwen/Qwen3-32B", Some("qwen2"), UNKNOWN),
        ("Qwen/Qwen3.5-9B", None, UNKNOWN),
        ("meta-llama/Llama-3.3-70B", Some("llama3"), UNKNOWN),
        ("my-model", None, UNKNOWN),
        ("", None, UNKNOWN),
    ] {
        let facts = find(name);
        assert_eq!((facts.tokenizer, facts.images), (tokenizer, images), "{name}");
    }
}
