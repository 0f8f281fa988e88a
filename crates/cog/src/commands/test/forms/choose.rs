//! The rule by which the best form is chosen.

use cog_spec::{Cost, Form};
use cog_trust::{
    Rate,
    interval::{self, Interval},
    paired,
};

/// A form with its results.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) form: &'static Form,
    /// The outcome of each case, in the order of the cases.
    pub(super) outcomes: Vec<Outcome>,
    pub(super) spending: Spending,
}

/// The outcome of a case in one form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Outcome {
    /// Every run gave the expected answer.
    Right,
    /// A run gave another answer.
    Wrong,
    /// A run gave no answer, or no model judged it: it says nothing about the form.
    Unknown,
}

/// What all cases took in one form.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spending {
    /// None if the price is unknown.
    pub(super) cost: Option<Cost>,
    /// The input and output tokens; none if a run did not report them.
    pub(super) tokens: Option<u64>,
}

/// The best form, and why.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Best {
    pub(super) form: &'static Form,
    pub(super) reason: BestReason,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BestReason {
    /// No other form is better.
    InUse,
    /// The paired test says that it is better; its p-value.
    MoreRight(f64),
    /// It is at least as often right, and cheaper.
    Cheaper,
}

/// Why no form is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undecided {
    /// The form in use was not measured.
    NotMeasured,
    /// A case has no answer in the form in use.
    Incomplete,
    /// No form has a right answer.
    NothingRight,
}

/// The level below which a p-value counts as a difference.
const LEVEL: f64 = 0.05;

/// Chooses the best form: the one in use, unless another is better. A form is better if the exact paired test says that it is more
/// often right, or if it is at least as often right and cheaper. Of several, the one that is right most often is chosen, and of
/// those the cheapest. A form in which a case has no answer is not chosen.
pub(super) fn best(candidates: &[Candidate], in_use: &Form) -> Result<Best, Undecided> {
    let current = candidates.iter().find(|it| it.form == in_use).ok_or(Undecided::NotMeasured)?;
    if !current.is_complete() {
        return Err(Undecided::Incomplete);
    }
    if candidates.iter().all(|candidate| candidate.right() == 0) {
        return Err(Undecided::NothingRight);
    }
    let mut best = Best { form: current.form, reason: BestReason::InUse };
    let mut leader: Option<&Candidate> = None;
    for candidate in candidates.iter().filter(|it| it.form != in_use && it.is_complete()) {
        let Some(reason) = candidate.improves(current) else { continue };
        if leader.is_none_or(|leader| candidate.is_preferred_to(leader)) {
            best = Best { form: candidate.form, reason };
            leader = Some(candidate);
        }
    }
    Ok(best)
}

impl Candidate {
    fn is_complete(&self) -> bool {
        !self.outcomes.contains(&Outcome::Unknown)
    }

    /// Returns the number of right cases.
    pub(super) fn right(&self) -> u64 {
        self.count(Outcome::Right)
    }

    /// Returns the number of cases with an answer, right or wrong.
    pub(super) fn answered(&self) -> u64 {
        self.right() + self.count(Outcome::Wrong)
    }

    fn count(&self, wanted: Outcome) -> u64 {
        self.outcomes.iter().filter(|outcome| **outcome == wanted).count() as u64
    }

    /// Returns the exact 95 % interval of the rate of right answers.
    pub(super) fn interval(&self) -> Interval {
        let rate = Rate::new(self.right(), self.answered());
        rate.map_or(Interval::UNKNOWN, |rate| interval::exact(rate, 0.95))
    }

    /// Compares the cases that have an answer in both forms.
    pub(super) fn pairing(&self, other: &Self) -> Pairing {
        let both = self.outcomes.iter().zip(&other.outcomes);
        let mut pairing = Pairing { only_this: 0, only_other: 0 };
        for outcomes in both {
            match outcomes {
                (Outcome::Right, Outcome::Wrong) => pairing.only_this += 1,
                (Outcome::Wrong, Outcome::Right) => pairing.only_other += 1,
                _ => {}
            }
        }
        pairing
    }

    fn improves(&self, current: &Self) -> Option<BestReason> {
        let pairing = self.pairing(current);
        let p = pairing.p();
        if pairing.only_this > pairing.only_other && p < LEVEL {
            return Some(BestReason::MoreRight(p));
        }
        let is_as_right = pairing.only_this >= pairing.only_other && self.right() > 0;
        (is_as_right && self.spending.is_below(current.spending)).then_some(BestReason::Cheaper)
    }

    fn is_preferred_to(&self, other: &Self) -> bool {
        let difference = self.right().cmp(&other.right());
        difference.is_gt() || difference.is_eq() && self.spending.is_below(other.spending)
    }
}

impl Spending {
    /// Compares the costs if both are known, otherwise the tokens.
    fn is_below(self, other: Self) -> bool {
        match (self.cost, other.cost) {
            (Some(cost), Some(other)) if cost.currency == other.currency => cost.amount < other.amount,
            _ => self.tokens.zip(other.tokens).is_some_and(|(tokens, other)| tokens < other),
        }
    }
}

/// The cases that are right in only one of two forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pairing {
    pub(super) only_this: u64,
    pub(super) only_other: u64,
}

impl Pairing {
    /// Returns the p-value of the exact test of McNemar.
    pub(super) fn p(self) -> f64 {
        paired::mcnemar(self.only_this, self.only_other)
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::{Amount, Currency, PriceDate, PriceSource};

    use super::*;

    /// Returns a form with an outcome for each character: `+`, `-` or `?`.
    fn candidate(form: &'static Form, outcomes: &str, tokens: u64) -> Candidate {
        let outcomes = outcomes.chars().map(|outcome| match outcome {
            '+' => Outcome::Right,
            '-' => Outcome::Wrong,
            _ => Outcome::Unknown,
        });
        let spending = Spending { cost: None, tokens: Some(tokens) };
        Candidate { form, outcomes: outcomes.collect(), spending }
    }

    /// Chooses between the envelope, which is in use, and data.
    fn chosen(envelope: (&str, u64), data: (&str, u64)) -> Result<Best, Undecided> {
        let candidates =
            [candidate(Form::ENVELOPE, envelope.0, envelope.1), candidate(Form::DATA, data.0, data.1)];
        best(&candidates, Form::ENVELOPE)
    }

    const STAYS: Result<Best, Undecided> = Ok(Best { form: Form::ENVELOPE, reason: BestReason::InUse });
    const CHEAPER: Result<Best, Undecided> = Ok(Best { form: Form::DATA, reason: BestReason::Cheaper });

    #[test]
    fn tie_goes_to_the_cheaper_form() {
        assert_eq!(chosen(("++-", 100), ("++-", 99)), CHEAPER);
        assert_eq!(chosen(("++-", 100), ("+-+", 99)), CHEAPER);
        assert_eq!(chosen(("++-", 100), ("++-", 100)), STAYS);
        assert_eq!(chosen(("++-", 100), ("++-", 101)), STAYS);
    }

    #[test]
    fn form_that_is_more_often_wrong_is_never_chosen() {
        assert_eq!(chosen(("+++", 100), ("++-", 1)), STAYS);
    }

    #[test]
    fn more_expensive_form_needs_the_paired_test() {
        // Five more right of ten could be chance, six could not.
        assert_eq!(chosen(("-----+++++", 100), ("++++++++++", 200)), STAYS);
        let Ok(Best { form, reason: BestReason::MoreRight(p) }) =
            chosen(("------++++", 100), ("++++++++++", 200))
        else {
            panic!("not better")
        };
        assert_eq!(form, Form::DATA);
        assert!((p - 0.03125).abs() < 1e-9, "{p}");
    }

    #[test]
    fn form_without_all_answers_is_not_chosen() {
        assert_eq!(chosen(("++-", 100), ("++?", 1)), STAYS);
        assert_eq!(chosen(("++?", 100), ("+++", 1)), Err(Undecided::Incomplete));
        assert_eq!(best(&[candidate(Form::DATA, "+", 1)], Form::ENVELOPE), Err(Undecided::NotMeasured));
    }

    #[test]
    fn wrong_answers_are_not_compared_by_their_cost() {
        assert_eq!(chosen(("---", 100), ("---", 1)), Err(Undecided::NothingRight));
        let other = candidate(Form::ANSWER, "+--", 200);
        let all = [candidate(Form::ENVELOPE, "---", 100), candidate(Form::DATA, "---", 1), other];
        assert_eq!(best(&all, Form::ENVELOPE), STAYS);
    }

    #[test]
    fn most_right_form_wins_and_then_the_cheapest() {
        let all = |data: (&str, u64), answer: (&str, u64)| {
            let candidates = [
                candidate(Form::ENVELOPE, "+---", 100),
                candidate(Form::DATA, data.0, data.1),
                candidate(Form::ANSWER, answer.0, answer.1),
            ];
            best(&candidates, Form::ENVELOPE).unwrap().form
        };
        assert_eq!(all(("+++-", 90), ("++--", 10)), Form::DATA);
        assert_eq!(all(("++--", 90), ("+-+-", 80)), Form::ANSWER);
        assert_eq!(all(("++--", 80), ("+-+-", 90)), Form::DATA);
    }

    #[test]
    fn known_costs_count_before_tokens() {
        let spending = |amount: f64, tokens| Spending {
            cost: Some(Cost {
                amount: Amount::new(amount).unwrap(),
                currency: Currency::Usd,
                source: PriceSource::Settings,
                date: PriceDate::new("2026-11-22").unwrap(),
            }),
            tokens: Some(tokens),
        };
        assert!(spending(0.1, 200).is_below(spending(0.2, 100)));
        assert!(!spending(0.2, 100).is_below(spending(0.1, 200)));
        let unknown = Spending { cost: None, tokens: Some(100) };
        assert!(unknown.is_below(spending(0.1, 200)));
        assert!(!Spending::default().is_below(unknown) && !unknown.is_below(Spending::default()));
    }
}
