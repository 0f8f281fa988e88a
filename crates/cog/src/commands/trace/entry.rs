//! The words of a timeline and the bar of a message, which text and HTML share.

use cog_harmony::{
    Role,
    timeline::{Content, Entry, Totals},
};
use cog_spec::Amount;

use crate::output::{Palette, printable, truncate};

/// Formats a duration: `203 ms`, `2.7 s`, `3 min 5 s`, `2 h 0 min`.
pub(super) fn duration(ms: u64) -> String {
    let seconds = ms.saturating_add(500) / 1000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..59_950 => {
            let tenths = (ms + 50) / 100;
            format!("{}.{} s", tenths / 10, tenths % 10)
        }
        59_950..3_599_500 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats a number of tokens.
pub(super) fn tokens(tokens: Option<u64>) -> String {
    tokens.map_or_else(unknown, |tokens| tokens.to_string())
}

/// Formats a cost in US dollars.
pub(super) fn cost(cost: Option<Amount>) -> String {
    cost.map_or_else(unknown, |cost| format!("${cost}"))
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// Formats the author of a message: its role, its name, and its model.
pub(super) fn author(entry: &Entry<'_>) -> String {
    let words = [Some(entry.role.as_str()), author_name(entry), entry.model];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Returns the name of the author; for a result, the name of the tool.
pub(super) fn author_name<'a>(entry: &Entry<'a>) -> Option<&'a str> {
    let tool = entry.content.iter().find_map(|content| match content {
        Content::ToolResult { name, .. } if entry.role == Role::Tool => *name,
        _ => None,
    });
    entry.name.or(tool)
}

/// Texts are read up to this many characters for each column.
const CHARS_PER_COLUMN: usize = 8;

/// Returns the start of the text on one line.
pub(super) fn short(text: &str, columns: usize) -> String {
    let text = text.trim_start();
    let end = text.char_indices().nth((columns + 1) * CHARS_PER_COLUMN).map(|(end, _)| end);
    let (start, is_truncated) = match end.and_then(|end| text.get(..end)) {
        Some(start) => (start, true),
        None => (text, false),
    };
    let line = printable(&start.split_whitespace().collect::<Vec<_>>().join(" "));
    let line = if is_truncated { line + "…" } else { line };
    truncate(&line, columns)
}

/// Returns a result in the form of docs/tools.md without its status, which is shown before it.
pub(super) fn without_status<'a>(text: &'a str, status: Option<&str>) -> &'a str {
    let members = status.and_then(|status| {
        let rest = text.strip_prefix("{\"status\":\"")?.strip_prefix(status)?.strip_prefix('"')?;
        rest.strip_prefix(',').unwrap_or(rest).strip_suffix('}')
    });
    members.unwrap_or(text)
}

/// Returns the totals as lines: each with a title.
pub(super) fn facts(totals: &Totals<'_>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if totals.replies > 0 {
        facts.push(("tokens", token_facts(totals)));
        facts.push(("cost", cost_facts(totals)));
    }
    if let Some(ms) = totals.duration_ms {
        let model = duration(totals.model_ms);
        let tool = duration(totals.tool_ms);
        facts.push(("time", format!("{}; sum of replies {model}, of tools {tool}", duration(ms))));
    }
    if totals.tool_calls > 0 || !totals.results.is_empty() {
        facts.push(("tools", tool_facts(totals)));
    }
    if !totals.models.is_empty() {
        facts.push(("models", listed(totals.models.iter().map(ToString::to_string))));
    }
    facts
}

/// `3248 input (2048 cached), 256 output (80 reasoning)`.
fn token_facts(totals: &Totals<'_>) -> String {
    let known = &totals.known;
    let text = format!(
        "{} input{}, {} output{}",
        known.input_tokens,
        part_of_tokens(known.cached_input_tokens, "cached"),
        known.output_tokens,
        part_of_tokens(known.reasoning_tokens, "reasoning"),
    );
    match totals.without_tokens {
        0 => text,
        missing if known.input_tokens + known.output_tokens == 0 => {
            format!("unknown ({})", counted(missing, "message"))
        }
        missing => format!("at least {text}; unknown in {}", counted(missing, "message")),
    }
}

fn part_of_tokens(count: u64, word: &str) -> String {
    if count == 0 { String::new() } else { format!(" ({count} {word})") }
}

fn cost_facts(totals: &Totals<'_>) -> String {
    let missing = counted(totals.without_cost, "message");
    match totals.cost_usd {
        Some(cost) => format!("${cost}"),
        None if totals.known.cost_usd == Amount::default() => format!("unknown ({missing})"),
        None => format!("at least ${}; unknown in {missing}", totals.known.cost_usd),
    }
}

/// `2 calls: 1 success, 1 halted; 1 without result`.
fn tool_facts(totals: &Totals<'_>) -> String {
    let results = totals.results.iter().map(|(status, count)| format!("{count} {status}"));
    let missing = totals.calls_without_result;
    let missing = (missing > 0).then(|| format!("{missing} without a result"));
    let parts = listed(results.chain(missing));
    format!("{}: {parts}", counted(totals.tool_calls, "call"))
}

/// Formats a number with its noun: `1 message`, `2 messages`.
pub(super) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("{count} {noun}") } else { format!("{count} {noun}s") }
}

/// The maximum number of values in a list.
const MAX_LISTED: usize = 8;

fn listed(values: impl Iterator<Item = String>) -> String {
    let values: Vec<String> = values.collect();
    let mut text = values.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join(", ");
    if values.len() > MAX_LISTED {
        text += &format!(" and {} more", values.len() - MAX_LISTED);
    }
    text
}

/// The bar of a message in cells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bar {
    /// The cells before it.
    pub(super) start: usize,
    /// The cells until the first token.
    pub(super) waiting: usize,
    /// The cells after it.
    pub(super) active: usize,
    /// Whether the message has a time but no duration.
    pub(super) is_moment: bool,
    is_tool: bool,
}

impl Bar {
    /// Scales the times of a message from `span` milliseconds to `cells`. A message without times has no bar.
    pub(super) fn new(entry: &Entry<'_>, span: u64, cells: usize) -> Self {
        let (Some(start), Some(end)) = (entry.start_ms, entry.end_ms()) else { return Self::default() };
        let scale = Scale { span, cells };
        let first_cell = scale.floor(start).min(cells.saturating_sub(1));
        if entry.duration_ms.is_none() {
            return Self { start: first_cell, is_moment: true, ..Self::default() };
        }
        let length = scale.ceil(end).min(cells).saturating_sub(first_cell).max(1);
        let first_token = start.saturating_add(entry.first_token_ms.unwrap_or_default()).min(end);
        let waiting = scale.floor(first_token).saturating_sub(first_cell).min(length - 1);
        let is_tool = entry.role == Role::Tool;
        Self { start: first_cell, waiting, active: length - waiting, is_moment: false, is_tool }
    }

    /// Draws the bar, padded to `cells`.
    pub(super) fn draw(&self, palette: Palette, cells: usize) -> String {
        let Self { start, waiting, active, is_moment, is_tool } = *self;
        let drawn = if is_moment { "▏".to_owned() } else { "█".repeat(active) };
        let drawn = match is_tool {
            true => palette.warning(drawn),
            false => palette.name(drawn),
        };
        let used = start + waiting + active + usize::from(is_moment);
        let space = " ".repeat(cells.saturating_sub(used));
        format!("{}{}{drawn}{space}", " ".repeat(start), palette.dim("░".repeat(waiting)))
    }
}

/// From milliseconds to cells.
struct Scale {
    span: u64,
    cells: usize,
}

impl Scale {
    fn floor(&self, ms: u64) -> usize {
        self.scaled(ms, 0)
    }

    fn ceil(&self, ms: u64) -> usize {
        self.scaled(ms, u128::from(self.span.saturating_sub(1)))
    }

    fn scaled(&self, ms: u64, round: u128) -> usize {
        let span = u128::from(self.span.max(1));
        usize::try_from((u128::from(ms) * self.cells as u128 + round) / span).unwrap_or(self.cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_digits_or_more() {
        let shown = [0, 999, 1_000, 2_733, 59_949, 59_950, 185_000, 7_199_999, u64::MAX].map(duration);
        let expected = ["0 ms", "999 ms", "1.0 s", "2.7 s", "59.9 s", "1 min 0 s", "3 min 5 s", "2 h 0 min"];
        assert_eq!(shown[..8], expected);
        assert!(shown[8].ends_with(" min"), "{}", shown[8]);
    }

    #[test]
    fn texts_are_one_line_without_control_characters() {
        assert_eq!(short("\n a\u{1b}[2J\n\tb\u{202e}c ", 40), "a\u{fffd}[2J b\u{fffd}c");
        assert_eq!(short("one two three", 8), "one two…");
        assert_eq!(short(&format!("a{}", "\u{301}".repeat(1_000_000)), 8).chars().count(), 8 * 9 + 1);
    }

    #[test]
    fn status_is_not_repeated() {
        let shown = |text| without_status(text, Some("success"));
        assert_eq!(shown(r#"{"status":"success","a":1}"#), r#""a":1"#);
        assert_eq!(shown(r#"{"status":"success"}"#), "");
        assert_eq!(shown(r#"{"status":"error"}"#), r#"{"status":"error"}"#);
        assert_eq!(shown("plain"), "plain");
    }

    #[test]
    fn long_lists_are_counted() {
        assert_eq!(listed((0..10).map(|n| n.to_string())), "0, 1, 2, 3, 4, 5, 6, 7 and 2 more");
    }
}

#[cfg(test)]
mod bar_tests {
    use cog_harmony::{Conversation, Document, timeline::Timeline};

    use super::*;

    fn bars(text: &str, cells: usize) -> Vec<String> {
        let conversation = Conversation::read(Document::parse(text).unwrap().messages().unwrap()).unwrap();
        let timeline = Timeline::new(&conversation);
        let span = timeline.totals.duration_ms.unwrap_or_default();
        let draw = |entry| Bar::new(entry, span, cells).draw(Palette::new(false), cells);
        timeline.messages.iter().map(draw).collect()
    }

    #[test]
    fn bars_are_scaled_to_start_and_duration() {
        let bars = bars(
            r#"[{"role": "user", "content": "a", "created_at": 10},
                {"role": "assistant", "content": "b", "created_at": 15,
                 "metadata": {"latency_ms": {"ttft": 2000, "total_time": 5000}}},
                {"role": "tool", "tool_call_id": "x", "content": "c", "created_at": 20,
                 "metadata": {"latency_ms": {"total_time": 5000}}},
                {"role": "assistant", "content": "d"}]"#,
            10,
        );
        assert_eq!(bars, ["▏         ", "░░███     ", "     █████", "          "]);
    }

    #[test]
    fn bars_fit_whatever_the_times() {
        let times = "18446744073709551615";
        let bars = bars(
            &format!(
                r#"[{{"role": "assistant", "content": "b", "created_at": 0,
                     "metadata": {{"latency_ms": {{"ttft": {times}, "total_time": {times}}}}}}},
                    {{"role": "user", "content": "a", "created_at": 1e300}}]"#
            ),
            10,
        );
        assert!(bars.iter().all(|bar| bar.chars().count() == 10), "{bars:?}");
        assert_eq!(bars[1], "         ▏");
    }
}
