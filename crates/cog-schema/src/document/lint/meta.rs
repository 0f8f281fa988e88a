//! Warnings about a `meta` that differs from the form that every envelope has.

use cog_spec::Risk;
use serde_json::Value;

use crate::document::lint::list::Warnings;
use crate::wording::quoted;

/// Warns about a confidence that is not from 0 to 1, and about unknown levels of risk.
pub(super) fn check(warnings: &mut Warnings, document: &Value, meta: Option<&String>) {
    let Some(pointer) = meta else { return };
    let Some(fields) = document.pointer(pointer).and_then(|meta| meta.get("properties")) else { return };
    if let Some(keyword) = fields.get("confidence").and_then(excluding_keyword) {
        let message = "`confidence` is always a number from 0 to 1".to_owned();
        let at = format!("{pointer}/properties/confidence/{keyword}");
        let help = "Write `\"type\": \"number\", \"minimum\": 0, \"maximum\": 1`.";
        warnings.add(&at, message, help.to_owned());
    }
    let levels = fields.pointer("/risk/enum").and_then(Value::as_array).into_iter().flatten();
    for (index, level) in levels.enumerate() {
        let Some(name) = level.as_str().filter(|name| !Risk::NAMES.contains(name)) else { continue };
        let message = format!("{} is not a level of risk", quoted(name));
        let at = format!("{pointer}/properties/risk/enum/{index}");
        warnings.add(&at, message, format!("The levels are {}.", Risk::NAMES.join(", ")));
    }
}

/// Returns the keyword of a schema that excludes fractions, or allows more than 1.
fn excluding_keyword(schema: &Value) -> Option<&'static str> {
    let is_number =
        |kind: &Value| kind == "number" || kind.as_array().is_some_and(|all| all.contains(&"number".into()));
    if schema.get("type").is_some_and(|kind| !is_number(kind)) {
        return Some("type");
    }
    let over = |keyword: &str| schema.get(keyword).and_then(Value::as_f64).is_some_and(|bound| bound > 1.0);
    ["maximum", "minimum"].into_iter().find(|keyword| over(keyword))
}
