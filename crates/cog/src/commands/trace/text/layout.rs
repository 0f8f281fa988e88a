//! The columns of the timeline.

use super::Row;
use crate::{
    commands::trace::{bar::Bar, words::duration},
    output::{Palette, truncate, width, wrap},
};

/// The minimum columns of a bar. In a narrower terminal there are none, and the figures have a line of their own.
const MIN_BAR: usize = 10;
/// The columns of a bar that the names of authors leave.
const BAR: usize = 20;
/// The columns between two cells.
const GAP: usize = 2;
const AUTHOR: &str = "MESSAGE";
const FIGURES: [&str; 4] = ["TIME", "INPUT", "OUTPUT", "COST"];

/// The columns of the timeline.
pub(super) struct Layout {
    pub(super) palette: Palette,
    /// The columns of a bar; 0 if there are none.
    pub(super) bar: usize,
    columns: usize,
    index: usize,
    author: usize,
    figures: [usize; 4],
}

impl Layout {
    pub(super) fn new<'a>(rows: impl Iterator<Item = &'a Row>, palette: Palette, columns: usize) -> Self {
        let (mut index, mut author, mut figures) = (1, AUTHOR.len(), FIGURES.map(str::len));
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
    pub(super) fn header(&self, span: u64) -> String {
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
    pub(super) fn row(&self, row: &Row, bar: &Bar) -> String {
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
    pub(super) fn rest(&self) -> usize {
        self.columns.saturating_sub(self.index + GAP)
    }

    /// Returns a line that begins right of the index.
    pub(super) fn indented(&self, line: &str) -> String {
        format!("{}{line}\n", " ".repeat(self.index + GAP))
    }
}
