//! `cog trace`: the messages of a run as a timeline.

mod entry;
mod html;

use std::path::Path;

use cog_harmony::{
    Conversation,
    timeline::{Content, Entry, Timeline},
};
use cog_json::ToJson as _;
use cog_spec::Code;

use self::entry::{Bar, author, cost, counted, duration, facts, short, tokens, without_status};
use super::{emit, messages};
use crate::{
    args::{TraceArgs, TraceCommand, TraceFormat, TraceShowArgs},
    error::{CliError, Exit},
    output::{Console, Palette, printable, truncate, width, wrap},
};

/// Runs the subcommand.
pub(crate) fn trace(args: &TraceArgs, console: &Console) -> Result<Exit, CliError> {
    match &args.command {
        TraceCommand::Show(args) => show(args, console),
    }
}

/// Draws the timeline of a trace.
fn show(args: &TraceShowArgs, console: &Console) -> Result<Exit, CliError> {
    emit::check(args.output.as_deref())?;
    let conversation = read(&args.file)?;
    let timeline = Timeline::new(&conversation);
    let file = args.output.as_deref().filter(|path| !emit::is_stdout(path));
    let out = console.out();
    let text = match args.format {
        TraceFormat::Text if file.is_some() => draw(&timeline, Palette::new(false), console.width()),
        TraceFormat::Text => draw(&timeline, out.palette, console.width()),
        TraceFormat::Json if file.is_none() && out.is_terminal => timeline.to_json_pretty(),
        TraceFormat::Json => timeline.to_json(),
        TraceFormat::Html => html::page(&timeline, &args.file),
    };
    messages::write(&text, file, console)?;
    Ok(Exit::Ok)
}

fn read(file: &Path) -> Result<Conversation, CliError> {
    let document = messages::read(file).map_err(advised)?;
    document.messages().map_err(|problem| advised(messages::unreadable(file, &problem)))?;
    messages::conversation(&document, file)
}

/// Adds how a trace is written to the error of a file that contains no messages.
fn advised(error: CliError) -> CliError {
    match error {
        CliError::Body(body) if body.code == Code::ParseError.into() => {
            CliError::from(body.suggest("Write a trace with `cog run MODULE --trace FILE`."))
        }
        error => error,
    }
}

// The timeline as text.

/// Draws the timeline in this many columns.
fn draw(timeline: &Timeline<'_>, palette: Palette, columns: usize) -> String {
    let rows: Vec<Row> = timeline.messages.iter().map(Row::new).collect();
    let total = Row::total(timeline);
    let layout = Layout::new(rows.iter().chain([&total]), palette, columns);
    let span = timeline.totals.duration_ms.unwrap_or_default();
    let mut text = layout.header(span);
    for (row, entry) in rows.iter().zip(&timeline.messages) {
        text += &layout.row(row, &Bar::new(entry, span, layout.bar));
        contents(entry, palette, layout.rest()).iter().for_each(|line| text += &layout.indented(line));
    }
    text + "\n" + &layout.row(&total, &Bar::default()) + &footer(timeline, &layout)
}

/// The totals in words, and what the bars mean.
fn footer(timeline: &Timeline<'_>, layout: &Layout) -> String {
    let palette = layout.palette;
    let mut text = String::new();
    for (title, fact) in facts(&timeline.totals) {
        let mut lines = wrap(&fact, layout.rest().saturating_sub(TITLE)).into_iter();
        let first = lines.next().unwrap_or_default();
        text += &layout.indented(&format!("{}{first}", palette.dim(format_args!("{title:<TITLE$}"))));
        lines.for_each(|line| text += &layout.indented(&format!("{:TITLE$}{line}", "")));
    }
    if layout.bar > 0 && timeline.messages.iter().any(|entry| entry.first_token_ms.is_some()) {
        let legend = wrap("bars: ░ until the first token, █ after it", layout.rest());
        legend.iter().for_each(|line| text += &layout.indented(&palette.dim(line)));
    }
    text
}

/// The columns of the title of a fact.
const TITLE: usize = 8;

/// The cells of a message.
struct Row {
    index: String,
    author: String,
    /// Time, input, output and cost.
    figures: [String; 4],
}

impl Row {
    fn new(entry: &Entry<'_>) -> Self {
        let time = entry.duration_ms.map(duration).unwrap_or_default();
        let [input, output, cost] = match &entry.usage {
            Some(usage) => [tokens(usage.input_tokens), tokens(usage.output_tokens), cost(usage.cost_usd)],
            None => Default::default(),
        };
        let author = printable(&author(entry).replace('\n', " "));
        Self { index: entry.index.to_string(), author, figures: [time, input, output, cost] }
    }

    fn total(timeline: &Timeline<'_>) -> Self {
        let totals = &timeline.totals;
        let time = totals.duration_ms.map(duration).unwrap_or_default();
        let [input, output, cost] = match totals.replies {
            0 => Default::default(),
            _ => [tokens(totals.input_tokens), tokens(totals.output_tokens), cost(totals.cost_usd)],
        };
        let author = counted(totals.messages, "message");
        Self { index: String::new(), author, figures: [time, input, output, cost] }
    }
}

/// The maximum number of parts of a message that are shown.
const MAX_PARTS: usize = 20;

/// Returns the lines, each within `columns`.
fn contents(entry: &Entry<'_>, palette: Palette, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = entry
        .content
        .iter()
        .take(MAX_PARTS)
        .map(|content| ContentLine::new(content, entry.is_answer).draw(palette, columns))
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
struct ContentLine<'a> {
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

impl<'a> ContentLine<'a> {
    fn new(content: &'a Content<'_>, is_answer: bool) -> Self {
        match content {
            Content::Text { text } if is_answer => Self::without_note("answer", Style::Good, "", text),
            Content::Text { text } => Self::without_note("", Style::Plain, "", text),
            Content::Refusal { text } => Self::without_note("refusal", Style::Bad, "", text),
            Content::Media { kind, description } => Self::without_note("+", Style::Plain, kind, description),
            Content::Native { provider } => Self::without_note("+", Style::Plain, "part of", provider),
            Content::ToolCall { name, arguments, has_result, .. } => {
                let note = if *has_result { "" } else { "no result" };
                Self { note, ..Self::without_note("→", Style::Plain, name, arguments) }
            }
            Content::ToolResult { status, text, .. } => {
                let status = status.as_deref();
                let text = without_status(text, status);
                Self::without_note("←", style_of(status), status.unwrap_or("result"), text)
            }
            _ => Self::without_note("", Style::Plain, "", ""),
        }
    }

    fn without_note(kind: &'a str, style: Style, head: &'a str, text: &'a str) -> Self {
        Self { kind, style, head, text, note: "" }
    }

    fn draw(&self, palette: Palette, columns: usize) -> String {
        let mut left = columns;
        let mut words = Vec::new();
        let note = if self.note.is_empty() { 0 } else { width(self.note) + 1 };
        for (text, is_head) in [(self.kind, true), (self.head, true), (self.text, false)] {
            let space = left.saturating_sub(note + usize::from(!words.is_empty()));
            let text = short(text, space);
            if !text.is_empty() && space > 0 {
                left = left.saturating_sub(width(&text) + usize::from(!words.is_empty()));
                words.push(if is_head { self.style.apply(palette, &text) } else { text });
            }
        }
        words.extend(Some(palette.warning(self.note)).filter(|_| note > 0 && note <= columns));
        words.join(" ")
    }
}

impl Style {
    fn apply(self, palette: Palette, text: &str) -> String {
        match self {
            Style::Plain => palette.bold(text),
            Style::Good => palette.success(text),
            Style::Halted => palette.warning(text),
            Style::Bad => palette.error(text),
        }
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

/// The minimum columns of a bar. In a narrower terminal there are none, and the figures have a line of their own.
const MIN_BAR: usize = 10;
/// The columns of a bar that the names of authors leave.
const BAR: usize = 20;
/// The columns between two cells.
const GAP: usize = 2;
const AUTHOR: &str = "MESSAGE";
const FIGURES: [&str; 4] = ["TIME", "INPUT", "OUTPUT", "COST"];

/// The columns of the timeline.
struct Layout {
    palette: Palette,
    /// The columns of a bar; 0 if there are none.
    bar: usize,
    columns: usize,
    index: usize,
    author: usize,
    figures: [usize; 4],
}

impl Layout {
    fn new<'a>(rows: impl Iterator<Item = &'a Row>, palette: Palette, columns: usize) -> Self {
        let mut index = 1;
        let mut author = AUTHOR.len();
        let mut figures = FIGURES.map(str::len);
        for row in rows {
            index = index.max(row.index.len());
            author = author.max(width(&row.author));
            for (widest, cell) in figures.iter_mut().zip(&row.figures) {
                *widest = width(cell).max(*widest);
            }
        }
        let fixed = index + 2 * GAP + figures.iter().map(|columns| columns + GAP).sum::<usize>();
        let author = author.min(columns.saturating_sub(fixed + BAR).max(AUTHOR.len()));
        let bar = Some(columns.saturating_sub(fixed + author)).filter(|bar| *bar >= MIN_BAR);
        Self { palette, bar: bar.unwrap_or_default(), columns, index, author, figures }
    }

    /// The titles of the columns, and the axis of the bars; nothing without bars.
    fn header(&self, span: u64) -> String {
        if self.bar == 0 {
            return String::new();
        }
        let end = duration(span);
        let space = self.bar.saturating_sub(width(&end) + 1);
        let axis = if span > 0 { format!("0{}{end}", " ".repeat(space)) } else { " ".repeat(self.bar) };
        let line = self.line("#", &self.padded(AUTHOR), &axis, &FIGURES);
        format!("{}\n", self.palette.dim(line))
    }

    /// The line of a message, or two lines without a bar.
    fn row(&self, row: &Row, bar: &Bar) -> String {
        if self.bar == 0 {
            return self.narrow(row);
        }
        let author = self.padded(&truncate(&row.author, self.author));
        let author = self.palette.name(author);
        let line = self.line(&row.index, &author, &bar.draw(self.palette, self.bar), &row.figures);
        format!("{line}\n")
    }

    fn line(&self, index: &str, author: &str, bar: &str, figures: &[impl AsRef<str>; 4]) -> String {
        let index = self.palette.dim(format_args!("{index:>0$}", self.index));
        let mut line = format!("{index}  {author}  {bar}");
        for (cell, columns) in figures.iter().map(AsRef::as_ref).zip(self.figures) {
            line += &" ".repeat(GAP + columns.saturating_sub(width(cell)));
            line += cell;
        }
        line.trim_end().to_owned()
    }

    /// The author, and the figures below.
    fn narrow(&self, row: &Row) -> String {
        let index = self.palette.dim(format_args!("{:>1$}", row.index, self.index));
        let author = self.palette.name(truncate(&row.author, self.rest()));
        let mut text = format!("{index}  {author}\n");
        let units = ["", " input", " output", ""];
        let figures = row.figures.iter().zip(units).filter(|(cell, _)| !cell.is_empty());
        let figures: Vec<String> = figures.map(|(cell, unit)| format!("{cell}{unit}")).collect();
        wrap(&figures.join(" · "), self.rest()).iter().for_each(|line| text += &self.indented(line));
        text
    }

    fn padded(&self, author: &str) -> String {
        format!("{author}{}", " ".repeat(self.author.saturating_sub(width(author))))
    }

    /// Returns the columns right of the index.
    fn rest(&self) -> usize {
        self.columns.saturating_sub(self.index + GAP)
    }

    /// Returns a line that begins right of the index.
    fn indented(&self, line: &str) -> String {
        format!("{}{line}\n", " ".repeat(self.index + GAP))
    }
}

#[cfg(test)]
mod tests {
    use cog_harmony::{Conversation, Document};

    use super::*;
    use crate::output::width;

    #[test]
    fn lines_fit_in_every_terminal() {
        let trace = include_str!("../../tests/cli/traces/tools.json");
        let document = Document::parse(&trace.replace("planner", &"审查".repeat(40))).unwrap();
        let conversation = Conversation::read(document.messages().unwrap()).unwrap();
        let timeline = Timeline::new(&conversation);
        for columns in 20..=120 {
            let text = draw(&timeline, Palette::new(false), columns);
            let widest = text.lines().max_by_key(|line| width(line)).unwrap();
            assert!(width(widest) <= columns, "{columns}: {widest}");
        }
    }

    #[test]
    fn lines_fit_in_any_width() {
        let name = "审查".repeat(30);
        let call = Content::ToolCall { id: "a", name: &name, arguments: "{\"q\": 1}", has_result: false };
        for columns in 0..100 {
            let line = ContentLine::new(&call, false).draw(Palette::new(false), columns);
            assert!(width(&line) <= columns, "{columns}: {line}");
        }
        let line = ContentLine::new(&call, false).draw(Palette::new(false), 90);
        assert!(line.ends_with(" no result"), "{line}");
    }
}
