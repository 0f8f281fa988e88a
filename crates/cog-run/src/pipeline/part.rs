//! Starts the runs of a composed module's parts. Each goes through the same pipeline.

use std::sync::Arc;

use crate::{
    composition::{PartRun, StartPart},
    context::Shared,
    tools::Claim,
};

/// Returns what starts the parts of a run.
pub(super) fn starter(shared: &Arc<Shared>) -> StartPart {
    let shared = Arc::clone(shared);
    Arc::new(move |part| {
        let PartRun { module, input, options, composed, is_streamed } = part;
        let mut run = super::prepare(&shared, &module, input, &options, &composed)?;
        run.claim.take().map_or(Ok(()), Claim::take)?;
        run.rules.is_streamed = is_streamed;
        Ok(super::run(run))
    })
}
