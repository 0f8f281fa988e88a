//! Columns that stand below each other.

use super::{
    Paint,
    text::{cut, printable},
    width,
};

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

    /// The table as text. The last column is cut where the line would be longer than `columns`; none
    /// leaves it whole.
    pub(crate) fn render(&self, paint: Paint, columns: Option<usize>) -> String {
        let widths: Vec<usize> = (0..self.head.len()).map(|column| self.width_of(column)).collect();
        let head: Vec<String> = self.head.iter().map(|word| word.to_ascii_uppercase()).collect();
        let mut text = line(&head, &widths, columns, |_, cell| paint.dim(cell));
        for row in &self.rows {
            text += &line(row, &widths, columns, |column, cell| match column {
                0 => paint.name(cell),
                _ => cell.to_owned(),
            });
        }
        text
    }

    fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
        cells.chain(self.head.get(column).map(|word| word.len())).max().unwrap_or(0)
    }
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
        assert_eq!(table.render(plain, Some(14)), "NAME  WHAT\na     first\n审查  second…\n");
    }
}
