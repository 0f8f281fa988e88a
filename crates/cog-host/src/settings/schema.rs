//! The JSON Schema of the settings files, for editors.

use serde_json::Value;

#[cfg(feature = "server")]
use super::SERVER_SETTINGS;

/// The schema without the section of the server, whose keys are in a table already.
const FILE: &str = include_str!("../../schemas/settings.json");

/// Returns the JSON Schema (draft-07) of `cog.toml` and `config.toml`, with a newline at the end.
pub fn settings_schema() -> String {
    #[cfg_attr(not(feature = "server"), expect(unused_mut, reason = "there is no server"))]
    let mut schema: Value = serde_json::from_str(FILE).unwrap_or_default();
    #[cfg(feature = "server")]
    if let Some(Value::Object(keys)) = schema.pointer_mut("/properties/server/properties") {
        // A value can be written as text, as in a variable, or as the number or the switch that it is.
        let types = serde_json::json!(["string", "integer", "number", "boolean"]);
        keys.extend(SERVER_SETTINGS.iter().map(|setting| {
            let operator = if setting.is_operators { " Operator only." } else { "" };
            let description = format!("{}.{operator}", setting.help);
            (setting.key(), serde_json::json!({ "description": description, "type": types }))
        }));
    }
    format!("{schema:#}\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::settings::file::known_keys;

    #[test]
    fn schema_has_the_keys_that_the_file_may_have() {
        let schema: Value = serde_json::from_str(&settings_schema()).unwrap();
        for (section, pointer) in [
            ("", ""),
            ("[media]", "/properties/media"),
            ("[logs]", "/properties/logs"),
            ("[tools]", "/properties/tools"),
            ("[budget]", "/properties/budget"),
            ("[cache]", "/properties/cache"),
            ("[nats]", "/properties/nats"),
            ("[providers.openai]", "/definitions/provider"),
            ("[providers.openai.prices.m]", "/definitions/price"),
            #[cfg(feature = "mcp")]
            ("[mcp.a]", "/definitions/mcp_server"),
            #[cfg(feature = "mcp")]
            ("[mcp.a.oauth]", "/definitions/mcp_server/properties/oauth"),
        ] {
            let known: BTreeSet<String> = known_keys(section).into_iter().collect();
            let named = schema.pointer(&format!("{pointer}/properties")).unwrap().as_object().unwrap();
            let mut named: BTreeSet<String> = named.keys().cloned().collect();
            if !cfg!(feature = "mcp") {
                named.remove("mcp");
            }
            assert_eq!(named, known, "{section}");
        }
        #[cfg(feature = "server")]
        assert_eq!(
            schema.pointer("/properties/server/properties").unwrap().as_object().unwrap().len(),
            SERVER_SETTINGS.len()
        );
        assert_eq!(schema.pointer("/properties/server/additionalProperties"), Some(&Value::Bool(false)));
    }
}
