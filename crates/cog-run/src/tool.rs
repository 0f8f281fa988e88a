//! The interface of a tool: what host programs and crates that connect to other systems implement (docs/tools.md).

mod info;

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use cog_harmony::Part;
use cog_json::Value;
use cog_spec::{Code, ErrorBody, ErrorCode, Usage};

pub use self::info::{InvalidTool, ToolEffects, ToolInfo};
use crate::{Cancellation, trace_context::SpanContext};

/// A tool that a model may call: a function of the host program, a module, or a tool of another system.
///
/// [`ToolInfo::function`] creates one from a closure.
pub trait Tool: Send + Sync {
    /// Returns the name, the description, the schema of the arguments, and what a call may do.
    fn info(&self) -> &ToolInfo;

    /// Runs the tool. The arguments match its schema. Dropping the future cancels the call, which happens when its time
    /// limit has passed or the run is cancelled.
    ///
    /// The calls of a round run in the task of the run, so that a tool must not block.
    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a>;
}

/// The future of a call to a tool.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// The run that calls a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The identifier of the call, to which the result refers.
    pub call_id: String,
    /// The session of the run.
    pub session_id: String,
    /// The owner of the run, if runs have owners.
    pub owner: Option<String>,
    /// The time limit of the call.
    pub timeout: Duration,
    /// The maximum size of the result in bytes. A tool that reads its result from elsewhere stops there.
    pub max_result_bytes: usize,
    /// The cancellation of the run.
    pub cancellation: Cancellation,
    /// The span of the call, for a tool that passes the trace on. Without a listener that needs spans, it is the caller's span.
    pub span: Option<SpanContext>,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The result as JSON. The model receives an object with `status: success` before its members, and any other value as
    /// `result`.
    pub value: Option<Value>,
    /// Images and other parts in addition to it, for a model that accepts them (appendix A.2.3).
    pub parts: Vec<Part>,
    /// The tokens that the tool spent on models; they count as tokens of the run.
    pub usage: Option<Usage>,
    /// The result has a high risk: from then on, every tool with side effects needs a confirmation.
    pub is_high_risk: bool,
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self { value: Some(value), ..Self::default() }
    }
}

impl From<serde_json::Value> for ToolOutput {
    fn from(value: serde_json::Value) -> Self {
        Value::from(value).into()
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        serde_json::Value::from(text).into()
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Why a call failed. The model receives it as JSON and decides whether to call again (appendix A.2.2).
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    /// The kind of the error, a name such as `InvalidDateRange`.
    pub error_type: String,
    /// What happened, and what the model can do.
    pub message: String,
    /// The code, if the runtime or a module reports the error.
    pub code: Option<ErrorCode>,
    /// Details for the model.
    pub details: Option<Value>,
    /// The tokens that the tool spent on models; they count as tokens of the run.
    pub usage: Option<Box<Usage>>,
}

impl ToolError {
    /// Creates an error of the tool.
    pub fn new(error_type: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            error_type: error_type.into(),
            message: message.into(),
            code: None,
            details: None,
            usage: None,
        }
    }

    /// Creates an error of the runtime, whose type is the name of the code.
    pub(crate) fn with_code(code: Code, message: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..Self::new(code.name(), message) }
    }
}

impl From<ErrorBody> for ToolError {
    fn from(error: ErrorBody) -> Self {
        let name = match &error.code {
            ErrorCode::Standard(code) => code.name().to_owned(),
            ErrorCode::Declared(code) => code.clone(),
        };
        Self { code: Some(error.code), details: error.details, ..Self::new(name, error.message) }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error_type, self.message)
    }
}

impl std::error::Error for ToolError {}

// A tool that is a function.

/// A tool that runs a function of the host program.
struct FunctionTool<F> {
    info: ToolInfo,
    function: F,
}

impl ToolInfo {
    /// Creates a tool that runs a function of the host program.
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
    pub fn function<F, R, O>(self, function: F) -> impl Tool + 'static
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

/// The tools of a runtime. Each has its own name.
#[derive(Clone, Default)]
pub(crate) struct ToolList(Vec<Arc<dyn Tool>>);

impl ToolList {
    /// Adds a tool. One of the same name is replaced.
    pub(crate) fn add(&mut self, tool: Arc<dyn Tool>) {
        let name = &tool.info().name;
        self.0.retain(|other| other.info().name != *name);
        self.0.push(tool);
    }

    /// Returns these tools and further ones. A further one replaces the tool of the same name.
    pub(crate) fn with(&self, more: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.clone();
        more.iter().for_each(|tool| tools.add(Arc::clone(tool)));
        tools.0
    }
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool {}", self.info().name)
    }
}
