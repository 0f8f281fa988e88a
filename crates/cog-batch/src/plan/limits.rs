use std::time::SystemTime;

use crate::Concurrency;

/// What determines the time and the length of the answers.
#[derive(Debug, Clone, Copy)]
pub struct PlanLimits {
    /// The rows that run at the same time.
    pub concurrency: Concurrency,
    /// The maximum requests per minute.
    pub rpm: Option<u32>,
    /// The maximum tokens per minute.
    pub tpm: Option<u64>,
    /// The maximum tokens of an answer.
    pub max_tokens: Option<u64>,
    /// The time for prices.
    pub now: SystemTime,
}
