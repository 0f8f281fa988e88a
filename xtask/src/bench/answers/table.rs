//! The table of the answers, and its bounds.

use cog_trust::{Rate, Run, Sample, interval, paired};

use super::cell::Cell;

/// The head of the table.
pub(super) const HEAD: &str = "\
| Task | Form | Right | 95 % | p | Cut | Failed | Tokens | ÷ | Seconds | ÷ | AUROC |
|---|---|---|---|---|---|---|---|---|---|---|---|";

/// The share of the cases by which a single label may fall behind the bare question.
const ALLOWANCE: f64 = 0.02;
/// The maximum of output tokens, and of time, compared with the bare question.
const MAX_RATIO: f64 = 1.5;

/// Returns a line of the table. The share of right answers has its exact interval; p is the exact test of McNemar against the
/// bare question, and `÷` the ratio to it. AUROC is how well the confidence tells right answers from wrong ones.
pub(super) fn row(task: &str, form: &str, cell: &Cell, question: Option<&Cell>) -> String {
    let cases = cell.answers.len() as u64;
    let bounds = Rate::new(cell.right(), cases)
        .map_or(interval::Interval::UNKNOWN, |rate| interval::exact(rate, 0.95));
    let (p, tokens, pace) = match question {
        Some(question) => (
            format!("{:.3}", p_value(cell, question)),
            format!("{:.2}", cell.tokens() / question.tokens()),
            format!("{:.2}", cell.pace() / question.pace()),
        ),
        None => Default::default(),
    };
    format!(
        "| {task} | `{form}` | {} | {:.0} to {:.0} | {p} | {} | {} | {:.1} | {tokens} | {:.2} | {pace} | {} |",
        cell.right(),
        bounds.low * 100.0,
        bounds.high * 100.0,
        cell.cut(),
        cell.failed(),
        cell.tokens(),
        cell.pace(),
        auroc(cell).map(|value| format!("{value:.2}")).unwrap_or_default(),
    )
}

/// Returns the AUROC of the confidences; none if there are none, or if all answers are right or all are wrong.
fn auroc(cell: &Cell) -> Option<f64> {
    let answers = cell.answers.iter().enumerate();
    let runs: Vec<Run> =
        answers.filter_map(|(case, answer)| Run::new(case, answer.confidence?, answer.right)).collect();
    Sample::new(&runs).auroc().map(|auroc| auroc.value)
}

/// Returns how likely so uneven a split of the cases is if both ways of asking are equally good.
fn p_value(cell: &Cell, question: &Cell) -> f64 {
    let pairs = || cell.answers.iter().zip(&question.answers);
    let only_cell = pairs().filter(|(ours, bare)| ours.right && !bare.right).count() as u64;
    let only_question = pairs().filter(|(ours, bare)| !ours.right && bare.right).count() as u64;
    paired::mcnemar(only_cell, only_question)
}

/// Returns the bounds that `auto` misses: right at least as often as the bare question, less two of a hundred if the answer has
/// one field; no answer cut; and output tokens and time at most 1.5 times.
pub(super) fn missed(auto: &Cell, question: &Cell, fields: usize) -> Vec<String> {
    let mut missed = Vec::new();
    let allowed = if fields == 1 { ALLOWANCE * auto.answers.len() as f64 } else { 0.0 };
    if (auto.right() as f64) < question.right() as f64 - allowed {
        missed.push(format!("{} right, the bare question {}", auto.right(), question.right()));
    }
    if auto.cut() > 0 {
        missed.push(format!("{} answers cut", auto.cut()));
    }
    for (what, ratio) in
        [("tokens", auto.tokens() / question.tokens()), ("time", auto.pace() / question.pace())]
    {
        if ratio > MAX_RATIO {
            missed.push(format!("{what} {ratio:.2} times those of the bare question, at most {MAX_RATIO}"));
        }
    }
    missed
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::cell::Answer;
    use super::*;

    fn cell(right: &[bool], tokens: u64, seconds: f64) -> Cell {
        let answer = |right: &bool| Answer {
            right: *right,
            cut: false,
            failed: false,
            tokens,
            confidence: Some(if *right { 0.9 } else { 0.3 }),
            answer: Value::Null,
        };
        Cell { seconds, answers: right.iter().map(answer).collect() }
    }

    #[test]
    fn a_row_has_the_exact_figures() {
        let question = cell(&[true, true, true, true, false], 10, 5.0);
        let auto = cell(&[true, false, true, true, true], 12, 4.0);
        assert_eq!(
            row("topic", "question", &question, None),
            "| topic | `question` | 4 | 28 to 99 |  | 0 | 0 | 10.0 |  | 1.00 |  | 1.00 |"
        );
        assert_eq!(
            row("topic", "auto", &auto, Some(&question)),
            "| topic | `auto` | 4 | 28 to 99 | 1.000 | 0 | 0 | 12.0 | 1.20 | 0.80 | 0.80 | 1.00 |"
        );
    }

    #[test]
    fn bounds_are_checked_against_the_bare_question() {
        let question = cell(&[true; 100], 10, 10.0);
        let mut fewer = [true; 100];
        fewer[..2].fill(false);
        assert!(missed(&cell(&fewer, 15, 15.0), &question, 1).is_empty());
        assert_eq!(missed(&cell(&fewer, 15, 15.0), &question, 3), ["98 right, the bare question 100"]);
        fewer[2] = false;
        assert_eq!(missed(&cell(&fewer, 15, 15.0), &question, 1), ["97 right, the bare question 100"]);
        let slow = missed(&cell(&[true; 100], 16, 15.1), &question, 1);
        assert_eq!(
            slow,
            [
                "tokens 1.60 times those of the bare question, at most 1.5",
                "time 1.51 times those of the bare question, at most 1.5"
            ]
        );
        let mut cut = cell(&[true; 100], 10, 10.0);
        cut.answers[0].cut = true;
        assert_eq!(missed(&cut, &question, 1), ["1 answers cut"]);
    }
}
