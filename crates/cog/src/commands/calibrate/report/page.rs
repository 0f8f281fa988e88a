//! The report of a calibration as one HTML page with plots, without scripts and without other files.

use cog_trust::{Bin, Coverage, Gate};

use super::{POINTS, Report, describe_gate, percent, plot::Plot, range, trimmed};
use crate::output::{self, Escaped, Palette};

/// The colours of the plots. The page is light or dark, as its reader prefers.
const STYLE: &str = "\
.plots { display: flex; flex-wrap: wrap; gap: 0 2rem; margin: 1.5rem 0; }
figure { flex: 1 1 20rem; margin: 0; max-width: 30rem; }
figcaption { font-size: 0.9rem; }
svg { height: auto; width: 100%; }
svg text { fill: currentColor; font: 11px system-ui, sans-serif; }
.frame, .grid, .perfect, .interval { fill: none; stroke: currentColor; }
.grid { opacity: 0.15; }
.perfect { opacity: 0.6; stroke-dasharray: 5 4; }
.curve, .ring { fill: none; stroke: light-dark(#0b57d0, #8ab4f8); stroke-width: 2; }
.dot { fill: light-dark(#0b57d0, #8ab4f8); }
.target { fill: none; stroke: light-dark(#8a5a00, #ffcc80); stroke-dasharray: 2 3; stroke-width: 1.5; }
.verdict { border-left: 4px solid; padding-left: 1rem; white-space: pre-line; }
.scroll { margin: 1.5rem 0; overflow-x: auto; }
";

/// Formats the report.
pub(super) fn page(report: &Report) -> String {
    let sample = &report.sample;
    let title = format!("{}: {} cases, {} runs", report.module, sample.cases(), sample.runs());
    let mut body = format!("<h1>cog calibrate</h1>\n<p>{}</p>\n", Escaped(&title));
    if let Some((goal, gate)) = &report.gate {
        let class = if matches!(gate, Gate::Threshold { .. }) { "passed" } else { "failed" };
        let verdict = describe_gate(*goal, gate, sample.cases(), Palette::new(false));
        body += &format!("<p class=\"verdict {class}\">{}</p>\n", Escaped(verdict.trim()));
    }
    body += &format!("<div class=\"plots\">\n{}{}</div>\n", reliability(report), risk_coverage(report));
    let trials = (!report.trials.is_empty()).then(|| report.trials_table());
    for table in [report.figures(), report.reliability(), report.curve()].into_iter().chain(trials) {
        body += &format!("<div class=\"scroll\">\n{}</div>\n", output::html_table(&table));
    }
    // A verdict says so itself.
    if report.gate.is_none() {
        body += "<p>This holds for inputs like these cases, and for the same model, prompt and schema.</p>\n";
    }
    output::page(&format!("cog calibrate: {title}"), STYLE, &body)
}

/// The share of right answers in each group of stated confidences.
fn reliability(report: &Report) -> String {
    let mut plot = Plot::new("stated confidence", "right answers", 0.0);
    plot.line("perfect", &[[0.0, 0.0], [1.0, 1.0]]);
    let bins = report.sample.reliability();
    let most = bins.iter().map(|bin| bin.cases).fold(1.0, f64::max);
    for Bin { stated, accuracy, cases, interval, .. } in bins {
        plot.line("interval", &[[stated, interval.low], [stated, interval.high]]);
        let label = format!(
            "stated {stated:.3}: {} right of {} cases, 95 % interval {}",
            percent(accuracy),
            trimmed(cases),
            range(interval)
        );
        plot.point("dot", [stated, accuracy], 3.0 + 4.0 * (cases / most).sqrt(), &label);
    }
    plot.figure(
        "Reliability",
        "Each dot is about a fifth of the cases, with its 95 % interval. On the dashed line, the confidence is the share of right \
         answers. Below it, the model is too confident.",
    )
}

/// The share of right answers among the ones that each threshold accepts.
fn risk_coverage(report: &Report) -> String {
    let points = report.coverage(POINTS);
    let target = report.gate.as_ref().map(|(goal, _)| goal.target());
    let lowest = points.iter().map(|point| point.accuracy).chain(target).fold(1.0, f64::min);
    // On a scale from 0, a curve between 0.9 and 1 would be a flat line.
    let start = [0.9, 0.75, 0.5].into_iter().find(|start| *start < lowest).unwrap_or_default();
    let mut plot = Plot::new("accepted answers", "right of accepted", start);
    if let Some(target) = target {
        plot.line("target", &[[0.0, target], [1.0, target]]);
    }
    let curve: Vec<[f64; 2]> = points.iter().map(|point| [point.accepted, point.accuracy]).collect();
    plot.line("curve", &curve);
    for Coverage { threshold, accepted, accuracy } in points {
        let label =
            format!("from {threshold:.3}: {} accepted, {} right", percent(accepted), percent(accuracy));
        plot.point("dot", [accepted, accuracy], 2.5, &label);
    }
    let mut caption =
        "Each dot is a threshold: the share of answers that it accepts, and how many of these are right."
            .to_owned();
    if target.is_some() {
        caption += " The dotted line is the target.";
    }
    if let Some((_, Gate::Threshold { threshold, accepted, right })) = &report.gate {
        let accepted_share = *accepted as f64 / report.sample.cases().max(1) as f64;
        let accuracy = *right as f64 / (*accepted).max(1) as f64;
        plot.point("ring", [accepted_share, accuracy], 7.0, &format!("threshold {threshold}"));
        caption += " The circle is the threshold that can be promised.";
    }
    plot.figure("Risk and coverage", &caption)
}
