//! The pipeline of one run: from a module and an input to chunks.
//!
//! ```text
//! Module → CheckedInput → Conversation → ModelRequest → ModelEvent* → Chunk* → Envelope
//! ```
//!
//! Each step is a function from one type to the next; `docs/flow.md` links each to its file. [`prepare`]
//! (`pipeline/prepare.rs`) has the steps up to the request, and returns every error that is known before the
//! provider is called (ruling R54). [`run`] starts the driver (`drive.rs`) with the others. Later errors are
//! chunks, and [`ChunkStream::fold`] folds the chunks into one envelope.

mod prepare;
mod providers;

use std::sync::Arc;

pub(crate) use self::prepare::prepare;
use crate::{
    ChunkStream,
    composition::{PartRun, StartPart},
    context::Shared,
    drive::Driver,
    plan::Prepared,
    stream::Outlet,
};

/// Calls the provider, and returns the chunks of the answer as they arrive.
pub(crate) fn run(run: Prepared) -> ChunkStream {
    let session_id = run.rules.session_id.clone();
    let outlet = Outlet::default();
    let driver = Driver::new(run.plan, run.rules, outlet.clone());
    ChunkStream::new(session_id, outlet, driver.run())
}

/// Returns what starts the runs of a composed module's parts. Each goes through the same pipeline.
fn start_part(shared: &Arc<Shared>) -> StartPart {
    let shared = Arc::clone(shared);
    Arc::new(move |part| {
        let PartRun { module, input, options, composed, is_streamed } = part;
        let mut prepared = prepare(&shared, &module, input, &options, &composed)?;
        (prepared.rules.is_streamed, prepared.rules.is_part) = (is_streamed, true);
        Ok(run(prepared))
    })
}
