//! The envelope of a run.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, OnceLock},
};

use cog_json::{ToJson as _, Value};
use cog_run::feedback::{Feedback, LabelKind};
use cog_spec::{Envelope, ErrorBody, Outcome};
use pyo3::{
    PyTraverseError, PyVisit,
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyList, PyType},
};

use crate::{
    caller::Caller,
    error::ErrorInfo,
    from_python::convert,
    hosted::LoggedRun,
    to_python::{card, json_to_python, parse, to_python},
};

/// The result of a run: the envelope, as an object.
#[pyclass(name = "Result", module = "cognitive", frozen)]
pub(crate) struct RunResult {
    envelope: Envelope,
    data: PyOnceLock<Py<PyAny>>,
    meta: PyOnceLock<Py<PyAny>>,
    /// What the Python functions of the run raised, in order.
    exceptions: Vec<Py<PyAny>>,
    /// Because of which the provider of the run failed.
    cause: Option<Py<PyAny>>,
    /// The type of `data`; without one it is JSON.
    kind: Option<Py<PyAny>>,
    /// What continues the run if it waits for a confirmation.
    origin: OnceLock<Py<PyAny>>,
    /// The run; none if the result was read from JSON.
    run: Option<Arc<LoggedRun>>,
}

impl RunResult {
    pub(crate) fn new(envelope: Envelope) -> Self {
        Self {
            envelope,
            data: PyOnceLock::new(),
            meta: PyOnceLock::new(),
            exceptions: Vec::new(),
            cause: None,
            kind: None,
            origin: OnceLock::new(),
            run: None,
        }
    }

    /// Returns the envelope as JSON.
    pub(crate) fn json(&self) -> String {
        self.envelope.to_json()
    }

    /// Creates the result of a run with what its Python functions raised.
    pub(crate) fn from_run(
        py: Python<'_>,
        envelope: Envelope,
        caller: Option<&Caller>,
        run: Arc<LoggedRun>,
    ) -> Self {
        let (exceptions, cause) = caller.map(|caller| caller.exceptions(py)).unwrap_or_default();
        Self { exceptions, cause, run: Some(run), ..Self::new(envelope) }
    }
}

#[pymethods]
impl RunResult {
    /// Reads an envelope from JSON.
    #[new]
    #[pyo3(signature = (json, kind = None))]
    fn read(py: Python<'_>, json: &str, kind: Option<Py<PyAny>>) -> PyResult<Self> {
        match parse(py, json).map(|value| Envelope::read(value.node())) {
            Ok(Some(envelope)) => Ok(Self { kind, ..Self::new(envelope) }),
            Ok(None) => Err(PyValueError::new_err("the text is not the envelope of a run")),
            Err(error) => Err(PyValueError::new_err(format!("the text is not JSON: {error}"))),
        }
    }

    /// `Result[Data]` is a type for type checkers.
    #[classmethod]
    fn __class_getitem__<'py>(
        class: &Bound<'py, PyType>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static ALIAS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        ALIAS.import(class.py(), "types", "GenericAlias")?.call1((class, data))
    }

    /// How it is pickled and copied.
    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyType>, (String, Option<Py<PyAny>>)) {
        let kind = self.kind.as_ref().map(|kind| kind.clone_ref(py));
        (py.get_type::<Self>(), (self.envelope.to_json(), kind))
    }

    /// The same result with `data` of this type.
    fn typed(&self, py: Python<'_>, kind: Py<PyAny>) -> Self {
        let origin = OnceLock::new();
        if let Some(own) = self.origin.get() {
            let _ = origin.set(own.clone_ref(py));
        }
        Self {
            exceptions: self.exceptions.iter().map(|error| error.clone_ref(py)).collect(),
            cause: self.cause.as_ref().map(|cause| cause.clone_ref(py)),
            kind: Some(kind),
            origin,
            run: self.run.clone(),
            ..Self::new(self.envelope.clone())
        }
    }

    /// Sets what continues the run. The runtime calls it for a run that failed.
    fn _set_origin(&self, origin: Py<PyAny>) {
        let _ = self.origin.set(origin);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let single = [self.cause.as_ref(), self.kind.as_ref(), self.origin.get()];
        self.exceptions.iter().map(Some).chain(single).try_for_each(|object| visit.call(object))
    }

    /// Whether the run succeeded.
    #[getter]
    fn ok(&self) -> bool {
        self.envelope.is_ok()
    }

    /// The answer of a successful run, otherwise None.
    #[getter]
    pub(crate) fn data(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let data = self.data.get_or_try_init(py, || match (self.envelope.data(), &self.kind) {
            (Some(data), Some(kind)) => converted(data, kind.bind(py)).map(Bound::unbind),
            (data, _) => optional(py, data),
        });
        Ok(data?.clone_ref(py))
    }

    /// The part of the answer of a failed run that is available.
    #[getter]
    fn partial_data(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match &self.envelope.outcome {
            Outcome::Failure { partial_data, .. } => optional(py, partial_data.as_ref()),
            Outcome::Success { .. } => Ok(py.None()),
        }
    }

    /// The control plane: confidence, risk, explain, and what the runtime adds.
    #[getter]
    fn meta(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let meta =
            self.meta.get_or_try_init(py, || json_to_python(py, &self.envelope.meta).map(Bound::unbind));
        Ok(meta?.clone_ref(py))
    }

    /// The error of a failed run, otherwise None.
    #[getter]
    fn error(&self) -> Option<ErrorInfo> {
        self.envelope.error().cloned().map(ErrorInfo)
    }

    /// The calls that wait for a confirmation, which end a run with E4007; otherwise None.
    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let halted = self.envelope.error().and_then(|error| error.detail("halted"));
        let Some(halted) = halted else { return Ok(None) };
        let class = CLASS.import(py, "cognitive._pending", "Pending")?;
        class.call1((to_python(py, halted)?, self.origin.get(), &self.kind)).map(Some)
    }

    /// The warnings.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, &self.envelope.warnings)
    }

    /// What tools and providers written in Python raised, in order. A model may have answered nevertheless.
    #[getter]
    fn exceptions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.exceptions.iter().map(|error| error.bind(py)))
    }

    /// Says whether the answer is right: `"right"`, `"wrong"`, or `"corrected"` with the right answer.
    #[pyo3(signature = (label, *, data = None, note = None))]
    fn label(
        &self,
        py: Python<'_>,
        label: &str,
        data: Option<&Bound<'_, PyAny>>,
        note: Option<String>,
    ) -> PyResult<()> {
        let label: LabelKind = label.parse().map_err(PyValueError::new_err)?;
        let data = data.map(|data| Ok::<_, PyErr>(convert(data, "data")?.value)).transpose()?;
        let Some(run) = self.run.clone() else {
            return Err(PyValueError::new_err("only the result of a run of this process can be labelled"));
        };
        let stored = py.detach(|| run.label(Feedback::new(label, data, note)?));
        stored.map_err(|error| exception(py, error))
    }

    /// Raises `CognitiveError` if the run failed; otherwise returns the result.
    fn raise_for_error(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        match slf.get().envelope.is_ok() {
            true => Ok(slf),
            false => Err(exception_of(&slf)?),
        }
    }

    /// The answer as a Pydantic model, a dataclass, a `TypedDict`, or a type of these.
    fn as_type<'py>(slf: &Bound<'py, Self>, kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().envelope.data() {
            Some(data) => converted(data, kind),
            None => Err(exception_of(slf)?),
        }
    }

    /// The envelope as a dict.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, &self.envelope)
    }

    /// The envelope as JSON, in one line or indented.
    #[pyo3(signature = (*, indent = false))]
    fn to_json(&self, indent: bool) -> String {
        if indent { self.envelope.to_json_pretty() } else { self.envelope.to_json() }
    }

    /// The card that a notebook shows.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        card("result", slf)
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.json() == other.json()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.json().hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        match self.envelope.error() {
            None => format!("Result(ok=True, data={})", shortened(self.envelope.data())),
            Some(error) => {
                format!("Result(ok=False, error={}: {:?})", error.code.as_str(), error.message)
            }
        }
    }

    /// `if result:` could mean several things, so it is an error.
    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err("a result is neither true nor false; use result.ok or result.data"))
    }
}

/// Converts the data of an answer to a type.
fn converted<'py>(data: &Value, kind: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static CONVERT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static VALIDATE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = kind.py();
    if kind.hasattr("__pydantic_validator__")? {
        // Pydantic reads the text; objects of it would be made for nothing.
        let validate = VALIDATE.import(py, "cognitive._types", "to_model")?;
        return validate.call1((data.to_json(), kind));
    }
    CONVERT.import(py, "cognitive._types", "to_type")?.call1((
        to_python(py, data.node())?,
        data.to_json(),
        kind,
    ))
}

/// Returns data as JSON for a person, of which a long one is cut.
fn shortened(data: Option<&Value>) -> String {
    const LENGTH: usize = 200;
    let text = data.map(|data| data.to_json()).unwrap_or_default();
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn optional(py: Python<'_>, value: Option<&Value>) -> PyResult<Py<PyAny>> {
    value.map_or_else(|| Ok(py.None()), |value| to_python(py, value.node()).map(Bound::unbind))
}

/// Returns the exception of a failed run.
pub(crate) fn exception_of(result: &Bound<'_, RunResult>) -> PyResult<PyErr> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(result.py(), "cognitive._errors", "CognitiveError")?;
    let error = PyErr::from_value(class.call1((result,))?);
    if let Some(cause) = &result.get().cause {
        error.set_cause(result.py(), Some(PyErr::from_value(cause.bind(result.py()).clone())));
    }
    Ok(error)
}

/// Returns the exception of an error that was found before a run.
pub(crate) fn exception(py: Python<'_>, error: ErrorBody) -> PyErr {
    let result = Bound::new(py, RunResult::new(Envelope::failure(error)));
    result.and_then(|result| exception_of(&result)).unwrap_or_else(|error| error)
}
