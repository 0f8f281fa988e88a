//! What a search can cost, before it starts.

use std::{fmt::Display, sync::Arc};

use cog_contract::optimize::{Part, Split};
use cog_json::Value;
use cog_module::{Module, golden::GoldenCase};
use cog_run::{Budget, BudgetLimits, LargestRun, RunInput};
use cog_spec::{Code, ErrorBody};

use super::runner::{Runner, Writer, largest_writer_input, with_prompt};
use crate::commands::test::judge::{self, MODULE};

/// The limits that the user sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) max_cost: Option<f64>,
    pub(super) max_calls: Option<u64>,
}

/// The most that a part of the work can spend.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Most {
    calls: u64,
    /// None if a price is unknown.
    cost: Option<f64>,
}

/// The most that the parts of a search can spend.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Costs {
    /// Measuring the prompt of the module.
    start: Most,
    /// Writing one prompt and measuring it.
    step: Most,
    /// Comparing two prompts on the held-out cases.
    end: Most,
}

/// The budgets of a search.
pub(super) struct Budgets {
    /// Of all calls.
    pub(super) total: Budget,
    /// Of the search, so that the comparison at the end can be paid.
    pub(super) search: Budget,
}

impl Costs {
    /// Returns the most that a search can spend. Nothing is sent.
    pub(super) async fn measure(runner: &Runner<'_>, split: &Split) -> Result<Self, ErrorBody> {
        // No prompt of the search is longer than this one.
        let max = runner.rules.max_bytes();
        let padding = max.saturating_sub(runner.rules.old.text().len());
        let longest = format!("{}{}", runner.rules.old.text(), "\"".repeat(padding));
        let (old, new) = (Arc::clone(runner.module), Arc::new(with_prompt(runner.module, &longest)));
        let mut costs = Self { start: Most::NOTHING, step: Most::NOTHING, end: Most::NOTHING };
        for part in Part::ALL {
            for case in split.cases(part) {
                let Some(case) = runner.cases.get(case) else { continue };
                let run = async |module: &Arc<Module>| {
                    let input = RunInput::Json(case.input.clone());
                    runner.runtime.largest_run(module, input, runner.options.clone()).await
                };
                let judging = runner.largest_judging(case).await?;
                // An input that its schema refuses costs nothing.
                let (Ok(with_old), Ok(with_new)) = (run(&old).await, run(&new).await) else { continue };
                let with_old = Most::from(with_old).plus(judging);
                let with_new = Most::from(with_new).plus(judging);
                match part {
                    Part::HeldOut => costs.end = costs.end.plus(with_old).plus(with_new),
                    Part::Training | Part::Validation => {
                        costs.start = costs.start.plus(with_old);
                        costs.step = costs.step.plus(with_new);
                    }
                }
            }
        }
        if let Writer::Model { module, options } = &runner.writer {
            let input = largest_writer_input(runner.module, max);
            let largest = runner.runtime.largest_run(module, input, (**options).clone()).await?;
            costs.step = costs.step.plus(largest.into());
        }
        Ok(costs)
    }

    /// Returns the budgets, if they allow at least one full step.
    ///
    /// # Errors
    /// E4002 if they do not, or if the limit needs a price that is unknown.
    pub(super) fn budgets(self, limits: Limits) -> Result<Budgets, ErrorBody> {
        let needed = self.start.plus(self.step).plus(self.end);
        let Limits { max_cost, max_calls } = limits;
        if let Some(max) = max_cost {
            let cost = needed.cost.ok_or_else(unknown_price)?;
            if cost > max {
                return Err(too_little(
                    &format!("{:.2} USD", (cost * 100.0).ceil() / 100.0),
                    "--max-cost",
                    max,
                ));
            }
        }
        if let Some(max) = max_calls
            && needed.calls > max
        {
            return Err(too_little(&format!("{} calls", needed.calls), "--max-calls", max));
        }
        let all = BudgetLimits { max_cost, max_calls, ..BudgetLimits::default() };
        let without_end = BudgetLimits {
            max_cost: max_cost.map(|max| max - self.end.cost.unwrap_or_default()),
            max_calls: max_calls.map(|max| max.saturating_sub(self.end.calls)),
            ..BudgetLimits::default()
        };
        Ok(Budgets {
            total: Budget::capped("`cog optimize`", all),
            search: Budget::capped("the search", without_end),
        })
    }
}

impl Most {
    const NOTHING: Self = Self { calls: 0, cost: Some(0.0) };

    fn plus(self, other: Self) -> Self {
        let cost = self.cost.zip(other.cost).map(|(one, other)| one + other);
        Self { calls: self.calls.saturating_add(other.calls), cost }
    }

    fn times(self, count: usize) -> Self {
        (0..count).fold(Self::NOTHING, |sum, _| sum.plus(self))
    }
}

impl From<LargestRun> for Most {
    fn from(largest: LargestRun) -> Self {
        Self { calls: largest.calls, cost: largest.cost }
    }
}

impl Runner<'_> {
    /// Returns the most that judging an answer to a case can spend.
    async fn largest_judging(&self, case: &GoldenCase) -> Result<Most, ErrorBody> {
        let Some(longest) = case.criteria.iter().max_by_key(|criterion| criterion.len()) else {
            return Ok(Most::NOTHING);
        };
        let module = self.runtime.load(MODULE)?;
        let bytes = BYTES_PER_TOKEN * self.options.generation.max_tokens.unwrap_or_default();
        let answer = "x".repeat(usize::try_from(bytes).unwrap_or_default());
        let input = judge::judged_input(case, longest, Value::from(serde_json::Value::from(answer)));
        let largest = self.runtime.largest_run(&module, input, self.judge.clone()).await?;
        Ok(Most::from(largest).times(case.criteria.len()))
    }
}

/// The bytes of an answer for each of its tokens, on average, at most.
const BYTES_PER_TOKEN: u64 = 8;

fn refused(message: String) -> ErrorBody {
    ErrorBody::new(Code::RateLimited, message).with_recoverable(false)
}

fn unknown_price() -> ErrorBody {
    refused("--max-cost limits the cost, and the price of a model is unknown".to_owned())
        .suggest("Limit the calls with --max-calls, or add the price to the settings.")
}

fn too_little(needed: &str, flag: &str, max: impl Display) -> ErrorBody {
    let message = format!(
        "one full step can take up to {needed}, and {flag} is {max}: measuring the prompt, writing one and measuring it, and comparing \
         both on the held-out cases"
    );
    refused(message)
        .suggest(format!("Raise {flag}, or set a smaller `max_tokens` in the manifest. Nothing was spent."))
}

/// The budget ended before the prompt of the module was measured.
pub(super) fn unmeasured() -> ErrorBody {
    refused("the budget ended before the prompt of the module was measured".to_owned())
        .suggest("Another limit of the settings may be lower than the one of this command.")
}
