//! Python objects as JSON.

use std::{path::PathBuf, time::Duration};

use cog_json::{Limits, ToJson as _, Value, Writer};
use pyo3::{
    exceptions::{PyOSError, PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{
        PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple, PyType,
    },
};

use crate::to_python::parse;

/// What is wrong with a string that UTF-8 cannot represent.
const SURROGATE: &str = "the text contains a surrogate, which UTF-8 cannot represent; pass \
                         text.encode(errors=\"replace\").decode()";

/// A Python object as JSON.
pub(crate) struct Converted {
    /// The value.
    pub(crate) value: Value,
    /// The files that the object names as paths. The program that passes a path may read it.
    pub(crate) files: Vec<PathBuf>,
    /// Whether bytes, images or paths became media.
    pub(crate) has_media: bool,
}

/// Converts an object. `root` is its name in messages.
///
/// `bytes` and images become base64 media, paths become files, and objects with fields become objects; see [`Form`].
///
/// # Errors
/// `TypeError` for an object without a form in JSON, `ValueError` for a number that JSON cannot represent and for an object that
/// contains itself, each with the path.
pub(crate) fn convert(object: &Bound<'_, PyAny>, root: &str) -> PyResult<Converted> {
    let mut conversion =
        Conversion { out: String::new(), open: Vec::new(), files: Vec::new(), has_media: false };
    conversion.value(object).map_err(|fault| fault.into_error(root))?;
    let Conversion { out, files, has_media, .. } = conversion;
    let value = parse(object.py(), &out);
    let value = value.map_err(|error| PyValueError::new_err(format!("{root}: {error}")))?;
    Ok(Converted { value, files, has_media })
}

/// Reads a string. `root` is its name in messages.
///
/// # Errors
/// `ValueError` for a string that UTF-8 cannot represent.
pub(crate) fn text<'a>(text: &'a Bound<'_, PyString>, root: &str) -> PyResult<&'a str> {
    text.to_str().map_err(|_| ConversionError::value(SURROGATE).into_error(root))
}

/// Converts a time in seconds.
pub(crate) fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| PyValueError::new_err(format!("{name}: found {seconds}; allowed: seconds above 0")))
}

struct Conversion {
    out: String,
    /// The addresses of the open containers.
    open: Vec<usize>,
    files: Vec<PathBuf>,
    has_media: bool,
}

/// Why an object cannot be converted.
enum ConversionError {
    /// Python raised an error.
    Raised(PyErr),
    /// The object has no form in JSON.
    Rejected {
        message: String,
        /// `TypeError` instead of `ValueError`.
        is_type: bool,
        /// The segments of the path, the innermost first.
        path: Vec<String>,
    },
}

type Done = Result<(), ConversionError>;

impl Conversion {
    fn value(&mut self, object: &Bound<'_, PyAny>) -> Done {
        if let Ok(text) = object.cast::<PyString>() {
            self.string(text)
        } else if object.is_none() {
            self.write(|w| w.null())
        } else if let Ok(flag) = object.cast::<PyBool>() {
            self.write(|w| w.bool(flag.is_true()))
        } else if let Ok(number) = object.cast::<PyInt>() {
            self.integer(number)
        } else if let Ok(number) = object.cast::<PyFloat>() {
            self.float(number.value())
        } else if let Ok(dict) = object.cast::<PyDict>() {
            self.within(object, |conversion| conversion.members(&dict.items()))
        } else if object.is_instance_of::<PyList>() || object.is_exact_instance_of::<PyTuple>() {
            self.within(object, |conversion| conversion.elements(object))
        } else {
            self.other(object)
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut Writer<'_>)) -> Done {
        write(&mut Writer::compact(&mut self.out));
        Ok(())
    }

    fn string(&mut self, text: &Bound<'_, PyString>) -> Done {
        match text.to_str() {
            Ok(text) => self.write(|w| w.string(text)),
            Err(_) => Err(ConversionError::value(SURROGATE)),
        }
    }

    fn integer(&mut self, number: &Bound<'_, PyInt>) -> Done {
        if let Ok(number) = number.extract::<i64>() {
            return self.write(|w| number.write_json(w));
        }
        // `str` of a member of an enumeration is its name.
        match number.py().get_type::<PyInt>().call_method1("__repr__", (number,)) {
            Ok(digits) => {
                self.out.push_str(digits.cast::<PyString>()?.to_str()?);
                Ok(())
            }
            // Python limits the digits, because writing them takes quadratic time.
            Err(error) if error.is_instance_of::<PyValueError>(number.py()) => {
                Err(ConversionError::value("the integer has too many digits for Python; pass it as a string"))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn float(&mut self, number: f64) -> Done {
        match number.is_finite() {
            true => self.write(|w| number.write_json(w)),
            false => Err(ConversionError::value(format!("JSON has no number {number}; use None"))),
        }
    }

    /// Writes a container, unless it is open already.
    fn within(&mut self, object: &Bound<'_, PyAny>, write: impl FnOnce(&mut Self) -> Done) -> Done {
        let address = object.as_ptr().addr();
        if self.open.contains(&address) {
            return Err(ConversionError::value("the object contains itself"));
        }
        if self.open.len() >= Limits::default().depth as usize {
            return Err(ConversionError::value(format!("more than {} levels", Limits::default().depth)));
        }
        self.open.push(address);
        write(self)?;
        self.open.pop();
        Ok(())
    }

    /// Writes pairs as an object.
    fn members(&mut self, items: &Bound<'_, PyList>) -> Done {
        self.out.push('{');
        for (index, item) in items.iter().enumerate() {
            let (key, value) = item.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            if index > 0 {
                self.out.push(',');
            }
            // A member of an enumeration is its value here, too.
            let is_member = !key.is_instance_of::<PyString>() && is_a(&key, "enum", "Enum")?;
            let key = if is_member { key.getattr("value")? } else { key };
            let name = key.cast::<PyString>().map_err(|_| wrong_key(&key))?;
            self.string(name)?;
            self.out.push(':');
            self.value(&value).map_err(|fault| fault.at(|| format!(".{}", name.to_string_lossy())))?;
        }
        self.out.push('}');
        Ok(())
    }

    /// Writes a sequence as an array.
    fn elements(&mut self, sequence: &Bound<'_, PyAny>) -> Done {
        self.out.push('[');
        for (index, element) in sequence.try_iter()?.enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            self.value(&element?).map_err(|fault| fault.at(|| format!("[{index}]")))?;
        }
        self.out.push(']');
        Ok(())
    }

    fn other(&mut self, object: &Bound<'_, PyAny>) -> Done {
        match Form::new(object)? {
            Form::Bytes(bytes) => self.media(&bytes),
            Form::Path => self.file(object.extract()?),
            Form::Members(pairs) => self.within(object, |conversion| conversion.members(&pairs)),
            Form::Elements => self.within(object, |conversion| conversion.elements(object)),
            Form::Value(value) => self.within(object, |conversion| conversion.value(&value)),
            Form::Number(literal) => {
                self.out.push_str(&literal);
                Ok(())
            }
        }
    }

    fn media(&mut self, bytes: &[u8]) -> Done {
        self.has_media = true;
        let Some(media_type) = cog_media::sniff(bytes) else {
            return Err(ConversionError::kind(
                "the bytes are not an image, audio, video or PDF; pass text as str: data.decode()",
            ));
        };
        let data = base64_simd::STANDARD.encode_to_string(bytes);
        self.write(|w| {
            w.object(|w| {
                w.field("type", "base64").field("media_type", media_type).field("data", data.as_str());
            });
        })
    }

    /// Writes a path as a file. A relative path starts at the working directory of the program.
    fn file(&mut self, path: PathBuf) -> Done {
        self.has_media = true;
        let path = std::path::absolute(&path).unwrap_or(path);
        let text = path.to_str().ok_or_else(|| ConversionError::value("the path is not valid UTF-8"))?;
        self.write(|w| {
            w.object(|w| {
                w.field("type", "file").field("path", text);
            });
        })?;
        self.files.push(path);
        Ok(())
    }
}

fn wrong_key(key: &Bound<'_, PyAny>) -> ConversionError {
    let shown = key.repr().map(|text| text.to_string()).unwrap_or_default();
    let kind = type_name(key);
    ConversionError::kind(format!(
        "the key {shown} is of type {kind}; keys of JSON are strings; pass str(key)"
    ))
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map(|name| name.to_string()).unwrap_or_default()
}

impl ConversionError {
    fn value(message: impl Into<String>) -> Self {
        Self::Rejected { message: message.into(), is_type: false, path: Vec::new() }
    }

    fn kind(message: impl Into<String>) -> Self {
        Self::Rejected { message: message.into(), is_type: true, path: Vec::new() }
    }

    /// Adds the segment of the container.
    fn at(mut self, segment: impl FnOnce() -> String) -> Self {
        if let Self::Rejected { path, .. } = &mut self {
            path.push(segment());
        }
        self
    }

    fn into_error(self, root: &str) -> PyErr {
        match self {
            Self::Raised(error) => error,
            Self::Rejected { message, is_type, path } => {
                let path: String = path.into_iter().rev().collect();
                let message = format!("{root}{path}: {message}");
                if is_type { PyTypeError::new_err(message) } else { PyValueError::new_err(message) }
            }
        }
    }
}

impl<E: Into<PyErr>> From<E> for ConversionError {
    fn from(error: E) -> Self {
        Self::Raised(error.into())
    }
}

// What an object becomes that has no form of its own in JSON.

/// What an object becomes that has no form of its own in JSON.
enum Form<'py> {
    /// Bytes and images: media.
    Bytes(Vec<u8>),
    /// Paths: a file.
    Path,
    /// Dataclasses, classes of attrs, named tuples and mappings: an object of these pairs.
    Members(Bound<'py, PyList>),
    /// Sequences: an array.
    Elements,
    /// Pydantic models, members of enumerations, times, UUIDs, sets and scalars of NumPy: another value.
    Value(Bound<'py, PyAny>),
    /// Decimals: a number, as it is written.
    Number(String),
}

impl<'py> Form<'py> {
    fn new(object: &Bound<'py, PyAny>) -> Result<Self, ConversionError> {
        if object.is_instance_of::<PyType>() {
            return Err(ConversionError::kind(format!("found the class {object}; pass an instance")));
        }
        if let Some(bytes) = bytes(object)? {
            return Ok(Self::Bytes(bytes));
        }
        if object.hasattr("__fspath__")? {
            return Ok(Self::Path);
        }
        if object.hasattr("__pydantic_serializer__")? {
            return Ok(Self::Value(pydantic(object)?));
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
    let mut pairs = Vec::new();
    for field in fields.try_iter()? {
        let field = field?;
        // What the class computes itself is no argument, and not in its schema.
        if field.getattr("init")?.is_truthy()? {
            let name = field.getattr("name")?.cast_into::<PyString>()?;
            let value = object.getattr(&name)?;
            pairs.push((name, value));
        }
    }
    PyList::new(py, pairs).map(Some)
}

/// Returns the fields of an object of Pydantic, as its schema names them.
fn pydantic<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static FORM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    FORM.import(object.py(), "cognitive._pydantic", "form")?.call1((object,))
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
        // The missing time of pandas is a `datetime`, and differs from itself.
        if object.ne(object)? {
            return Err(ConversionError::value(format!("JSON has no time {object}; use None")));
        }
        return Ok(Some(Form::Value(object.call_method0("isoformat")?)));
    }
    if is_a(object, "numpy", "generic")? {
        return Ok(Some(Form::Value(object.call_method0("item")?)));
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
    if is_a(object, "collections.abc", "Set")?
        && let Ok(sorted) = object.py().import("builtins")?.call_method1("sorted", (object,))
    {
        return Ok(Form::Value(sorted));
    }
    Err(ConversionError::kind(format!("JSON has no form for {}; {}", type_name(object), suggestion(object)?)))
}

fn suggestion(object: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    Ok(if is_a(object, "collections.abc", "Set")? {
        "a set has no order; pass a list"
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
