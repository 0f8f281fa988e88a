//! Halts a composition with a part that waits for a confirmation.

use std::sync::Arc;

use cog_json::Value;
use cog_media::Media;
use cog_module::Module;
use cog_spec::{Code, ErrorBody};

use super::{
    PendingApprovals,
    state::{HaltedState, Progressed},
};
use crate::{
    RunOptions, error,
    parts_state::{CompositionState, HaltedPart},
};

/// Stores a composition whose parts wait for a confirmation, and returns the error that ends it: the error of the
/// first of these parts, with the id of the composition. `media` are the input's media whose sources can expire.
pub(crate) async fn halt_parts(
    halted: &PendingApprovals,
    module: &Arc<Module>,
    input: &Value,
    media: Vec<(String, Media)>,
    options: &RunOptions,
    parts: CompositionState,
) -> ErrorBody {
    let Some(first) = parts.halted.first().cloned() else {
        return ErrorBody::new(Code::InternalError, "no part of the halted composition waits");
    };
    let opened = open(halted.clone(), first.id.clone(), options.owner.clone()).await;
    let state = opened.and_then(|part| composition_state(module, input, options, part, &first));
    match state {
        Ok(state) => halted.halt(HaltedState { parts: Some(parts), ..state }, media).await,
        Err(error) => error,
    }
}

/// Reads the state of a part, without blocking the event loop.
async fn open(halted: PendingApprovals, id: String, owner: Option<String>) -> Result<HaltedState, ErrorBody> {
    let opened = tokio::task::spawn_blocking(move || halted.open(&id, owner.as_deref())).await;
    opened.unwrap_or_else(|failed| Err(error::from_task(&failed)))
}

/// Returns the state of the composition, which shows the call that its part waits for.
fn composition_state(
    module: &Arc<Module>,
    input: &Value,
    options: &RunOptions,
    part: HaltedState,
    first: &HaltedPart,
) -> Result<HaltedState, ErrorBody> {
    let path = match &part.part {
        Some(inner) => format!("{}/{inner}", first.path),
        None => first.path.clone(),
    };
    let state = HaltedState::new(module, input, options, part.round)?;
    let progressed = Progressed { notes: part.progressed.notes, ..Progressed::default() };
    let provider = part.provider;
    let model = part.model;
    Ok(HaltedState { part: Some(path), progressed, provider, model, ..state })
}
