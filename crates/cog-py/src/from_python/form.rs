//! What an object becomes that has no form of its own in JSON.

use pyo3::{
    exceptions::PyOSError,
    prelude::*,
    types::{PyByteArray, PyBytes, PyDict, PyList, PyMemoryView, PyString, PyTuple, PyType},
};

use super::{ConversionError, type_name};

/// What an object becomes that has no form of its own in JSON.
pub(super) enum Form<'py> {
    /// Bytes and images: media.
    Bytes(Vec<u8>),
    /// Paths: a file.
    Path,
    /// Dataclasses, classes of attrs, named tuples and mappings: an object of these pairs.
    Members(Bound<'py, PyList>),
    /// Sequences: an array.
    Elements,
    /// Pydantic models, members of enumerations, times and UUIDs: another value.
    Value(Bound<'py, PyAny>),
    /// Decimals: a number, as it is written.
    Number(String),
}

impl<'py> Form<'py> {
    pub(super) fn new(object: &Bound<'py, PyAny>) -> Result<Self, ConversionError> {
        if object.is_instance_of::<PyType>() {
            return Err(ConversionError::kind(format!("found the class {object}; pass an instance")));
        }
        if let Some(bytes) = bytes(object)? {
            return Ok(Self::Bytes(bytes));
        }
        if object.hasattr("__fspath__")? {
            return Ok(Self::Path);
        }
        if let Some(pairs) = fields(object)? {
            return Ok(Self::Members(pairs));
        }
        if object.hasattr("model_dump")? {
            return Ok(Self::Value(object.call_method0("model_dump")?));
        }
        match scalar(object)? {
            Some(form) => Ok(form),
            None => container(object),
        }
    }
}

fn bytes(object: &Bound<'_, PyAny>) -> Result<Option<Vec<u8>>, ConversionError> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(bytes.as_bytes().to_vec()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Some(bytes.to_vec()));
    }
    if object.is_instance_of::<PyMemoryView>() {
        return Ok(Some(object.call_method0("tobytes")?.extract()?));
    }
    if is_a(object, "PIL.Image", "Image")? {
        return png(object).map(Some);
    }
    Ok(None)
}

/// Writes an image of Pillow as PNG, which loses nothing.
fn png(image: &Bound<'_, PyAny>) -> Result<Vec<u8>, ConversionError> {
    let py = image.py();
    let buffer = py.import("io")?.call_method0("BytesIO")?;
    match image.call_method1("save", (&buffer, "PNG")) {
        Ok(_) => Ok(buffer.call_method0("getvalue")?.extract()?),
        Err(error) if error.is_instance_of::<PyOSError>(py) => {
            let reason = error.value(py);
            Err(ConversionError::value(format!(
                "the image cannot be written as PNG: {reason}; pass image.convert(\"RGB\")"
            )))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the fields of a dataclass, of a class of attrs or of a named tuple, with their values.
fn fields<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyList>>> {
    let py = object.py();
    let fields = if object.hasattr("__dataclass_fields__")? {
        py.import("dataclasses")?.getattr("fields")?.call1((object,))?
    } else if object.hasattr("__attrs_attrs__")? {
        object.getattr("__attrs_attrs__")?
    } else if object.is_instance_of::<PyTuple>() && object.hasattr("_asdict")? {
        return object
            .call_method0("_asdict")?
            .cast_into::<PyDict>()
            .map(|dict| Some(dict.items()))
            .map_err(Into::into);
    } else {
        return Ok(None);
    };
    let pairs = fields.try_iter()?.map(|field| {
        let name = field?.getattr("name")?.cast_into::<PyString>()?;
        let value = object.getattr(&name)?;
        Ok((name, value))
    });
    PyList::new(py, pairs.collect::<PyResult<Vec<_>>>()?).map(Some)
}

fn scalar<'py>(object: &Bound<'py, PyAny>) -> Result<Option<Form<'py>>, ConversionError> {
    if is_a(object, "enum", "Enum")? {
        return Ok(Some(Form::Value(object.getattr("value")?)));
    }
    if is_a(object, "decimal", "Decimal")? {
        return match object.call_method0("is_finite")?.is_truthy()? {
            true => Ok(Some(Form::Number(object.str()?.to_string()))),
            false => Err(ConversionError::value(format!("JSON has no number {object}; use None"))),
        };
    }
    if is_a(object, "uuid", "UUID")? {
        return Ok(Some(Form::Value(object.str()?.into_any())));
    }
    if is_a(object, "datetime", "date")? || is_a(object, "datetime", "time")? {
        return Ok(Some(Form::Value(object.call_method0("isoformat")?)));
    }
    Ok(None)
}

fn container<'py>(object: &Bound<'py, PyAny>) -> Result<Form<'py>, ConversionError> {
    if is_a(object, "collections.abc", "Mapping")? {
        let items = object.call_method0("items")?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
        return Ok(Form::Members(PyList::new(object.py(), items)?));
    }
    if is_a(object, "collections.abc", "Sequence")? {
        return Ok(Form::Elements);
    }
    Err(ConversionError::kind(format!("JSON has no form for {}; {}", type_name(object), suggestion(object)?)))
}

fn suggestion(object: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(if is_a(object, "collections.abc", "Set")? {
        "a set has no order; pass sorted(value)"
    } else if object.hasattr("tolist")? {
        "pass value.tolist()"
    } else if object.hasattr("total_seconds")? {
        "pass value.total_seconds()"
    } else if object.hasattr("read")? {
        "pass what it contains: value.read()"
    } else if is_a(object, "collections.abc", "Awaitable")? {
        "await it"
    } else if is_a(object, "collections.abc", "Iterable")? {
        "pass list(value)"
    } else if object.is_callable() {
        "pass what it returns"
    } else {
        "use dict, list, str, int, float, bool, None, bytes, a path, a dataclass or a Pydantic model"
    })
}

/// Whether an object is an instance of a class. A module that is not imported has no instances.
fn is_a(object: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    let modules = object.py().import("sys")?.getattr("modules")?;
    match modules.cast::<PyDict>()?.get_item(module)? {
        Some(module) if module.hasattr(class)? => object.is_instance(&module.getattr(class)?),
        _ => Ok(false),
    }
}
