//! The timeline as text.

mod content;
mod layout;

use cog_harmony::timeline::{Entry, Timeline};

use self::{content::contents, layout::Layout};
use super::{
    bar::Bar,
    words::{author, cost, counted, duration, facts, tokens},
};
use crate::output::{Palette, printable, wrap};

/// Draws the timeline in this many columns.
pub(super) fn draw(timeline: &Timeline<'_>, palette: Palette, columns: usize) -> String {
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

#[cfg(test)]
mod tests {
    use cog_harmony::{Conversation, Document};

    use super::*;
    use crate::output::width;

    #[test]
    fn lines_fit_in_every_terminal() {
        let trace = include_str!("../../../tests/cli/traces/tools.json");
        let document = Document::parse(&trace.replace("planner", &"审查".repeat(40))).unwrap();
        let conversation = Conversation::read(document.messages().unwrap()).unwrap();
        let timeline = Timeline::new(&conversation);
        for columns in 20..=120 {
            let text = draw(&timeline, Palette::new(false), columns);
            let widest = text.lines().max_by_key(|line| width(line)).unwrap();
            assert!(width(widest) <= columns, "{columns}: {widest}");
        }
    }
}
