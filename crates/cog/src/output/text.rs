//! The layout of text in columns, and tables of aligned columns.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Palette;

/// Returns the columns of text on a terminal.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Wraps text into lines of at most `columns`, between words if possible. Keeps line breaks, and replaces control
/// characters, so that no answer can send escape sequences to a terminal.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrap_line(&printable(line), columns.max(1))).collect()
}

/// Replaces the control characters.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(printable_char).collect()
}

fn printable_char(c: char) -> char {
    match c {
        '\t' | '\u{2028}' | '\u{2029}' => ' ',
        c if is_unsafe(c) => '\u{fffd}',
        c => c,
    }
}

/// Replaces the control characters except line breaks, and indents further lines: no text from elsewhere then looks like a
/// message of its own.
pub(super) fn printable_lines(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n    ")
}

/// Truncates text to some columns, with a final `…`.
pub(crate) fn truncate(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut used = 0;
    let mut start = String::new();
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        // One column is left for the `…`.
        if used >= columns {
            break;
        }
        start.push(c);
    }
    start.trim_end().to_owned() + "…"
}

/// Whether a character is a control character, separates lines, or changes the direction of the text after it.
pub(super) fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces all unsafe characters except line breaks, tabs and colours (`ESC[…m`). A model, provider or file can then
/// neither move the cursor, nor set a title, nor hide text.
pub(super) fn for_terminal(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| is_unsafe(c) && !matches!(c, '\n' | '\t')) {
        let (before, from) = rest.split_at(at);
        safe += before;
        let colour = colour_at(from);
        safe += if colour.is_empty() { "\u{fffd}" } else { colour };
        let control = from.chars().next().map_or(0, char::len_utf8);
        rest = from.get(colour.len().max(control)..).unwrap_or_default();
    }
    safe + rest
}

/// Returns the colour sequence at the start of the text.
fn colour_at(text: &str) -> &str {
    let Some(body) = text.strip_prefix("\u{1b}[") else { return "" };
    let codes = body.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
    let numbers = body.split_at(body.len() - codes.len()).0;
    let length = text.len() - codes.len() + 1;
    let is_plain = codes.starts_with('m') && numbers.split(';').all(is_colour);
    if is_plain { text.get(..length).unwrap_or_default() } else { "" }
}

/// Whether a colour code is safe: font weights and foreground colours, but not blinking or concealed text.
fn is_colour(number: &str) -> bool {
    number.is_empty() || matches!(number.parse(), Ok(0..=4 | 22..=24 | 30..=37 | 39 | 90..=97_u8))
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let options = textwrap::Options::new(columns).word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::wrap(line, options).into_iter().map(Cow::into_owned).collect()
}

/// The minimum width of the last column; a narrower one goes below the others.
const MIN_LAST_COLUMN: usize = 24;

/// A table without borders: a header, and rows of cells.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<String>,
    /// Whether the header is written in capitals.
    has_capitals: bool,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with this header.
    pub(crate) fn new(header: impl IntoIterator<Item = &'static str>) -> Self {
        Self { has_capitals: true, ..Self::with_headings(header.into_iter().map(str::to_owned)) }
    }

    /// Creates a table whose header is written as it is, because it contains names.
    pub(crate) fn with_headings(header: impl IntoIterator<Item = String>) -> Self {
        let header = header.into_iter().map(|heading| printable(&heading)).collect();
        Self { header, has_capitals: false, rows: Vec::new() }
    }

    /// Adds a row; its first cell is the name.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    /// Formats the table. In a line longer than `columns`, the last column is truncated, or goes below the others if it
    /// is narrow. If the others do not fit either, each row is a list of its cells.
    pub(crate) fn render(&self, palette: Palette, columns: Option<usize>) -> String {
        let mut widths: Vec<usize> = (0..self.header.len()).map(|column| self.width_of(column)).collect();
        let below = columns.filter(|columns| is_narrow(&widths, *columns));
        if below.is_some() {
            widths.pop();
        }
        if let Some(columns) = columns
            && start_of_last(&widths) + MIN_CELL > columns
        {
            return self.stacked(palette, columns);
        }
        let header: Vec<String> = match self.has_capitals {
            true => self.header.iter().map(|word| word.to_ascii_uppercase()).collect(),
            false => self.header.clone(),
        };
        let mut text = line(&header, &widths, columns, |_, cell| palette.dim(cell));
        for row in &self.rows {
            text += &line(row, &widths, columns, |column, cell| match column {
                0 => palette.name(cell),
                _ => cell.to_owned(),
            });
            if let (Some(columns), Some(last)) = (below, row.last()) {
                wrap(last, columns.saturating_sub(2)).iter().for_each(|part| text += &format!("  {part}\n"));
            }
        }
        text
    }

    /// Returns the names of the columns.
    pub(super) fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns the cells of each row.
    pub(super) fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Formats each row as its name, with the other cells below it.
    fn stacked(&self, palette: Palette, columns: usize) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let mut cells = row.iter().zip(&self.header);
            if let Some((name, _)) = cells.next() {
                text += &format!("{}\n", palette.name(truncate(name, columns)));
            }
            for (cell, header) in cells {
                let lines = wrap(&format!("{header}: {cell}"), columns.saturating_sub(2));
                lines.iter().for_each(|line| text += &format!("  {line}\n"));
            }
        }
        text
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
        cells.chain(self.header.get(column).map(|word| width(word))).max().unwrap_or(0)
    }
}

/// The columns that the first characters of a last cell need.
const MIN_CELL: usize = 4;

/// Returns where the last column starts.
fn start_of_last(widths: &[usize]) -> usize {
    widths.split_last().map_or(0, |(_, others)| others.iter().map(|wide| wide + 2).sum())
}

/// Whether the last column would be too narrow.
fn is_narrow(widths: &[usize], columns: usize) -> bool {
    let Some(last) = widths.last() else { return false };
    columns.saturating_sub(start_of_last(widths)) < MIN_LAST_COLUMN.min(*last)
}

fn line(
    cells: &[String],
    widths: &[usize],
    columns: Option<usize>,
    palette: impl Fn(usize, &str) -> String,
) -> String {
    let mut line = String::new();
    let mut used = 0;
    let last = widths.len().saturating_sub(1);
    for (column, (cell, wide)) in cells.iter().zip(widths).enumerate() {
        if column == last {
            line += &palette(column, &shown(cell, columns.map(|columns| columns.saturating_sub(used))));
        } else {
            line += &palette(column, cell);
            line += &" ".repeat(wide.saturating_sub(width(cell)) + 2);
            used += wide + 2;
        }
    }
    line.trim_end().to_owned() + "\n"
}

fn shown(cell: &str, columns: Option<usize>) -> String {
    columns.map_or_else(|| cell.to_owned(), |columns| truncate(cell, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a\n\nb", 7), ["a", "", "b"]);
        assert_eq!(wrap("one two  three", 8), ["one two", "three"]);
    }

    #[test]
    fn splits_word_longer_than_line() {
        assert_eq!(wrap("abcdefg hi", 4), ["abcd", "efg", "hi"]);
    }

    #[test]
    fn wide_characters_have_two_columns() {
        assert_eq!(wrap("审查代码", 4), ["审查", "代码"]);
    }

    #[test]
    fn truncates_at_columns() {
        assert_eq!(truncate("one two", 7), "one two");
        assert_eq!(truncate("one two three", 7), "one tw…");
        assert_eq!(truncate("审查代码", 6), "审查…");
        assert_eq!(truncate("ab", 0), "…");
    }

    #[test]
    fn replaces_escape_sequences() {
        assert_eq!(wrap("\u{1b}[2Jx", 20), ["\u{fffd}[2Jx"]);
        assert_eq!(printable_lines("a\u{1b}[8mb\nc"), "a\u{fffd}[8mb\n    c");
        assert_eq!(wrap("a\u{2028}b\u{2029}c", 20), ["a b c"]);
        assert_eq!(for_terminal("a\u{2028}b"), "a\u{fffd}b");
        assert_eq!(for_terminal("a\u{202e}b\u{2066}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(
            for_terminal("a\u{1b}]0;title\u{7}b\u{9b}c\r"),
            "a\u{fffd}]0;title\u{fffd}b\u{fffd}c\u{fffd}"
        );
    }

    #[test]
    fn replaces_concealing_colours() {
        assert_eq!(for_terminal("\u{1b}[8mx\u{1b}[0;5my"), "\u{fffd}[8mx\u{fffd}[0;5my");
    }

    #[test]
    fn preserves_colours_and_line_breaks() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\n\tä";
        assert_eq!(for_terminal(text), text);
    }
}

#[cfg(test)]
mod table_tests {
    use super::*;

    #[test]
    fn aligns_columns() {
        let mut table = Table::new(["name", "what"]);
        table.row(["a".to_owned(), "first".to_owned()]);
        table.row(["审查".to_owned(), "second and longer".to_owned()]);
        let plain = Palette::new(false);
        assert_eq!(table.render(plain, None), "NAME  WHAT\na     first\n审查  second and longer\n");
    }

    #[test]
    fn truncates_last_column() {
        let mut table = Table::new(["name", "what"]);
        table.row(["a".to_owned(), "one and two and three and four and five".to_owned()]);
        let plain = Palette::new(false);
        assert_eq!(table.render(plain, Some(30)), "NAME  WHAT\na     one and two and three a…\n");
    }

    #[test]
    fn narrow_last_column_goes_below() {
        let mut table = Table::new(["name", "where", "what"]);
        table.row([
            "sorter".to_owned(),
            "a/long/way/down".to_owned(),
            "Sorts messages into queues".to_owned(),
        ]);
        let plain = Palette::new(false);
        let expected = "NAME    WHERE\nsorter  a/long/way…\n  Sorts messages\n  into queues\n";
        assert_eq!(table.render(plain, Some(19)), expected);
    }

    #[test]
    fn row_that_does_not_fit_is_a_list_of_its_cells() {
        let mut table = Table::new(["name", "version", "location", "description"]);
        let cells = ["sorter", "1.0.0", "a/long/way/down", "Sorts messages into queues"];
        table.row(cells.map(str::to_owned));
        let plain = Palette::new(false);
        let expected = "sorter\n  version: 1.0.0\n  location:\n  a/long/way/down\n  description:\n  Sorts messages\n  into queues\n";
        let text = table.render(plain, Some(18));
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| width(line) <= 18));
    }
}
