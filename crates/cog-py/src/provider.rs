//! Providers that are Python objects.

use std::{collections::VecDeque, pin::Pin, sync::Arc};

use cog_run::{
    Code, ToJson as _,
    provider::{
        Conversation, FinishReason, Modality, ModelEvent, ModelFuture, ModelRequest, ModelStream, Provider,
        ProviderError, ProviderInfo, ToolCallDelta, ToolChoice, ToolSettings, Usage, provider_names,
    },
};
use futures_util::{StreamExt as _, stream};
use pyo3::{
    IntoPyObjectExt as _, PyTraverseError, PyVisit,
    exceptions::{PyBrokenPipeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyList, PyString},
};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::{
    attach::attached,
    caller::{Callback, Caller, value},
    from_python::convert,
    to_python::{json_to_python, to_python},
};

/// The maximum number of parts that wait to be read.
const MAX_PARTS: usize = 64;

/// A provider that can be registered.
#[pyclass(name = "NativeProvider", module = "cognitive._cognitive", frozen)]
pub(crate) struct NativeProvider(pub(crate) Arc<OwnProvider>);

/// A provider that calls a Python object.
#[derive(Clone)]
pub(crate) struct OwnProvider {
    info: ProviderInfo,
    callback: Arc<Callback>,
}

#[pymethods]
impl NativeProvider {
    /// `respond` receives a request and the [`ReplyParts`] of the reply.
    #[new]
    #[pyo3(signature = (*, name, model, images, respond, is_async))]
    fn new(name: String, model: String, images: bool, respond: Py<PyAny>, is_async: bool) -> PyResult<Self> {
        if name.is_empty() || name.len() > 64 || !name.bytes().all(is_of_name) {
            return Err(PyValueError::new_err(format!(
                "providers: {name:?} is not a valid name; use 1 to 64 letters, digits, `_`, `-` or `.`"
            )));
        }
        if provider_names().contains(&name.to_ascii_lowercase().as_str()) {
            return Err(PyValueError::new_err(format!(
                "providers: {name:?} is a built-in provider; use another name"
            )));
        }
        let mut info = ProviderInfo::new("", "");
        (info.name, info.model) = (name.into(), model.into());
        info.tools = &[ToolSettings::PLAIN];
        if images {
            info.input = &[Modality::Text, Modality::Image];
        }
        let callback = Arc::new(Callback::new(respond, is_async));
        Ok(Self(Arc::new(OwnProvider { info, callback })))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.callback.traverse(&visit)
    }

    fn __clear__(&self) {
        self.0.callback.clear();
    }
}

impl OwnProvider {
    /// Returns the provider with another model.
    pub(crate) fn with_model(&self, model: String) -> Self {
        let mut own = self.clone();
        own.info.model = model.into();
        own
    }

    /// Starts the call, and waits for its first event.
    async fn start(&self, request: &ModelRequest) -> Result<ModelStream, ProviderError> {
        let (send, receive) = mpsc::channel(MAX_PARTS);
        let callback = Arc::clone(&self.callback);
        let name = self.info.name.clone().into_owned();
        let request = PythonRequest::new(request.clone(), &self.info);
        let call = async move {
            let parts = ReplyParts(send);
            let arguments =
                |py: Python<'_>| Ok(vec![Py::new(py, request)?.into_any(), Py::new(py, parts)?.into_any()]);
            let error = callback.call(arguments).await.err()?;
            match failed(&name, &error) {
                Some(error) => Some(error),
                // The caller of the run notices it now, and drops this future.
                None => std::future::pending().await,
            }
        };
        let reply = Reply { receive, call: Some(Box::pin(call)), waiting: VecDeque::new(), error: None };
        let events = stream::unfold(reply, async |mut reply| Some((reply.next().await?, reply)));
        let mut events: ModelStream = Box::pin(events);
        match events.next().await {
            Some(first) => Ok(Box::pin(stream::iter([Ok(first?)]).chain(events))),
            None => Err(ProviderError::Other {
                code: Code::StreamInterrupted,
                message: format!("the provider `{}` returned nothing", self.info.name),
            }),
        }
    }
}

impl Provider for OwnProvider {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(self.start(request))
    }
}

/// A reply that arrives. Dropping it cancels the call.
struct Reply {
    receive: mpsc::Receiver<Vec<ModelEvent>>,
    /// The call, until it ends.
    call: Option<Pin<Box<dyn Future<Output = Option<ProviderError>> + Send>>>,
    waiting: VecDeque<ModelEvent>,
    error: Option<ProviderError>,
}

impl Reply {
    async fn next(&mut self) -> Option<Result<ModelEvent, ProviderError>> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(Ok(event));
            }
            let Some(call) = &mut self.call else {
                match self.receive.recv().await {
                    Some(events) => self.waiting.extend(events),
                    None => return self.error.take().map(Err),
                }
                continue;
            };
            tokio::select! {
                biased;
                Some(events) = self.receive.recv() => self.waiting.extend(events),
                error = call => {
                    self.error = error;
                    self.call = None;
                    // The parts may live longer than the call: an exception refers to them.
                    self.receive.close();
                }
            }
        }
    }
}

/// Where a provider puts the parts of its reply.
#[pyclass(name = "ReplyParts", module = "cognitive._cognitive", frozen)]
pub(crate) struct ReplyParts(mpsc::Sender<Vec<ModelEvent>>);

#[pymethods]
impl ReplyParts {
    /// Adds a string or a `Reply`. Returns False if too many parts wait.
    ///
    /// Raises `BrokenPipeError` if the run does not read them any more.
    fn push(&self, part: &Bound<'_, PyAny>) -> PyResult<bool> {
        let events = match part.cast::<PyString>() {
            Ok(text) => vec![ModelEvent::Text(text.to_str()?.to_owned())],
            Err(_) => events(part)?,
        };
        match self.0.try_send(events) {
            Ok(()) => Ok(true),
            Err(TrySendError::Full(_)) => Ok(false),
            Err(TrySendError::Closed(_)) => Err(PyBrokenPipeError::new_err("the run has ended")),
        }
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-.".contains(&byte)
}

fn text(reply: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<String>> {
    reply.getattr(name)?.extract()
}

fn count(reply: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<u64>> {
    reply.getattr(name)?.extract()
}

/// Returns the events of a `Reply`.
fn events(reply: &Bound<'_, PyAny>) -> PyResult<Vec<ModelEvent>> {
    let mut events = Vec::new();
    if let Some(model) = text(reply, "model")? {
        events.push(ModelEvent::Started { model: Some(model), id: None, fingerprint: None });
    }
    events.extend(text(reply, "reasoning")?.map(ModelEvent::Reasoning));
    events.extend(text(reply, "text")?.filter(|text| !text.is_empty()).map(ModelEvent::Text));
    for (index, call) in (0..).zip(reply.getattr("tool_calls")?.try_iter()?) {
        events.push(ModelEvent::ToolCall(tool_call(index, &call?)?));
    }
    let has_calls = matches!(events.last(), Some(ModelEvent::ToolCall(_)));
    events.push(ModelEvent::Finished(finish_reason(text(reply, "finish_reason")?, has_calls)?));
    if let Some(input_tokens) = count(reply, "input_tokens")?
        && let Some(output_tokens) = count(reply, "output_tokens")?
    {
        events.push(ModelEvent::Usage(Usage { input_tokens, output_tokens, ..Usage::default() }));
    }
    Ok(events)
}

fn tool_call(index: u32, call: &Bound<'_, PyAny>) -> PyResult<ToolCallDelta> {
    let arguments = convert(&call.getattr("arguments")?, "arguments")?.value;
    Ok(ToolCallDelta {
        index,
        id: Some(call.getattr("id")?.extract()?),
        name: Some(call.getattr("name")?.extract()?),
        arguments: arguments.to_json(),
        signature: None,
    })
}

fn finish_reason(name: Option<String>, has_calls: bool) -> PyResult<FinishReason> {
    match name.as_deref() {
        None if has_calls => Ok(FinishReason::ToolCalls),
        None | Some("stop") => Ok(FinishReason::Stop),
        Some("length") => Ok(FinishReason::Length),
        Some("refusal") => Ok(FinishReason::Refusal(None)),
        Some("content_filter") => Ok(FinishReason::ContentFilter),
        Some("tool_calls") => Ok(FinishReason::ToolCalls),
        Some(other) => Err(PyValueError::new_err(format!(
            "finish_reason: found {other:?}; allowed: stop, length, refusal, content_filter, tool_calls, None"
        ))),
    }
}

/// Returns an exception as the error of the provider; none if it ends the run.
fn failed(name: &str, error: &PyErr) -> Option<ProviderError> {
    static DESCRIBE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let described = attached(|py| {
        let caller = Caller::current()?;
        if !caller.survives(py, error) {
            return Ok(None);
        }
        caller.set_cause(py, error);
        let describe = DESCRIBE.import(py, "cognitive._calls", "provider_failed")?;
        let (code, message): (String, String) = describe.call1((name, value(py, error)))?.extract()?;
        let code = code.parse().unwrap_or(Code::ProviderUnavailable);
        Ok(Some(ProviderError::Other { code, message: caller.redact(&message) }))
    });
    described.unwrap_or_else(|error| {
        Some(ProviderError::Other { code: Code::InternalError, message: error.to_string() })
    })
}

/// Returns messages as dicts with `role` and `content`. A content that is only text is a str.
pub(crate) fn messages_to_python<'py>(
    py: Python<'py>,
    conversation: &Conversation,
) -> PyResult<Bound<'py, PyList>> {
    let messages = conversation.messages().iter().map(|message| {
        let converted = json_to_python(py, message)?;
        let is_text = message.content.iter().all(|part| part.as_text().is_some());
        if is_text && !message.content.is_empty() {
            converted.set_item("content", message.text())?;
        }
        Ok(converted)
    });
    PyList::new(py, messages.collect::<PyResult<Vec<_>>>()?)
}

/// A request to a model.
#[pyclass(name = "ModelRequest", module = "cognitive", frozen)]
pub(crate) struct PythonRequest {
    request: ModelRequest,
    model: String,
}

impl PythonRequest {
    fn new(mut request: ModelRequest, info: &ProviderInfo) -> Self {
        let model = info.model_or_default(&request.model).to_owned();
        // A program may keep the request, and with these the listeners of the run: hooks that own their runtime were never freed.
        request.on_retry = None;
        request.on_reply = None;
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
        messages_to_python(py, &self.request.messages)
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
