use cog_json::{ToJson, Writer};

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

impl ToJson for ToolCall {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("id", &self.id);
            w.field("type", "function");
            w.key("function");
            w.object(|w| {
                w.field("name", &self.name);
                w.field("arguments", &self.arguments);
            });
        });
    }
}
