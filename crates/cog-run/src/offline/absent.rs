//! Replaces the offline provider in a build without the feature `offline`.

use std::sync::Arc;

use cog_module::Module;
use cog_provider::Provider;
use cog_spec::{Code, ErrorBody, Warning};

use crate::input::CheckedInput;

/// Rejects the run: no provider is configured, and this build has no offline provider.
///
/// # Errors
/// Always, with the code of an unavailable provider.
pub(crate) fn provider(
    _module: &Module,
    _input: &CheckedInput,
) -> Result<(Arc<dyn Provider>, Warning), ErrorBody> {
    Err(ErrorBody::new(Code::ProviderUnavailable, "no provider is configured")
        .suggest("Configure a provider, or enable the feature `offline` of cog-run."))
}
