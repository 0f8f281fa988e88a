//! Runs a module as a tool of another one.

use std::sync::Arc;

use cog_json::Value;
use cog_module::Module;

use crate::{
    RunInput, RunOptions,
    composition::Composed,
    pipeline,
    state::{ModuleCall, RuntimeState},
};

/// Runs a module whose input is the arguments of a call.
pub(crate) fn call_module(
    state: Arc<RuntimeState>,
    module: Arc<Module>,
    arguments: Value,
    options: RunOptions,
) -> ModuleCall {
    Box::pin(async move {
        let mut run = pipeline::prepare_in_span(
            &state,
            &module,
            RunInput::Json(arguments),
            &options,
            &Composed::Unknown,
        )?;
        run.rules.is_streamed = false;
        Ok(pipeline::run(run, None).fold().await)
    })
}
