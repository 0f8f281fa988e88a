//! A loaded module.

use std::{collections::BTreeMap, sync::Arc};

use cog_json::Value;
use cog_module::{Module, ModuleFiles, Origin};
use cog_spec::ErrorBody;
use pyo3::{exceptions::PyTypeError, prelude::*};

use crate::{
    result::exception,
    to_python::{card, json_to_python, to_python},
};

/// A module that a runtime has loaded.
#[pyclass(name = "Module", module = "cognitive", frozen)]
pub(crate) struct LoadedModule(pub(crate) Arc<Module>);

#[pymethods]
impl LoadedModule {
    /// How it is pickled and copied: another process loads it again.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let place = match &self.0.origin {
            Origin::Directory(directory) => directory.to_str().map(str::to_owned),
            Origin::BuiltIn(_) => Some(self.0.manifest.name.clone()),
            _ => None,
        };
        let place = place.ok_or_else(|| {
            let name = &self.0.manifest.name;
            PyTypeError::new_err(format!(
                "{name}: a module in memory cannot be pickled as it is loaded; pass the task or the ModuleFiles"
            ))
        })?;
        Ok((py.import("cognitive._functions")?.getattr("load")?, (place,)))
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        &self.0.manifest.name
    }

    /// The version of the module.
    #[getter]
    fn version(&self) -> &str {
        &self.0.manifest.version
    }

    /// The version of the format: `v2.2`.
    #[getter]
    fn format(&self) -> &str {
        self.0.manifest.format.as_str()
    }

    /// The tier, if the manifest sets one.
    #[getter]
    fn tier(&self) -> Option<&str> {
        self.0.manifest.tier.map(|tier| tier.as_str())
    }

    /// What the module does.
    #[getter]
    fn responsibility(&self) -> &str {
        &self.0.manifest.responsibility
    }

    /// The directory; None for a built-in module.
    #[getter]
    fn directory(&self) -> Option<std::path::PathBuf> {
        match &self.0.origin {
            Origin::Directory(directory) => Some(directory.clone()),
            _ => None,
        }
    }

    /// The JSON Schema of the input, if there is one.
    #[getter]
    fn input_schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        schema(py, self.0.contract.input_schema().cloned().map(Value::from))
    }

    /// The JSON Schema of the answer, if there is one.
    #[getter]
    fn data_schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        schema(py, self.0.contract.data_schema().cloned().map(Value::from))
    }

    /// The contract as it is enforced: `schema.json` with the definitions of the runtime. References point into it.
    #[getter]
    fn contract<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, self.0.contract.document())
    }

    /// What is wrong with its files, though it can run.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json_to_python(py, &cog_json::Array(&self.0.warnings))
    }

    /// The card that a notebook shows.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        card("module", slf)
    }

    fn __repr__(&self) -> String {
        format!("Module(name={:?}, version={:?})", self.0.manifest.name, self.0.manifest.version)
    }
}

/// Loads a module from the texts of its files.
///
/// Raises `CognitiveError` with E4008 for an invalid one.
#[pyfunction]
pub(crate) fn load_files(py: Python<'_>, files: BTreeMap<String, String>) -> PyResult<LoadedModule> {
    let files = files.into_iter().fold(ModuleFiles::default(), |files, (path, text)| files.with(path, text));
    match py.detach(|| files.load()) {
        Ok(module) => Ok(LoadedModule(Arc::new(module))),
        Err(error) => Err(exception(py, ErrorBody::new(error.code(), error.to_string()))),
    }
}

fn schema(py: Python<'_>, schema: Option<Value>) -> PyResult<Option<Bound<'_, PyAny>>> {
    schema.map(|schema| to_python(py, schema.node())).transpose()
}
