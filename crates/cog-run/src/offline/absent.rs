//! Stands in for the offline provider in a build without the feature `offline`.

use std::sync::Arc;

use cog_module::Module;
use cog_provider::Provider;
use cog_spec::{Code, ErrorBody, Warning};

use crate::input::CheckedInput;

/// Refuses the run: no provider is set up, and none answers without a model.
///
/// # Errors
/// Always, with the code of a provider that is not available.
pub(crate) fn provider(
    _module: &Module,
    _input: &CheckedInput,
) -> Result<(Arc<dyn Provider>, Warning), ErrorBody> {
    Err(ErrorBody::new(Code::ProviderUnavailable, "no provider is set up")
        .suggest("give the runtime a provider, or enable the feature `offline` of cog-run"))
}
