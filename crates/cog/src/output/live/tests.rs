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
