//! The native part of the Python package `cognitive`:
//!
//! * `runtime`: the class `Runtime`, which loads and runs modules;
//! * `call`, `chunks`: a run that ends with a callback, and the chunks of a run;
//! * `result`, `error`, `module`, `report`: what Python receives, also of the types of modules and of conformance;
//! * `tool`, `provider`, `check`, `hooks`: tools, providers, checks of answers and hooks written in Python; `caller` and `attach` call them;
//! * `from_python`, `to_python`: objects as JSON, and JSON as objects;
//! * `budget`: what several runs may spend together;
//! * `hosted`, `reader`: the settings, MCP servers and log of the operator, and the process that reads documents, audio and video;
//! * `events`: the async runtime of the process; `python/cognitive` adds signatures, event loops and exceptions.

mod attach;
mod budget;
mod call;
mod caller;
mod check;
mod chunks;
mod error;
mod events;
mod from_python;
mod hooks;
mod hosted;
mod module;
mod provider;
mod reader;
mod report;
mod request;
mod result;
mod runtime;
mod to_python;
mod tool;

/// The native part of the package; use `cognitive`.
#[pyo3::pymodule(gil_used = false)]
mod _cognitive {
    #[pymodule_export]
    use crate::{
        budget::SharedBudget,
        call::Call,
        check::NativeCheck,
        chunks::Chunks,
        error::ErrorInfo,
        module::{LoadedModule, load_files},
        provider::{NativeProvider, PythonRequest, ReplyParts},
        reader::internal_media,
        report::{ValidationReport, Verdict, check_conformance, module_types},
        request::HaltedCall,
        result::RunResult,
        runtime::NativeRuntime,
        tool::NativeTool,
    };

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python packages use")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
