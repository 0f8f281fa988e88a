//! The native part of the Python package `cognitive`:
//!
//! * `runtime`: the class `Runtime`, which loads and runs modules;
//! * `call`, `chunks`: a run that ends with a callback, and the chunks of a run;
//! * `result`, `error`, `module`, `report`, `verdict`, `exception`: what Python receives;
//! * `tool`, `provider`: tools and providers written in Python; `callback`, `caller` and `attach` call them;
//! * `from_python`, `to_python`: objects as JSON, and JSON as objects;
//! * `contracts`: the types of modules in other languages, and conformance levels;
//! * `servers`, `reader`, `log`: MCP servers, the process that reads documents, audio and video, and the log of runs;
//! * `events`: the async runtime of the process; `python/cognitive` adds signatures, event loops and exceptions.

mod attach;
mod call;
mod callback;
mod caller;
mod chunks;
mod contracts;
mod deliveries;
mod error;
mod events;
mod exception;
mod from_python;
mod hosted;
mod log;
mod model_request;
mod module;
mod provider;
mod reader;
mod report;
mod request;
mod result;
mod runtime;
mod servers;
mod to_python;
mod tool;
mod verdict;

/// The native part of the package; use `cognitive`.
#[pyo3::pymodule(gil_used = false)]
mod _cognitive {
    #[pymodule_export]
    use crate::{
        call::Call,
        chunks::Chunks,
        contracts::{check_conformance, module_types},
        error::ErrorInfo,
        model_request::PythonRequest,
        module::{LoadedModule, load_files},
        provider::{NativeProvider, ReplyParts},
        reader::internal_media,
        report::ValidationReport,
        request::HaltedCall,
        result::RunResult,
        runtime::NativeRuntime,
        tool::NativeTool,
        verdict::Verdict,
    };

    /// The version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name that Python packages use")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
