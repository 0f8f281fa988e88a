//! The screen of a review: a title, the lines of a run that fit, and the keys.

use std::fmt::Write as _;

use cog_host::run_log::{Contents, Entry};

use crate::{
    commands::logs::sections,
    output::{Layout, Palette, printable, truncate, width, wrap},
};

/// The rows that are not lines of a run: title, facts, an empty one, the message and the keys.
const FIXED_ROWS: usize = 5;

/// The keys, on the last line.
const KEYS: &str = "r right  w wrong  e edit  s skip  b back  q quit";

/// Where a review is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    /// The index of the run.
    pub(super) run: usize,
    /// The index of the first visible line.
    pub(super) top: usize,
}

impl Position {
    /// Moves the first visible line so that the screen stays full.
    pub(super) fn keep_within(&mut self, page: &Page, rows: usize) {
        self.top = self.top.min(page.lines.len().saturating_sub(page.visible(rows)));
    }
}

/// A run as it is shown.
pub(super) struct Page {
    palette: Palette,
    columns: usize,
    /// `code-reviewer 1.0.0 · 7fk2abcd · 2026-11-30 14:42:19`.
    title: String,
    /// `confidence 0.90 · risk low · openai/gpt-6 · labelled wrong`.
    facts: String,
    lines: Vec<String>,
}

impl Page {
    /// Lays out a run.
    pub(super) fn new(run: &Entry, palette: Palette, columns: usize) -> Self {
        let time = run.time.replace('T', " ");
        let title =
            format!("{} {} · {} · {}", run.module, run.module_version, run.id, time.trim_end_matches('Z'));
        let lines = run.contents.as_ref().map(|contents| lines(run, contents, palette, columns));
        Self {
            palette,
            columns,
            title: printable(&title),
            facts: facts(run),
            lines: lines.unwrap_or_default(),
        }
    }

    /// Returns the number of lines that are visible at once.
    pub(super) fn visible(&self, rows: usize) -> usize {
        rows.saturating_sub(FIXED_ROWS).max(1)
    }

    /// Returns the text that replaces what the terminal shows.
    pub(super) fn screen(&self, position: &Position, runs: usize, message: &str, rows: usize) -> String {
        let visible = self.visible(rows);
        let count = format!("{} of {runs}", position.run + 1);
        let title = truncate(&self.title, self.columns.saturating_sub(width(&count) + 3));
        // Home, and each line erases what was after it: erasing the whole screen first would flicker.
        let mut text = format!("\x1b[H{} · {count}\x1b[K\r\n", self.palette.bold(title));
        let facts = truncate(&self.facts, self.columns);
        let _ = write!(text, "{}\x1b[K\r\n\x1b[K\r\n", self.palette.dim(facts));
        let mut shown = self.lines.iter().skip(position.top).take(visible);
        for _ in 0..visible {
            let line = shown.next().map(String::as_str).unwrap_or_default();
            let _ = write!(text, "{line}\x1b[K\r\n");
        }
        let message = truncate(&printable(message), self.columns);
        let _ = write!(text, "{}\x1b[K\r\n", self.palette.warning(message));
        let left = self.lines.len().saturating_sub(position.top + visible);
        let keys = match left {
            0 => KEYS.to_owned(),
            1 => format!("{KEYS}  ↓ 1 more line"),
            left => format!("{KEYS}  ↓ {left} more lines"),
        };
        let _ = write!(text, "{}\x1b[K\x1b[J", truncate(&keys, self.columns));
        text
    }
}

fn facts(run: &Entry) -> String {
    let mut facts = Vec::new();
    facts.extend(run.code.as_ref().map(|code| format!("failed with {code}")));
    facts.extend(run.confidence.map(|confidence| format!("confidence {confidence:.2}")));
    let meta = run.contents.as_ref().and_then(|contents| contents.envelope.get("meta"));
    facts.extend(meta.and_then(|meta| meta.get_str("risk")).map(|risk| format!("risk {risk}")));
    facts.extend(
        run.passed_gate().map(|passed| if passed { "gate passed" } else { "gate failed" }.to_owned()),
    );
    facts.extend(run.model.clone());
    facts.extend(run.labels.last().map(|last| format!("labelled {}", last.label.as_str())));
    printable(&facts.join(" · "))
}

fn lines(run: &Entry, contents: &Contents, palette: Palette, columns: usize) -> Vec<String> {
    let layout = Layout { palette, width: columns };
    let mut text = String::new();
    if let Some(args) = &contents.args {
        let lines = wrap(args, columns.saturating_sub(2));
        let _ = write!(text, "{}\n  {}\n\n", palette.bold("Text"), lines.join("\n  "));
    }
    let evidence = run.evidence.as_ref().and_then(|evidence| cog_json::to_value(evidence).ok());
    let evidence = evidence.map(|evidence| ("Evidence", evidence));
    let corrected = run.labels.last().and_then(|last| Some(("Corrected answer", last.data.clone()?)));
    for (title, value) in sections(contents).into_iter().chain(corrected).chain(evidence) {
        let _ = write!(text, "{}\n{}\n", palette.bold(title), layout.tree(value.node(), 2));
    }
    text.trim_end().lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn run(input: &str) -> Entry {
        let text = format!(
            r#"{{"id": "7fk2abcd", "time": "2026-11-30T14:42:19Z", "module": "code-reviewer", "module_version": "1.0.0",
            "model": "openai/gpt-6-luna", "ok": true, "time_ms": 1, "usage": null, "confidence": 0.9,
            "evidence": {{"logprob": {{"value": 0.87, "fields": {{"verdict": 0.87}}}}}},
            "contents": {{"input": {{"code": {input}}}, "envelope": {{"ok": true, "meta": {{"risk": "low"}},
            "data": {{"verdict": "approve", "issues": [], "rationale": "Nothing stands out."}}}}}}}}"#
        );
        cog_json::from_value(&Value::parse(&text).unwrap()).unwrap()
    }

    fn shown(page: &Page, top: usize, rows: usize) -> String {
        let mut position = Position { run: 2, top };
        position.keep_within(page, rows);
        let text = page.screen(&position, 12, "6abcdefg: wrong", rows);
        text.replace("\x1b[K", "").replace("\x1b[J", "").replace("\x1b[H", "").replace("\r\n", "\n")
    }

    #[test]
    fn run_fits_into_24_lines_of_80_columns() {
        let page = Page::new(&run("\"let x = 1;\""), Palette::new(false), 80);
        let text = shown(&page, 0, 24);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 24, "{text}");
        assert_eq!(lines[0], "code-reviewer 1.0.0 · 7fk2abcd · 2026-11-30 14:42:19 · 3 of 12");
        assert_eq!(lines[1], "confidence 0.90 · risk low · openai/gpt-6-luna");
        for part in ["Input\n  code: let x = 1;\n", "Answer\n  verdict: approve\n", "Evidence\n  logprob"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(lines[22..], ["6abcdefg: wrong", KEYS]);
    }

    #[test]
    fn long_run_is_scrolled_to_its_last_line_and_no_line_is_too_long() {
        let long = serde_json::json!("line of code with 審查 words ".repeat(200)).to_string();
        let page = Page::new(&run(&long), Palette::new(false), 80);
        for top in [0, 7, 10_000] {
            let text = shown(&page, top, 24);
            assert_eq!(text.lines().count(), 24, "{text}");
            assert!(text.lines().all(|line| width(line) <= 80), "{text}");
        }
        assert!(shown(&page, 0, 24).ends_with("more lines"));
        let end = shown(&page, 10_000, 24);
        assert!(end.ends_with(KEYS) && end.contains("verdict: 0.87"), "{end}");
    }

    #[test]
    fn answer_cannot_move_the_cursor() {
        let page = Page::new(&run(r#""a\u001b[2Jb""#), Palette::new(false), 80);
        assert!(!shown(&page, 0, 24).contains('\x1b'));
    }
}
