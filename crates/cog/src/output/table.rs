//! Columns that stand below each other.

use super::{
    Paint,
    text::{cut, printable, wrap},
    width,
};

/// The least that may be left of the last column before it stands below the others.
const LEAST: usize = 24;

/// A table without lines: a head, and rows of cells.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head.
    pub(crate) fn new(head: impl IntoIterator<Item = &'static str>) -> Self {
        Self { head: head.into_iter().collect(), rows: Vec::new() }
    }

    /// A row; its first cell is the name.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| printable(&cell)).collect());
    }

    /// The table as text. Where a line would be longer than `columns`, its last column is cut, or, where little would
    /// be left of it, stands below the others; none leaves it whole.
    pub(crate) fn render(&self, paint: Paint, columns: Option<usize>) -> String {
        let mut widths: Vec<usize> = (0..self.head.len()).map(|column| self.width_of(column)).collect();
        let below = columns.filter(|columns| is_narrow(&widths, *columns));
        if below.is_some() {
            widths.pop();
        }
        let head: Vec<String> = self.head.iter().map(|word| word.to_ascii_uppercase()).collect();
        let mut text = line(&head, &widths, columns, |_, cell| paint.dim(cell));
        for row in &self.rows {
            text += &line(row, &widths, columns, |column, cell| match column {
                0 => paint.name(cell),
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
        cells.chain(self.head.get(column).map(|word| word.len())).max().unwrap_or(0)
    }
}

/// Whether less of the last column would be left than is worth a look.
fn is_narrow(widths: &[usize], columns: usize) -> bool {
    let Some((last, others)) = widths.split_last() else { return false };
    let left = columns.saturating_sub(others.iter().map(|wide| wide + 2).sum());
    left < LEAST.min(*last)
}

fn line(
    cells: &[String],
    widths: &[usize],
    columns: Option<usize>,
    paint: impl Fn(usize, &str) -> String,
) -> String {
    let mut line = String::new();
    let mut used = 0;
    let last = widths.len().saturating_sub(1);
    for (column, (cell, wide)) in cells.iter().zip(widths).enumerate() {
        if column == last {
            line += &paint(column, &shown(cell, columns.map(|columns| columns.saturating_sub(used))));
        } else {
            line += &paint(column, cell);
            line += &" ".repeat(wide.saturating_sub(width(cell)) + 2);
            used += wide + 2;
        }
    }
    line.trim_end().to_owned() + "\n"
}

fn shown(cell: &str, columns: Option<usize>) -> String {
    columns.map_or_else(|| cell.to_owned(), |columns| cut(cell, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other() {
        let mut table = Table::new(["name", "what"]);
        table.row(["a".to_owned(), "first".to_owned()]);
        table.row(["审查".to_owned(), "second and longer".to_owned()]);
        let plain = Paint::new(false);
        assert_eq!(table.render(plain, None), "NAME  WHAT\na     first\n审查  second and longer\n");
    }

    #[test]
    fn the_last_column_is_cut_a_little() {
        let mut table = Table::new(["name", "what"]);
        table.row(["a".to_owned(), "one and two and three and four and five".to_owned()]);
        let plain = Paint::new(false);
        assert_eq!(table.render(plain, Some(30)), "NAME  WHAT\na     one and two and three a…\n");
    }

    #[test]
    fn a_last_column_without_room_stands_below() {
        let mut table = Table::new(["name", "where", "what"]);
        table.row([
            "sorter".to_owned(),
            "a/long/way/down".to_owned(),
            "Sorts messages into queues".to_owned(),
        ]);
        let plain = Paint::new(false);
        let expected = "NAME    WHERE\nsorter  a/long/way…\n  Sorts messages\n  into queues\n";
        assert_eq!(table.render(plain, Some(19)), expected);
    }
}
