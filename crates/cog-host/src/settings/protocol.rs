//! The setting that chooses between the protocols of OpenAI.

use cog_provider::protocol::ProtocolKind;

/// Reads the name of a protocol.
pub(super) fn parse(text: &str) -> Result<ProtocolKind, String> {
    let kind = ProtocolKind::from_setting(text);
    kind.ok_or_else(|| format!("`{text}` is not a protocol: use chat or responses"))
}
