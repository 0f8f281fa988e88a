//! Input made to cost time, memory or stack. Anything quadratic here would take minutes.

use cog_json::{End, Limits, Parser, SyntaxError, Value};

const SIZE: usize = 400_000;

#[test]
fn unclosed_brackets() {
    for opening in ["[", "{\"a\":", "[{\"a\":"] {
        let text = opening.repeat(SIZE / opening.len());
        assert!(Value::parse(&text).is_err());
        assert!(read(&text).is_err());
    }
}

#[test]
fn prose_full_of_false_starts() {
    for scrap in [
        "{ ",
        "[ ",
        "{\"",
        "{'",
        "{\"a\"",
        "{\"a' ",
        "{'a\" ",
        "{/*",
        "{\"a\"/*",
        "[/*",
        "{//",
        "{\"a\"//\n",
        "{\\\"",
        "{\"\\",
        "<think>",
        "</think>",
        "```",
        "```json\n",
        "{}",
        "[]",
        "[1] ",
        "{[",
        "[{",
        "{ \"a\" ; ",
        "/*",
        "'",
        "\"",
        "{#",
        "{ #\n",
        "{“",
        "{a: ",
        "{,",
        "[\"[\"]",
        "{a = ",
        "(",
        "\"k\": ",
        "So: {\"a\":1}</think>",
        "{\"a\":1}</think>",
        "<a x=\"",
        "<a ",
        "<plan>",
        "</plan>",
        " <b> c",
        "x </b> c",
        "<|",
        "<|channel|>x",
        "<|x|>",
        "[[notes]]",
        "[[",
        "[A",
        "<!--",
        "◁x▷",
        "{\"a\":1}</plan>",
    ] {
        let text = scrap.repeat(SIZE / scrap.len());
        let outcome = read(&text);
        assert!(!matches!(outcome, Ok((End::Complete, _))), "{scrap}");
        let found = read(&format!("{text}\n\"'*/”</think> {{\"a\":1}}"));
        assert!(found.is_err() || found.is_ok_and(|(_, draft)| draft.is_some()), "{scrap}");
    }
}

#[test]
fn many_duplicate_keys() {
    let same = format!("{{{}\"k\":0}}", "\"k\":[1],".repeat(SIZE / 8));
    assert_eq!(Value::parse(&same).unwrap().to_string(), "{\"k\":0}");
    let many = (0..40_000).map(|at| format!("\"k{}\":{at},", at % 20_000)).collect::<String>();
    let value = Value::parse(&format!("{{{many}\"k\":0}}")).unwrap();
    assert_eq!((value.node().len(), value.get("k7").unwrap().as_u64()), (20_001, Some(20_007)));
}

#[test]
fn long_tokens_in_small_chunks() {
    for text in [
        format!("[{}]", "9".repeat(300)),
        format!("[0.{}]", "1".repeat(SIZE)),
        format!("[1{}]", "0".repeat(SIZE)),
        format!("[\"{}\"]", "\\u00e9".repeat(SIZE / 6)),
        format!("[\"{}\"]", "😀".repeat(SIZE / 4)),
        format!("{{\"{}\":1}}", "k".repeat(SIZE)),
        format!("[{}1]", " \n".repeat(SIZE / 2)),
        format!("[{}]", "[],".repeat(SIZE / 3) + "0"),
    ] {
        let (end, draft) = read(&text).unwrap();
        assert_eq!((end, draft.map(|it| it.is_complete)), (End::Complete, Some(true)));
    }
    let comments = format!("{{\"a\":1 {}}}", "/* * */ ".repeat(SIZE / 8));
    assert!(matches!(read(&comments), Ok((End::Complete, _))));
}

#[test]
fn depth_without_recursion() {
    let depth = 200_000;
    let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let limits = Limits::unbounded();
    let value = Value::parse_within(text.as_bytes(), limits).unwrap();
    assert_eq!(value.to_string(), text);
    assert_eq!(value, Value::parse_within(text.as_bytes(), limits).unwrap());
    drop(value);
}

#[test]
fn the_ledger_does_not_grow_with_the_reply() {
    let key = "k".repeat(2000);
    let text = format!("{{'{key}':{{'a':[{}]}}}}", "'x', None,\n".repeat(SIZE / 11));
    let mut parser = Parser::tolerant(Limits::model_output());
    parser.push(text.as_bytes(), &mut |_| {}).unwrap();
    parser.finish(&mut |_| {}).unwrap();
    assert!(parser.deviations().len() < 64);
    assert!(parser.deviations().iter().all(|it| it.path.len() < 2000));
}

#[derive(Debug)]
struct Draft {
    is_complete: bool,
}

/// Reads a reply in chunks of 16 bytes.
fn read(text: &str) -> Result<(End, Option<Draft>), SyntaxError> {
    let mut parser = Parser::tolerant(Limits::model_output());
    text.as_bytes().chunks(16).try_for_each(|chunk| parser.push(chunk, &mut |_| {}))?;
    let end = parser.finish(&mut |_| {})?;
    Ok((end, parser.root().map(|root| Draft { is_complete: root.is_complete() })))
}

#[test]
fn single_quoted_strings_in_one_chunk() {
    let text = format!("{{'a':[{}]}}", "'a',".repeat(200_000));
    let mut parser = Parser::tolerant(Limits::model_output());
    parser.push(text.as_bytes(), &mut |_| {}).unwrap();
    assert_eq!(parser.finish(&mut |_| {}), Ok(End::Complete));
}

#[test]
fn many_marks_in_one_chunk() {
    let size = 2 * SIZE;
    for (lead, scrap) in [
        ("", "So: {\"a\":1}</think>"),
        ("", "```{\"a\":1}</think>"),
        ("", "x [1, {\"a\":1}]</think>"),
        ("", "\"x\" {\"a\":1}</think>\n"),
        (" ", "{\"a\":1}</think>"),
        (" ", "</think>"),
        ("\"", "</think>"),
        ("x", "<a>x</a>"),
    ] {
        let lead = if lead == "x" { lead.repeat(size) + "\n{\"a\":1}" } else { lead.repeat(size) };
        let text = lead + &scrap.repeat(size / scrap.len());
        let mut parser = Parser::tolerant(Limits::model_output());
        let read = parser.push(text.as_bytes(), &mut |_| {}).and_then(|()| parser.finish(&mut |_| {}));
        assert_eq!(read.is_ok(), text.starts_with('x') && scrap.starts_with("<a>"), "{scrap}: {read:?}");
    }
}
