//! What describes the program in everything that it exports.

use percent_encoding::percent_decode_str;

use super::Reader;

const SERVICE_NAME: &str = "service.name";
const SERVICE_INSTANCE: &str = "service.instance.id";

/// Reads `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME`, and adds what the specification requires.
pub(super) fn resource(reader: &mut Reader<'_>) -> Vec<(String, String)> {
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut set = |key: &str, value: String, replaces: bool| match attributes
        .iter_mut()
        .find(|(name, _)| name == key)
    {
        Some((_, known)) if replaces => *known = value,
        Some(_) => {}
        None => attributes.push((key.to_owned(), value)),
    };
    let text = reader.get("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                let value = percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
                set(key.trim(), value, true);
            }
            _ => {
                reader.note(format!("OTEL_RESOURCE_ATTRIBUTES: `{pair}` is not NAME=VALUE, and is left out"));
            }
        }
    }
    if let Some(name) = reader.get("OTEL_SERVICE_NAME") {
        set(SERVICE_NAME, name, true);
    }
    set(SERVICE_NAME, "cog".to_owned(), false);
    set("service.version", env!("CARGO_PKG_VERSION").to_owned(), false);
    set(SERVICE_INSTANCE, instance(), false);
    set("telemetry.sdk.name", "cog".to_owned(), true);
    set("telemetry.sdk.language", "rust".to_owned(), true);
    set("telemetry.sdk.version", env!("CARGO_PKG_VERSION").to_owned(), true);
    attributes
}

/// Returns a random UUID, so that the metrics of two programs are not taken for those of one.
fn instance() -> String {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        return std::process::id().to_string();
    }
    let id = u128::from_be_bytes(bytes) & !(0xf << 76 | 0x3 << 62) | 4 << 76 | 2 << 62;
    let text = format!("{id:032x}");
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    format!("{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
