//! The positions of the schemas of context (docs/spec/context.md). They are parts of the document, so that they are compiled
//! once with the contract, and a request can contain the schemas of emitted context.

use serde_json::{Map, Value};

/// The section of a document that contains the schemas of context.
const SECTION: &str = "$context";

/// Returns the JSON pointer of the schema of a context: `list` is `accepts` or `emits` of the manifest, and `name` a type. The
/// loader of a module inserts the schema there.
pub fn context_pointer(list: &str, name: &str) -> String {
    format!("/{SECTION}/{list}/{name}")
}

/// Returns the pointers of all schemas of context in a document.
pub(crate) fn pointers(document: &Value) -> Vec<String> {
    let lists = document.get(SECTION).and_then(Value::as_object).into_iter().flatten();
    let names = lists.flat_map(|(list, types)| {
        let types = types.as_object().into_iter().flat_map(Map::keys);
        types.map(move |name| context_pointer(list, name))
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_of_context_are_in_their_own_section() {
        assert_eq!(context_pointer("emits", "notes"), "/$context/emits/notes");
        let document = json!({ "$context": { "accepts": { "a": {} }, "emits": { "a": {}, "b": {} } } });
        let found = ["/$context/accepts/a", "/$context/emits/a", "/$context/emits/b"];
        assert_eq!(pointers(&document), found);
        assert!(found.iter().all(|pointer| document.pointer(pointer).is_some()));
        assert_eq!(pointers(&json!({ "data": {} })), [""; 0]);
    }
}
