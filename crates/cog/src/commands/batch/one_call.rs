//! Modules whose rows need several calls.

use cog_module::Module;

use crate::error::CliError;

/// Checks that a row of the module has one call.
pub(super) fn check_module(flag: &str, module: &Module) -> Result<(), CliError> {
    let manifest = &module.manifest;
    let reason = match () {
        () if manifest.composition.is_some() => "it calls other modules",
        () if manifest.policies.tools_allowed => "it calls tools",
        () => return Ok(()),
    };
    Err(CliError::Usage {
        message: format!("{flag}: the module {} needs several calls for each row: {reason}", manifest.name),
        suggestion: Some(format!("Run the batch without {flag}.")),
    })
}
