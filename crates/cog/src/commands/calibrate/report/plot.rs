//! A plot of two shares as SVG.

use std::fmt::Write as _;

use crate::output::Escaped;

/// The side of the plotting area.
const SIDE: f64 = 300.0;
/// The space left and below, for the numbers and the names of the axes.
const MARGIN: f64 = 46.0;
/// The space right and above.
const GAP: f64 = 12.0;
/// The lines of the grid in each direction.
const STEPS: u32 = 5;

/// A plot whose axes are shares: the horizontal one from 0 to 1, the vertical one from a lowest share to 1.
pub(super) struct Plot {
    lowest: f64,
    body: String,
}

impl Plot {
    /// Creates a plot with these names of its axes, and this lowest share on the vertical one.
    pub(super) fn new(across: &str, up: &str, lowest: f64) -> Self {
        let mut plot = Self { lowest, body: String::new() };
        let end = MARGIN + SIDE;
        for step in 0..=STEPS {
            let share = f64::from(step) / f64::from(STEPS);
            let height = plot.lowest + (1.0 - plot.lowest) * share;
            let [x, y] = plot.place(share, height);
            let bottom = GAP + SIDE;
            let _ = write!(
                plot.body,
                "<path class=\"grid\" d=\"M{x:.1} {GAP}V{bottom}M{MARGIN} {y:.1}H{end}\"/>\n\
                 <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{share:.1}</text>\n\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\n",
                bottom + 15.0,
                MARGIN - 6.0,
                y + 4.0,
                number(height),
            );
        }
        let middle = MARGIN + SIDE / 2.0;
        let _ = write!(
            plot.body,
            "<rect class=\"frame\" x=\"{MARGIN}\" y=\"{GAP}\" width=\"{SIDE}\" height=\"{SIDE}\"/>\n\
             <text x=\"{middle}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(11 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
            GAP + SIDE + 34.0,
            Escaped(across),
            GAP + SIDE / 2.0,
            Escaped(up),
        );
        plot
    }

    /// Adds a line through these points.
    pub(super) fn line(&mut self, class: &str, points: &[[f64; 2]]) {
        let mut path = String::new();
        for [across, up] in points {
            let [x, y] = self.place(*across, *up);
            let command = if path.is_empty() { 'M' } else { 'L' };
            let _ = write!(path, "{command}{x:.1} {y:.1}");
        }
        let _ = writeln!(self.body, "<path class=\"{class}\" d=\"{path}\"/>");
    }

    /// Adds a point. Its label is shown where a pointer rests on it, and read aloud.
    pub(super) fn point(&mut self, class: &str, [across, up]: [f64; 2], radius: f64, label: &str) {
        let [x, y] = self.place(across, up);
        let _ = writeln!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"><title>{}</title></circle>",
            Escaped(label)
        );
    }

    /// Returns the plot with its title and what it shows.
    pub(super) fn figure(self, title: &str, caption: &str) -> String {
        let [width, height] = [MARGIN + SIDE + GAP, GAP + SIDE + MARGIN];
        let title = Escaped(title);
        format!(
            "<figure>\n<h2>{title}</h2>\n<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">\n{}</svg>\n\
             <figcaption>{}</figcaption>\n</figure>\n",
            self.body,
            Escaped(caption)
        )
    }

    /// Returns where two shares are. What is below the lowest share is on the frame.
    fn place(&self, across: f64, up: f64) -> [f64; 2] {
        let height = ((up - self.lowest) / (1.0 - self.lowest)).clamp(0.0, 1.0);
        [MARGIN + across * SIDE, GAP + (1.0 - height) * SIDE]
    }
}

/// Formats a share with as many digits as it has, at most three.
fn number(share: f64) -> String {
    let text = format!("{share:.3}");
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}
