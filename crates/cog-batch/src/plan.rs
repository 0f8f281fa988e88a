//! What a batch will need: rows, tokens, money and time, before anything is sent.

mod earlier;
mod limits;
mod survey;
mod tokens;
mod ways;

use serde::Serialize;

pub use self::{
    earlier::EarlierRuns,
    limits::PlanLimits,
    survey::PlannedRows,
    tokens::{InputTokens, OutputTokens},
    ways::{PlannedTime, Way, WayName},
};
use self::{survey::Survey, tokens::Counted};
use crate::{Batch, Rows, read::ReadError};

/// What a batch will need.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Plan {
    /// The module and its version.
    pub module: String,
    /// The provider that will be called; none when offline.
    pub provider: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// The rows.
    pub rows: PlannedRows,
    /// The tokens of the inputs.
    pub input: InputTokens,
    /// The tokens of the outputs, without those of reasoning unless earlier results are known.
    pub output: OutputTokens,
    /// What the time of live calls is calculated from.
    pub time: PlannedTime,
    /// The ways to run the batch. A row that is repeated, or corrected after a violation, costs more.
    pub ways: Vec<Way>,
    /// The way that costs least; none if no price is known.
    pub cheapest: Option<WayName>,
}

impl Batch {
    /// Returns what the batch will need. Reads all rows, and counts the tokens of at most 1,000 of them. Nothing is sent.
    ///
    /// # Errors
    /// The input cannot be read any further.
    pub async fn plan(
        &self,
        rows: Rows,
        earlier: &EarlierRuns,
        limits: &PlanLimits,
    ) -> Result<Plan, ReadError> {
        let survey = Survey::read(self, rows, &earlier.finished).await?;
        let counted = Counted::new(self, &survey).await;
        let output = tokens::output(self, earlier, &counted, limits);
        let time = PlannedTime::new(&counted, &output, earlier, limits);
        let ways = ways::list(self, &counted, &output, &time, limits);
        let info = self.runtime.providers().default_order().first().map(|provider| provider.info());
        let manifest = &self.module.manifest;
        Ok(Plan {
            module: format!("{} {}", manifest.name, manifest.version),
            provider: info.map(|info| info.name.to_string()),
            model: info.map(|info| info.model.to_string()),
            cheapest: ways::cheapest(&ways),
            rows: counted.rows,
            input: counted.input,
            output,
            time,
            ways,
        })
    }
}
