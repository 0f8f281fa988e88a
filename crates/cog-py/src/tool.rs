//! Tools that are Python functions.

use std::sync::Arc;

use cog_run::{
    ToJson as _, Value,
    provider::Part,
    tools::{Tool, ToolContext, ToolEffects, ToolError, ToolFuture, ToolInfo, ToolOutput},
};
use pyo3::{
    PyTraverseError, PyVisit, exceptions::PyValueError, prelude::*, sync::PyOnceLock, types::PyBytes,
};

use crate::{
    attach::attached,
    caller::{Callback, Caller, value, warn},
    from_python::{convert, seconds},
    to_python::to_python,
};

/// A tool with its compiled schema.
#[pyclass(name = "NativeTool", module = "cognitive._cognitive", frozen)]
pub(crate) struct NativeTool(pub(crate) Arc<FunctionTool>);

/// A tool that calls a Python function.
pub(crate) struct FunctionTool {
    info: ToolInfo,
    callback: Callback,
}

#[pymethods]
impl NativeTool {
    /// `effects` are network, filesystem_write, side_effects and code_execution, in this order.
    #[new]
    #[pyo3(signature = (*, name, description, parameters, effects, confirm, timeout, function, is_async))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of a Python class")]
    fn new(
        name: String,
        description: String,
        parameters: &Bound<'_, PyAny>,
        effects: (bool, bool, bool, bool),
        confirm: bool,
        timeout: Option<f64>,
        function: Py<PyAny>,
        is_async: bool,
    ) -> PyResult<Self> {
        let parameters = convert(parameters, "parameters")?.value;
        let info = ToolInfo::new(name, description, &parameters);
        let mut info = info.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (network, filesystem_write, side_effects, code_execution) = effects;
        info.effects = ToolEffects { network, filesystem_write, side_effects, code_execution };
        info.needs_confirmation = confirm;
        info.timeout = timeout.map(|time| seconds("timeout", time)).transpose()?;
        Ok(Self(Arc::new(FunctionTool { info, callback: Callback::new(function, is_async) })))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.callback.traverse(&visit)
    }

    fn __clear__(&self) {
        self.0.callback.clear();
    }
}

impl FunctionTool {
    async fn run(&self, arguments: Value) -> Result<ToolOutput, ToolError> {
        let called = self.callback.call(move |py| Ok(vec![to_python(py, arguments.node())?.unbind()])).await;
        let ended = called.and_then(|result| attached(|py| output(result.bind(py))));
        match ended.map_err(|error| self.failed(error)) {
            Ok(output) => Ok(output),
            Err(Some(error)) => Err(error),
            // The caller of the run notices it now, and drops this future.
            Err(None) => std::future::pending().await,
        }
    }

    /// Returns an exception as an error for the model; none if it ends the run.
    fn failed(&self, error: PyErr) -> Option<ToolError> {
        let described = attached(|py| {
            let caller = Caller::current()?;
            if !caller.survives(py, &error) {
                return Ok(None);
            }
            describe(py, &caller, &self.info.name, &error).map(Some)
        });
        described.unwrap_or_else(|error| Some(ToolError::new("InternalError", error.to_string())))
    }
}

impl Tool for FunctionTool {
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn call<'a>(&'a self, arguments: Value, _context: &'a ToolContext) -> ToolFuture<'a> {
        Box::pin(self.run(arguments))
    }
}

/// Converts a result. Bytes of an image or another media file become a part next to the text.
fn output(result: &Bound<'_, PyAny>) -> PyResult<ToolOutput> {
    if let Ok(bytes) = result.cast::<PyBytes>()
        && let Some(media_type) = cog_media::sniff(bytes.as_bytes())
    {
        let data = base64_simd::STANDARD.encode_to_string(bytes.as_bytes());
        return Ok(ToolOutput { parts: vec![Part::media(media_type, data)], ..ToolOutput::default() });
    }
    Ok(convert(result, "result")?.value.into())
}

/// Returns the error that the model receives, without keys, and logs the exception for the programmer.
fn describe(py: Python<'_>, caller: &Caller, tool: &str, error: &PyErr) -> PyResult<ToolError> {
    static DESCRIBE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let describe = DESCRIBE.import(py, "cognitive._calls", "tool_failed")?;
    let described = describe.call1((tool, value(py, error)))?;
    let (kind, message, details): (String, String, Option<Bound<'_, PyAny>>) = described.extract()?;
    let error = ToolError::new(kind, caller.redact(&message));
    let Some(details) = details else { return Ok(error) };
    match convert(&details, "details") {
        Ok(details) => {
            let details = Value::parse(&caller.redact(&details.value.to_json())).ok();
            Ok(ToolError { details, ..error })
        }
        Err(wrong) => {
            caller.record(py, &wrong);
            warn(format!("the model does not receive the details of an error of the tool {tool:?}: {wrong}"));
            Ok(error)
        }
    }
}
