use cog_json::Value;

use super::{Tool, ToolContext, ToolError, ToolFuture, ToolInfo, ToolOutput};

/// A tool that runs a function of the host program.
///
/// ```
/// use cog_run::{Value, tools::{ToolError, ToolInfo}};
///
/// let parameters = Value::parse(r#"{
///     "type": "object", "required": ["celsius"], "properties": {"celsius": {"type": "number"}}
/// }"#)?;
/// let tool = ToolInfo::new("to_fahrenheit", "Converts a temperature.", &parameters)?.function(
///     async |arguments: Value, _| {
///         let celsius = arguments.get("celsius").and_then(|it| it.as_f64());
///         let celsius = celsius.ok_or_else(|| ToolError::new("OutOfRange", "Send a finite number."))?;
///         Ok(serde_json::json!({ "fahrenheit": celsius * 1.8 + 32.0 }))
///     },
/// );
/// # let _ = tool;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FunctionTool<F> {
    info: ToolInfo,
    function: F,
}

impl ToolInfo {
    /// Creates a tool that runs a function.
    pub fn function<F, R, O>(self, function: F) -> FunctionTool<F>
    where
        F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        FunctionTool { info: self, function }
    }
}

impl<F, R, O> Tool for FunctionTool<F>
where
    F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput>,
{
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        let call = (self.function)(arguments, context.clone());
        Box::pin(async { call.await.map(Into::into) })
    }
}
