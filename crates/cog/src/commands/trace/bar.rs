//! The bar of a message.

use cog_harmony::{Role, timeline::Entry};

use crate::output::Palette;

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
