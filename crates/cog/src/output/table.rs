//! Tables of aligned columns.

use super::{
    Palette,
    text::{printable, truncate, wrap},
    width,
};

/// The minimum width of the last column; a narrower one goes below the others.
const MIN_LAST_COLUMN: usize = 24;

/// A table without borders: a header, and rows of cells.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with this header.
    pub(crate) fn new(header: impl IntoIterator<Item = &'static str>) -> Self {
        Self { header: header.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row; its first cell is the name.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    /// Formats the table. In a line longer than `columns`, the last column is truncated, or goes below the others if it
    /// is narrow.
    pub(crate) fn render(&self, palette: Palette, columns: Option<usize>) -> String {
        let mut widths: Vec<usize> = (0..self.header.len()).map(|column| self.width_of(column)).collect();
        let below = columns.filter(|columns| is_narrow(&widths, *columns));
        if below.is_some() {
            widths.pop();
        }
        let header: Vec<String> = self.header.iter().map(|word| word.to_ascii_uppercase()).collect();
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

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
        cells.chain(self.header.get(column).map(|word| word.len())).max().unwrap_or(0)
    }
}

/// Whether the last column would be too narrow.
fn is_narrow(widths: &[usize], columns: usize) -> bool {
    let Some((last, others)) = widths.split_last() else { return false };
    let left = columns.saturating_sub(others.iter().map(|wide| wide + 2).sum());
    left < MIN_LAST_COLUMN.min(*last)
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
}
