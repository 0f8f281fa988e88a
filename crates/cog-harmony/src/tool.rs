use serde::{Serialize, Serializer};

/// A tool call that the model requests (appendix A.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The identifier to which the result refers.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments: a string that contains JSON, never an object.
    pub arguments: String,
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { id, name, arguments } = self;
        ToolCallForm { id, r#type: "function", function: Function { name, arguments } }.serialize(serializer)
    }
}

/// A tool call as it is written.
#[derive(Serialize)]
struct ToolCallForm<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}
