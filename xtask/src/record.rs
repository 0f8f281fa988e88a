//! `cargo xtask record`: the recording of a terminal in the README, as an SVG.
//!
//! The command runs on a terminal of a fixed width. Its output is drawn as the terminal would show it at the end, and the
//! lines appear one by one.

mod screen;

use std::fmt::Write as _;

use self::screen::{Cell, Screen, Style};
use crate::project::{Outcome, cargo, execute, say, write};
use crate::terminal::{COLUMNS, on_terminal};

const PAGE: &str = "docs/terminal.svg";
/// The command, as a person types it behind `cog`.
const COMMAND: &str =
    "run code-reviewer --args \"def f(u): return db.query('select * from t where u=' + u)\"";

/// The width of a column and the height of a line, in the units of the drawing.
const COLUMN: f64 = 8.4;
const LINE: f64 = 19.0;
const MARGIN: f64 = 18.0;

/// Runs the command and writes the drawing.
pub(crate) fn run() -> Outcome {
    execute(cargo().args(["build", "--quiet", "--package", "cogn", "--locked"]))?;
    let output = on_terminal(COMMAND, &[])?;
    let mut screen = Screen::new();
    screen.feed(&format!("\u{1b}[32m$\u{1b}[0m cog {COMMAND}\n"));
    screen.feed(&stable(&output));
    write(PAGE, &draw(&screen.lines()))?;
    say(format_args!("record: {PAGE}"));
    Ok(())
}

/// Writes every duration as 1 ms, so that two recordings of one version are equal.
fn stable(output: &str) -> String {
    let mut lines: Vec<String> = output.lines().map(str::to_owned).collect();
    for line in &mut lines {
        let digits: String = line.chars().filter(char::is_ascii_digit).collect();
        if line.contains("ms\u{1b}[0m") && line.len() < 20 && !digits.is_empty() {
            *line = "\u{1b}[2m1ms\u{1b}[0m".to_owned();
        }
    }
    lines.join("\n")
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
    fn durations_are_stable() {
        assert_eq!(stable("\u{1b}[2m17ms\u{1b}[0m"), "\u{1b}[2m1ms\u{1b}[0m");
        assert_eq!(stable("waited 17 ms"), "waited 17 ms");
    }
}
