use cog_spec::{PartError, PartReport};

use super::{terminal::Terminal, *};

fn content() -> Content {
    let origin = cog_module::Origin::BuiltIn(cog_module::BuiltinModule::find("code-reviewer").unwrap());
    Content::new(Palette::new(false), &cog_module::load(&origin).unwrap())
}

fn delta(field: &str, delta: &str) -> Chunk {
    Chunk::Delta { seq: 1, field: field.to_owned(), delta: delta.to_owned(), checkpoint: None }
}

fn snapshot(field: Option<&str>, json: &str) -> Chunk {
    Chunk::Snapshot { seq: 1, field: field.map(str::to_owned), data: cog_json::Value::parse(json).unwrap() }
}

fn violation(path: &str, message: &str) -> Chunk {
    Chunk::Progress(Progress {
        percent: 50,
        violation: Some(ViolationNote {
            path: path.to_owned(),
            rule: "enum".to_owned(),
            message: message.to_owned(),
        }),
        ..Progress::default()
    })
}

fn texts(content: &Content, columns: usize, rows: usize) -> Vec<String> {
    content.lines(columns, rows, Duration::from_secs(3)).into_iter().map(|line| line.text).collect()
}

#[test]
fn fields_fill_in_below_title() {
    let mut content = content();
    assert_eq!(
        texts(&content, 80, 24),
        ["code-reviewer 1.0.0 · decision", "⠋ waiting for the first token · 3 s"]
    );
    for chunk in
        [delta("data.verdict", "appr"), delta("data.verdict", "ove"), delta("data.issues[0].title", "No")]
    {
        content.push(&chunk);
    }
    let expected = [
        "code-reviewer 1.0.0 · decision",
        "verdict: approve",
        "issues: 1",
        "  - title: No…",
        "⠋ data.issues[0].title · 9 characters · 3 s",
    ];
    assert_eq!(texts(&content, 80, 24), expected);
}

#[test]
fn violation_is_shown_until_retry() {
    let mut content = content();
    content.push(&delta("data.verdict", "perhaps"));
    content.push(&violation("data.verdict", "is not one of approve, reject"));
    assert_eq!(texts(&content, 80, 24)[2], "  ! is not one of approve, reject");
    content.push(&snapshot(None, "{}"));
    assert_eq!(
        texts(&content, 100, 24)[1],
        "⠋ retrying after data.verdict: is not one of approve, reject · attempt 2 · 3 s"
    );
    assert_eq!(texts(&content, 80, 24).len(), 2);
}

#[test]
fn confidence_and_risk_are_shown_once_known() {
    let mut content = content();
    content.push(&snapshot(Some("meta"), r#"{"confidence": null, "risk": "medium", "explain": "x"}"#));
    assert!(!texts(&content, 80, 24)[0].contains("risk"));
    content.push(&snapshot(Some("meta"), r#"{"confidence": 0.93, "risk": "low", "explain": "x"}"#));
    assert!(texts(&content, 80, 24)[0].ends_with("decision · confidence 0.93 · risk low"));
}

#[test]
fn long_answer_shows_its_end() {
    let mut content = content();
    for line in 0..50 {
        content.push(&delta(&format!("data.lines[{line}]"), &format!("line {line}")));
    }
    let lines = texts(&content, 40, 10);
    assert_eq!(lines.len(), 9);
    assert_eq!((&*lines[1], &*lines[7]), ("⋮ 45 lines above", "  - line 49…"));
}

#[test]
fn view_fits_any_window_size() {
    let mut content = content();
    let text = "一个很长的回答, with a word that is longer than any window: antidisestablishmentarianism\u{1b}[2J\u{202e}";
    content.push(&delta("data.issues[0].\"a long key that is no word at all, really\"", text));
    content
        .push(&delta("data.issues[0].an_even_longer_key_that_is_a_word_but_does_not_fit_anywhere.x", text));
    content.push(&violation("data.issues[0].x", text));
    for columns in [1, 2, 5, 10, 20, 39, 40, 80, 200] {
        for rows in [1, 2, 5, 24] {
            let mut terminal = Terminal::new(columns.max(4), rows.max(4));
            let mut screen = Screen::default();
            let lines = content.lines(columns.max(4), rows.max(4), Duration::ZERO);
            assert!(lines.len() < rows.max(4));
            terminal.write(&screen.show(lines, columns.max(4)));
            terminal.write(&screen.clear(columns.max(4)));
            assert!(terminal.rows().is_empty());
        }
    }
}

fn lines(texts: &[&str]) -> Vec<Line> {
    texts.iter().map(|text| Line { text: (*text).to_owned(), width: crate::output::width(text) }).collect()
}

#[test]
fn frame_replaces_previous_one() {
    let mut terminal = Terminal::new(20, 6);
    let mut screen = Screen::default();
    terminal.write("$ cog run\r\n");
    terminal.write(&screen.show(lines(&["one", "two", "three"]), 20));
    terminal.write(&screen.show(lines(&["one", "2"]), 20));
    assert_eq!(terminal.rows(), ["$ cog run", "one", "2"]);
    terminal.write(&screen.show(lines(&["审查", "2", "three", "four"]), 20));
    assert_eq!(terminal.rows(), ["$ cog run", "审查", "2", "three", "four"]);
}

#[test]
fn unchanged_lines_are_not_written() {
    let mut screen = Screen::default();
    screen.show(lines(&["stays", "goes"]), 20);
    let written = screen.show(lines(&["stays", "comes"]), 20);
    assert!(!written.contains("stays") && written.contains("comes"), "{written:?}");
}

#[test]
fn frame_at_bottom_scrolls_and_preserves_scrollback() {
    let mut terminal = Terminal::new(20, 3);
    let mut screen = Screen::default();
    terminal.write("first\r\nsecond\r\n");
    terminal.write(&screen.show(lines(&["a", "b"]), 20));
    terminal.write(&screen.show(lines(&["a", "b", "c"]), 20));
    assert_eq!(terminal.rows(), ["first", "second", "a", "b", "c"]);
    terminal.write(&screen.clear(20));
    assert_eq!(terminal.rows(), ["first", "second"]);
}

#[test]
fn redraws_over_keystrokes() {
    let mut terminal = Terminal::new(20, 4);
    let mut screen = Screen::default();
    terminal.write(&screen.show(lines(&["one", "two"]), 20));
    terminal.write("^C");
    terminal.write(&screen.show(lines(&["one", "two"]), 20));
    assert_eq!(terminal.cursor(), (1, 3));
    terminal.write(&screen.clear(20));
    assert_eq!(terminal.rows(), Vec::<String>::new());
}

fn status(path: &str, status: PartStatus) -> PartProgress {
    PartProgress { path: path.to_owned(), status: Some(status), ..PartProgress::default() }
}

#[test]
fn shows_what_each_part_does() {
    let mut list = PartList::default();
    list.push(&status("analyse", PartStatus::Waiting));
    list.push(&status("style", PartStatus::Waiting));
    list.push(&status("safety", PartStatus::Running));
    let mut report = PartReport::new("analyse", "analyse", PartStatus::Done);
    report.confidence = Some(0.934);
    list.push(&PartProgress { report: Some(Box::new(report)), ..status("analyse", PartStatus::Done) });
    let delta = Some("12345".to_owned());
    let field = Some("data.x".to_owned());
    list.push(&PartProgress { path: "safety".to_owned(), field, delta, ..PartProgress::default() });
    let expected = ["✓ analyse  confidence 0.93", "· style    waiting", "* safety   data.x · 5 characters"];
    assert_eq!(list.lines('*'), expected);
    let mut report = PartReport::new("style", "style", PartStatus::Failed);
    report.error = Some(PartError { code: "E2002".to_owned(), message: "late\u{1b}".to_owned() });
    list.push(&PartProgress { report: Some(Box::new(report)), ..status("style", PartStatus::Failed) });
    assert_eq!(list.lines('*')[1], "✗ style    E2002: late\u{fffd}");
}

#[test]
fn parts_of_a_part_follow_it() {
    let mut list = PartList::default();
    for path in ["chain", "last", "chain/one", "chain/one/leaf", "chain/two", "chains"] {
        list.push(&status(path, PartStatus::Done));
    }
    let paths: Vec<&str> = list.0.iter().map(|part| part.path.as_str()).collect();
    assert_eq!(paths, ["chain", "chain/one", "chain/one/leaf", "chain/two", "last", "chains"]);
}

#[test]
fn many_parts_are_counted() {
    let mut list = PartList::default();
    (0..100).for_each(|number| list.push(&status(&format!("part-{number}"), PartStatus::Waiting)));
    list.push(&status("part-7", PartStatus::Running));
    assert_eq!(list.lines('*'), ["* part-7   running", "  0 of 100 parts done, 99 waiting"]);
}
