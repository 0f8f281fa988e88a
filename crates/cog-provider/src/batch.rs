//! The batch interfaces of vendors: jobs of many requests, answered within a day at half the price.
//!
//! This module performs no I/O. [`BatchInterface`] maps the request of a live call to an entry of a job, and the entry of
//! a result to the reply that a live call would get, so that the normal decoder of the protocol reads it.

mod anthropic;
mod entry;
mod gemini;
mod interface;
mod job;
mod openai;
mod part;
mod result;

pub use self::{
    entry::EntryError,
    interface::BatchInterface,
    job::{BatchCounts, BatchJob, BatchPhase, JobPage},
    part::{BatchLimits, BatchPart, Upload},
    result::{BatchOutcome, BatchReply, BatchResult},
};

/// The vendors with a batch interface.
pub const BATCH_VENDORS: &[&str] = &["openai", "anthropic", "gemini"];

/// Returns the batch interface of a vendor.
pub fn batch_interface(vendor: &str) -> Option<&'static dyn BatchInterface> {
    match vendor {
        "openai" => Some(&openai::OpenAi),
        "anthropic" => Some(&anthropic::Anthropic),
        "gemini" => Some(&gemini::Gemini),
        _ => None,
    }
}
