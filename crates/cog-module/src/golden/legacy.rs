use cog_json::{Node, Value};
use serde_json::Value as Json;

/// Returns an envelope with the code of its error as the model wrote it, if the runtime replaced it.
pub(super) fn as_written(envelope: Node<'_>) -> Option<Value> {
    envelope.get("error")?.get("details")?.get("legacy_code")?;
    let mut envelope = serde_json::to_value(envelope).ok()?;
    let error = envelope.get_mut("error")?.as_object_mut()?;
    let details = error.get_mut("details")?.as_object_mut()?;
    let code = details.remove("legacy_code").filter(Json::is_string)?;
    if details.is_empty() {
        error.remove("details");
    }
    error.insert("code".to_owned(), code);
    Some(Value::from(envelope))
}
