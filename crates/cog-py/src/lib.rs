//! The native part of the Python package `cognitive`.
//!
//! * `runtime`: the class `Runtime`, which loads and runs modules with the settings of the operator;
//! * `call`, `chunks`: a run that ends with a callback, and the chunks of a run;
//! * `result`, `error`, `module`, `report`: what Python receives; `exception` raises it;
//! * `from_python`, `to_python`: objects as JSON, and JSON as objects;
//! * `events`: the async runtime of the process.
//!
//! `python/cognitive` adds what is shorter in Python: signatures, the event loop, exceptions.

mod call;
mod chunks;
mod error;
mod events;
mod exception;
mod from_python;
mod hosted;
mod module;
mod report;
mod request;
mod result;
mod runtime;
mod to_python;

/// The native part of the package; use `cognitive`.
#[pyo3::pymodule(gil_used = false)]
mod _cognitive {
    #[pymodule_export]
    use crate::{
        call::Call, chunks::Chunks, error::ErrorInfo, module::LoadedModule, report::ValidationReport,
        result::RunResult, runtime::NativeRuntime,
    };

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python packages use")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
