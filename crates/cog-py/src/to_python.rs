//! JSON as Python objects.

use cog_json::{Kind, Node, SyntaxError, ToJson, Value};
use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyType},
};

/// Converts a node to `dict`, `list`, `str`, `int`, `float`, `bool` or `None`. A number of any size keeps its value: an integer with
/// more than 4,300 digits becomes a `Decimal`, and so does a number beyond the largest float.
pub(crate) fn to_python<'py>(py: Python<'py>, node: Node<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match node.kind() {
        Kind::Null => py.None().into_bound(py),
        Kind::Bool => PyBool::new(py, node.as_bool().unwrap_or_default()).to_owned().into_any(),
        Kind::Number => number(py, node)?,
        Kind::String => PyString::new(py, node.as_str().unwrap_or_default()).into_any(),
        Kind::Array => {
            let list = PyList::empty(py);
            for element in node.elements() {
                list.append(to_python(py, element)?)?;
            }
            list.into_any()
        }
        Kind::Object => {
            let dict = PyDict::new(py);
            for (key, value) in node.members() {
                dict.set_item(key, to_python(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

fn number<'py>(py: Python<'py>, node: Node<'_>) -> PyResult<Bound<'py, PyAny>> {
    let Some(number) = node.as_number() else { return Ok(py.None().into_bound(py)) };
    if !number.is_plain_integer() {
        return match number.literal().parse::<f64>() {
            Ok(float) if float.is_finite() => Ok(PyFloat::new(py, float).into_any()),
            // Exponents of more than 18 digits have no `Decimal`.
            _ => decimal(py, number.literal()).or_else(|_| Ok(PyFloat::new(py, number.as_f64()).into_any())),
        };
    }
    match number.as_i64() {
        Some(small) => Ok(small.into_pyobject(py)?.into_any()),
        None => large_integer(py, number.literal()),
    }
}

/// Converts an integer of any size. Python limits the digits of an `int` from text, because the conversion takes quadratic
/// time. One with more digits becomes a `Decimal`, which is as exact.
fn large_integer<'py>(py: Python<'py>, literal: &str) -> PyResult<Bound<'py, PyAny>> {
    match py.get_type::<PyInt>().call1((literal,)) {
        Err(error) if error.is_instance_of::<PyValueError>(py) => decimal(py, literal),
        converted => converted,
    }
}

fn decimal<'py>(py: Python<'py>, literal: &str) -> PyResult<Bound<'py, PyAny>> {
    static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    DECIMAL.import(py, "decimal", "Decimal")?.call1((literal,))
}

/// Converts a value that is written as JSON.
pub(crate) fn json_to_python<'py>(
    py: Python<'py>,
    value: &(impl ToJson + ?Sized),
) -> PyResult<Bound<'py, PyAny>> {
    json_text_to_python(py, &value.to_json())
}

/// Returns a card for notebooks.
pub(crate) fn card<'py>(kind: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    object.py().import("cognitive._html")?.getattr(kind)?.call1((object,))
}

/// Converts JSON.
pub(crate) fn json_text_to_python<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let value = parse(py, text).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    to_python(py, value.node())
}

/// Parses JSON. Other threads of Python run while a long text is parsed. For a short one, waiting for the turn of this thread
/// would take longer.
pub(crate) fn parse(py: Python<'_>, text: &str) -> Result<Value, SyntaxError> {
    const LONG: usize = 64 << 10;
    if text.len() > LONG { py.detach(|| Value::parse(text)) } else { Value::parse(text) }
}
