//! What a provider written in Python receives.

use cog_run::provider::{ModelRequest, ProviderInfo, ToolChoice};
use pyo3::{
    IntoPyObjectExt as _,
    prelude::*,
    types::{PyDict, PyList},
};

use crate::to_python::{json_to_python, to_python};

/// A request to a model.
#[pyclass(name = "ModelRequest", module = "cognitive", frozen)]
pub(crate) struct PythonRequest {
    request: ModelRequest,
    model: String,
}

impl PythonRequest {
    pub(crate) fn new(request: ModelRequest, info: &ProviderInfo) -> Self {
        let model = info.model_or_default(&request.model).to_owned();
        Self { request, model }
    }
}

#[pymethods]
impl PythonRequest {
    /// The model.
    #[getter]
    fn model(&self) -> &str {
        &self.model
    }

    /// The messages as dicts with `role` and `content`, in order. A content that is only text is a str.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let messages = self.request.messages.messages().iter().map(|message| {
            let converted = json_to_python(py, message)?;
            let is_text = message.content.iter().all(|part| part.as_text().is_some());
            if is_text && !message.content.is_empty() {
                converted.set_item("content", message.text())?;
            }
            Ok(converted)
        });
        PyList::new(py, messages.collect::<PyResult<Vec<_>>>()?)
    }

    /// The JSON Schema of the answer, if it is known. The messages describe it too.
    #[getter]
    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let schema = self.request.output.as_ref().and_then(|output| output.schema.as_ref());
        schema.map(|schema| to_python(py, schema.node())).transpose()
    }

    /// The tools that the model may call, as dicts with `name`, `description` and `parameters`.
    #[getter]
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for tool in self.request.tools.iter().flat_map(|tools| &tools.definitions) {
            let shown = PyDict::new(py);
            shown.set_item("name", &tool.name)?;
            shown.set_item("description", &tool.description)?;
            shown.set_item("parameters", to_python(py, tool.parameters.node())?)?;
            list.append(shown)?;
        }
        Ok(list)
    }

    /// Which tools the model may call: `auto`, `none`, `required`, or the name of the tool.
    #[getter]
    fn tool_choice(&self) -> &str {
        match self.request.tools.as_ref().map(|tools| &tools.choice) {
            Some(ToolChoice::Auto) => "auto",
            Some(ToolChoice::Required) => "required",
            Some(ToolChoice::Named(name)) => name,
            Some(ToolChoice::None) | None => "none",
        }
    }

    /// The parameters that are set: `temperature`, `max_tokens`, `seed`, `stop`, `effort`, `verbosity`.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let generation = &self.request.generation;
        let stop = (!generation.stop.is_empty()).then(|| generation.stop.clone());
        let all = [
            ("temperature", generation.temperature.into_bound_py_any(py)?),
            ("max_tokens", generation.max_tokens.into_bound_py_any(py)?),
            ("seed", generation.seed.into_bound_py_any(py)?),
            ("stop", stop.into_bound_py_any(py)?),
            ("effort", generation.effort.map(|it| it.as_str()).into_bound_py_any(py)?),
            ("verbosity", generation.verbosity.map(|it| it.as_str()).into_bound_py_any(py)?),
        ];
        let parameters = PyDict::new(py);
        for (name, value) in all.into_iter().filter(|(_, value)| !value.is_none()) {
            parameters.set_item(name, value)?;
        }
        Ok(parameters)
    }

    /// The time limit of the call in seconds, if there is one.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.request.timeout.map(|limit| limit.as_secs_f64())
    }

    fn __repr__(&self) -> String {
        format!("ModelRequest(model={:?}, messages={})", self.model, self.request.messages.messages().len())
    }
}
