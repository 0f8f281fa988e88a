//! `cargo xtask record`: the recording of a terminal in the README, as an SVG.
//!
//! The command runs on a terminal of a fixed width. Its output is drawn as the terminal would show it at the end, and the
//! lines appear one by one.

use std::fmt::Write as _;

use crate::{
    project::{Outcome, programs, read, say, write},
    terminal::{COLUMNS, COMMAND, on_terminal},
};

const PAGE: &str = "docs/terminal.svg";
/// The width of a column and the height of a line, in the units of the drawing.
const COLUMN: f64 = 8.4;
const LINE: f64 = 19.0;
const MARGIN: f64 = 18.0;

/// Runs the command and writes the drawing.
pub(crate) fn run() -> Outcome {
    programs()?;
    let output = on_terminal(COMMAND, &[])?;
    write(PAGE, &drawn(&output))?;
    say(format_args!("record: {PAGE}"));
    Ok(())
}

/// Fails if the recording shows another text than this output. Only durations may differ.
pub(crate) fn check(output: &str) -> Outcome {
    let recorded = texts(&read(PAGE)?);
    let seen = texts(&drawn(output));
    if recorded == seen {
        return Ok(());
    }
    let mut pairs = recorded.iter().zip(&seen);
    let change = match pairs.find(|(old, new)| old != new) {
        Some((old, new)) => format!("{old:?}, and the terminal {new:?}"),
        None => format!("{} texts, and the terminal {}", recorded.len(), seen.len()),
    };
    Err(format!("{PAGE} shows {change}; run cargo xtask record"))
}

fn drawn(output: &str) -> String {
    let mut screen = Screen::new();
    screen.feed(&format!("\u{1b}[32m$\u{1b}[0m cog {COMMAND}\n"));
    screen.feed(output);
    draw(&screen.lines())
}

/// Returns the texts of a drawing, without the digits of a duration.
fn texts(svg: &str) -> Vec<String> {
    let texts = svg.split("</text>").filter_map(|element| element.rsplit_once('>'));
    texts
        .map(|(_, text)| match text.strip_suffix("ms") {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => "ms".to_owned(),
            _ => text.to_owned(),
        })
        .collect()
}

fn draw(lines: &[Vec<Cell>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default().max(COLUMNS);
    let width = COLUMN.mul_add(as_units(columns), 2.0 * MARGIN);
    let height = LINE.mul_add(as_units(lines.len()), 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-size=\"14\" \
         font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\">\n{STYLE}\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n"
    );
    for (index, line) in lines.iter().enumerate() {
        // The command is read first; then its output runs in.
        let delay = if index == 0 { 0.2 } else { 0.06f64.mul_add(as_units(index), 1.0) };
        let y = LINE.mul_add(as_units(index), MARGIN + 14.0);
        let _ = writeln!(svg, "<g style=\"animation-delay:{delay:.2}s\">{}</g>", draw_line(line, y));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Lines are visible where animations are not supported.
const STYLE: &str = "<style>g{animation:appear .15s backwards}@keyframes appear{from{opacity:0}}text{fill:#d6d9e0;\
white-space:pre}.bold{font-weight:bold}.dim{fill:#8b919e}.red{fill:#f0717b}.green{fill:#8ccf7e}.yellow{fill:#e5c76b}\
.cyan{fill:#6cbfbf}@media(prefers-reduced-motion:reduce){g{animation:none}}</style>\n";

/// Draws each stretch of one style, at its column.
fn draw_line(line: &[Cell], y: f64) -> String {
    let mut drawn = String::new();
    let mut column = 0;
    for stretch in line.chunk_by(|one, next| one.style == next.style) {
        let text: String = stretch.iter().map(|cell| cell.character).collect();
        if !text.trim().is_empty() {
            let x = COLUMN.mul_add(as_units(column), MARGIN);
            let length = COLUMN * as_units(stretch.len());
            let class = stretch.first().map_or_else(String::new, |cell| class(cell.style));
            let _ = write!(
                drawn,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\"{class}>{}</text>",
                escaped(&text)
            );
        }
        column += stretch.len();
    }
    drawn
}

fn class(style: Style) -> String {
    let names = [style.is_bold.then_some("bold"), style.is_dim.then_some("dim"), style.colour];
    let names: Vec<&str> = names.into_iter().flatten().collect();
    if names.is_empty() { String::new() } else { format!(" class=\"{}\"", names.join(" ")) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A count of columns or lines as a length.
fn as_units(count: usize) -> f64 {
    u16::try_from(count).map_or(f64::from(u16::MAX), f64::from)
}

// What a terminal shows after some output: text, colours, and the few movements of the cursor that `cog` uses.

/// The style of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Style {
    is_bold: bool,
    is_dim: bool,
    colour: Option<&'static str>,
}

/// A character and its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    character: char,
    style: Style,
}

/// A screen without a lower end.
#[derive(Debug, Default)]
struct Screen {
    lines: Vec<Vec<Cell>>,
    row: usize,
    column: usize,
    style: Style,
}

impl Screen {
    fn new() -> Self {
        Self::default()
    }

    /// Shows output, escape sequences included.
    fn feed(&mut self, output: &str) {
        let mut characters = output.chars();
        while let Some(character) = characters.next() {
            match character {
                '\u{1b}' => self.escape(&mut characters),
                '\r' => self.column = 0,
                '\n' => (self.row, self.column) = (self.row + 1, 0),
                character if character.is_control() => {}
                character => self.put(character),
            }
        }
    }

    /// The lines, without white space and empty lines behind them.
    fn lines(&self) -> Vec<Vec<Cell>> {
        let mut lines = self.lines.clone();
        for line in &mut lines {
            while line.last().is_some_and(|cell| cell.character == ' ') {
                line.pop();
            }
        }
        while lines.last().is_some_and(Vec::is_empty) {
            lines.pop();
        }
        lines
    }

    fn put(&mut self, character: char) {
        let row = self.row;
        let column = self.column;
        let style = self.style;
        self.lines.resize_with(self.lines.len().max(row + 1), Vec::new);
        if let Some(line) = self.lines.get_mut(row) {
            let blank = Cell { character: ' ', style: Style::default() };
            line.resize(line.len().max(column + 1), blank);
            if let Some(cell) = line.get_mut(column) {
                *cell = Cell { character, style };
            }
        }
        self.column += 1;
    }

    fn clear_line(&mut self) {
        if let Some(line) = self.lines.get_mut(self.row) {
            line.clear();
        }
    }

    /// `ESC [ numbers letter`; other sequences are ignored.
    fn escape(&mut self, characters: &mut std::str::Chars<'_>) {
        if characters.next() != Some('[') {
            return;
        }
        let mut numbers = String::new();
        let letter = loop {
            match characters.next() {
                Some(character) if character.is_ascii_alphabetic() => break character,
                Some(character) => numbers.push(character),
                None => return,
            }
        };
        let first = numbers.split(';').next().and_then(|number| number.parse().ok());
        match letter {
            'm' => numbers.split(';').for_each(|number| self.restyle(number)),
            'A' => self.row = self.row.saturating_sub(first.unwrap_or(1)),
            'K' => self.clear_line(),
            'J' => self.lines.truncate(self.row),
            _ => {}
        }
    }

    fn restyle(&mut self, number: &str) {
        match number {
            "" | "0" => self.style = Style::default(),
            "1" => self.style.is_bold = true,
            "2" => self.style.is_dim = true,
            "31" => self.style.colour = Some("red"),
            "32" => self.style.colour = Some("green"),
            "33" => self.style.colour = Some("yellow"),
            "36" => self.style.colour = Some("cyan"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stretches_at_their_column() {
        let mut screen = Screen::new();
        screen.feed("a \u{1b}[1m\u{1b}[31m<b>\u{1b}[0m");
        let svg = draw(&screen.lines());
        assert!(svg.contains("<text x=\"18.0\" y=\"32.0\" textLength=\"16.8\">a </text>"), "{svg}");
        assert!(
            svg.contains(
                "<text x=\"34.8\" y=\"32.0\" textLength=\"25.2\" class=\"bold red\">&lt;b&gt;</text>"
            ),
            "{svg}"
        );
    }

    #[test]
    fn only_durations_may_differ() {
        let one = texts(&drawn("\u{1b}[2mrisk\u{1b}[0m high\n\u{1b}[2m17ms\u{1b}[0m"));
        assert_eq!(one, texts(&drawn("\u{1b}[2mrisk\u{1b}[0m high\n\u{1b}[2m3ms\u{1b}[0m")));
        assert_ne!(one, texts(&drawn("\u{1b}[2mrisk\u{1b}[0m low\n\u{1b}[2m17ms\u{1b}[0m")));
    }

    fn shown(output: &str) -> Vec<String> {
        let mut screen = Screen::new();
        screen.feed(output);
        screen.lines().iter().map(|line| line.iter().map(|cell| cell.character).collect()).collect()
    }

    #[test]
    fn a_cleared_line_is_written_again() {
        assert_eq!(shown("waiting\r\u{1b}[2Kdone\r\nnext  \r\n"), ["done", "next"]);
    }

    #[test]
    fn the_cursor_moves_up() {
        assert_eq!(shown("one\ntwo\n\u{1b}[2A\u{1b}[Jthree\n"), ["three"]);
    }

    #[test]
    fn a_style_lasts_until_it_is_reset() {
        let mut screen = Screen::new();
        screen.feed("\u{1b}[1;36ma\u{1b}[0mb");
        let styles: Vec<Style> = screen.lines().concat().iter().map(|cell| cell.style).collect();
        assert_eq!(styles, [Style { is_bold: true, is_dim: false, colour: Some("cyan") }, Style::default()]);
    }
}
