//! What a message contains, a line for each part.

use cog_harmony::timeline::{Content, Entry};

use crate::{
    commands::trace::words::{short, without_status},
    output::{Palette, printable, truncate, width},
};

/// The maximum number of parts of a message that are shown.
const MAX_PARTS: usize = 20;

/// Returns the lines, each within `columns`.
pub(super) fn contents(entry: &Entry<'_>, palette: Palette, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = entry
        .content
        .iter()
        .take(MAX_PARTS)
        .map(|content| Line::new(content, entry.is_answer).draw(palette, columns))
        .collect();
    let more = entry.content.len().saturating_sub(MAX_PARTS);
    if more > 0 {
        lines.push(palette.dim(truncate(&format!("… {more} more parts"), columns)));
    }
    if !entry.flagged.is_empty() {
        let flags = printable(&entry.flagged.join(", ").replace('\n', " "));
        lines.push(palette.error(truncate(&format!("flagged: {flags}"), columns)));
    }
    lines
}

/// The parts of a line: only the text is truncated before the note.
struct Line<'a> {
    /// What it is: `→`, `answer`.
    kind: &'a str,
    style: Style,
    /// A name.
    head: &'a str,
    text: &'a str,
    /// What is wrong.
    note: &'static str,
}

#[derive(Clone, Copy)]
enum Style {
    Plain,
    Good,
    Halted,
    Bad,
}

impl<'a> Line<'a> {
    fn new(content: &'a Content<'_>, is_answer: bool) -> Self {
        let line = |kind, style, head, text| Line { kind, style, head, text, note: "" };
        match content {
            Content::Text { text } if is_answer => line("answer", Style::Good, "", text),
            Content::Text { text } => line("", Style::Plain, "", text),
            Content::Refusal { text } => line("refusal", Style::Bad, "", text),
            Content::Media { kind, description } => line("+", Style::Plain, kind, description),
            Content::Native { provider } => line("+", Style::Plain, "part of", provider),
            Content::ToolCall { name, arguments, has_result, .. } => {
                let note = if *has_result { "" } else { "no result" };
                Line { note, ..line("→", Style::Plain, name, arguments) }
            }
            Content::ToolResult { status, text, .. } => {
                let status = status.as_deref();
                let text = without_status(text, status);
                line("←", style_of(status), status.unwrap_or("result"), text)
            }
            _ => line("", Style::Plain, "", ""),
        }
    }

    fn draw(&self, palette: Palette, columns: usize) -> String {
        let mut left = columns;
        let mut words = Vec::new();
        let note = if self.note.is_empty() { 0 } else { width(self.note) + 1 };
        let styled = |text: &str| match self.style {
            Style::Plain => palette.bold(text),
            Style::Good => palette.success(text),
            Style::Halted => palette.warning(text),
            Style::Bad => palette.error(text),
        };
        for (text, is_head) in [(self.kind, true), (self.head, true), (self.text, false)] {
            let space = left.saturating_sub(note + usize::from(!words.is_empty()));
            let text = short(text, space);
            if !text.is_empty() && space > 0 {
                left = left.saturating_sub(width(&text) + usize::from(!words.is_empty()));
                words.push(if is_head { styled(&text) } else { text });
            }
        }
        words.extend(Some(palette.warning(self.note)).filter(|_| note > 0 && note <= columns));
        words.join(" ")
    }
}

fn style_of(status: Option<&str>) -> Style {
    match status {
        Some("success") => Style::Good,
        Some("halted") => Style::Halted,
        Some("error") => Style::Bad,
        _ => Style::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_in_any_width() {
        let name = "审查".repeat(30);
        let call = Content::ToolCall { id: "a", name: &name, arguments: "{\"q\": 1}", has_result: false };
        for columns in 0..100 {
            let line = Line::new(&call, false).draw(Palette::new(false), columns);
            assert!(width(&line) <= columns, "{columns}: {line}");
        }
        let line = Line::new(&call, false).draw(Palette::new(false), 90);
        assert!(line.ends_with(" no result"), "{line}");
    }
}
