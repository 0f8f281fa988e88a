//! Reads packets.

use std::path::Path;

use cog_harmony::{Finding, handoff::Handoff};
use cog_host::settings::MediaSettings;
use cog_json::{ToJson as _, Value};
use cog_spec::{Code, ErrorBody};

use super::super::input;
use crate::error::CliError;

/// Reads a packet from a file, an http(s) URL, or stdin for `-`. The inner error is what is wrong with its form.
///
/// # Errors
/// A source that cannot be read, or is not JSON.
pub(super) async fn read(
    source: &str,
    settings: &MediaSettings,
) -> Result<Result<Handoff, Vec<Finding>>, CliError> {
    let value = match source.contains("://") {
        true => input::fetch(source, settings).await?,
        false => input::json_of(Path::new(source))?,
    };
    Ok(Handoff::read(value))
}

/// As [`read`], for a packet that must be valid and unchanged.
///
/// # Errors
/// Also E1001 with every finding.
pub(super) async fn read_valid(source: &str, settings: &MediaSettings) -> Result<Handoff, CliError> {
    let packet = read(source, settings).await?.map_err(|findings| refused(&findings))?;
    let findings = packet.check_seal();
    if findings.is_empty() { Ok(packet) } else { Err(refused(&findings).into()) }
}

/// Returns the error of an invalid packet.
pub(super) fn refused(findings: &[Finding]) -> ErrorBody {
    let list: Vec<_> = findings.iter().take(20).map(|one| format!("{}: {}", one.path, one.message)).collect();
    let message = format!("the handoff packet is invalid: {}", list.join("; "));
    let details = Value::parse(&format!("{{\"violations\":{}}}", findings.to_json())).unwrap_or_default();
    let mut error = ErrorBody::new(Code::InvalidInput, message).with_details(details);
    error.suggestion = findings.iter().find_map(|finding| finding.suggestion.clone());
    error
}
