use cog_json::{ToJson, Writer};

/// A tool that the model wants called (appendix A.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// What the result will refer to; the only link between the two.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments: a string that holds JSON, never an object.
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
