//! The process that reads documents, audio and video: the interpreter, which loads only the native module.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use pyo3::prelude::*;

/// Loads the native module from its file, and calls [`internal_media`] with the arguments after `internal-media`.
const SCRIPT: &str = "import sys, importlib.util as u; s = u.spec_from_file_location('cognitive._cognitive', sys.argv[1]); \
                      m = u.module_from_spec(s); s.loader.exec_module(m); sys.exit(m.internal_media(sys.argv[3:]))";

/// How the process is started.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) program: PathBuf,
    /// The arguments before `internal-media`.
    pub(crate) arguments: Vec<OsString>,
}

impl Reader {
    /// Finds the interpreter and the file of the native module. None if Python is part of another program, which would start
    /// itself again: a frozen one, such as by PyInstaller, or a server with an interpreter inside.
    pub(crate) fn find(py: Python<'_>) -> Option<Self> {
        let program = text_of(py, "sys", "executable")?;
        let file = text_of(py, "cognitive._cognitive", "__file__")?;
        let frozen = py.import("sys").and_then(|sys| sys.getattr("frozen"));
        let is_frozen = frozen.is_ok_and(|frozen| frozen.is_truthy().unwrap_or(true));
        if is_frozen || !is_interpreter(Path::new(&program)) {
            return None;
        }
        // Neither the environment nor the packages of the user decide what runs.
        let arguments = ["-I", "-S", "-B", "-c", SCRIPT, &file].map(OsString::from).to_vec();
        Some(Self { program: program.into(), arguments })
    }
}

/// Returns an attribute of a module that is a string and not empty.
fn text_of(py: Python<'_>, module: &str, name: &str) -> Option<String> {
    let text: String = py.import(module).ok()?.getattr(name).ok()?.extract().ok()?;
    Some(text).filter(|text| !text.is_empty())
}

/// Returns whether a program is an interpreter, by its name.
fn is_interpreter(program: &Path) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    ["python", "pypy", "graalpy"].iter().any(|interpreter| name.starts_with(interpreter))
}

/// Reads a document, audio or video from standard input, in a process of its own. Returns its exit code.
#[pyfunction]
pub(crate) fn internal_media(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
    let code = py.detach(|| cog_media::internal_media(&arguments));
    if code == ExitCode::SUCCESS {
        return 0;
    }
    // A program that could not be started.
    if code == ExitCode::from(127) { 127 } else { 1 }
}
