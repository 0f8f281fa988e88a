//! How the program ends.

use std::process::ExitCode;

/// The exit codes (design, decision 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: done, and the answer is good.
    Ok,
    /// 1: the envelope says `ok: false`, `verify` found a violation, a golden test failed, or the
    /// command could not do its work.
    Failed,
    /// 2: what was typed, or a settings file, cannot be understood.
    Usage,
    /// 3: the module is invalid.
    Invalid,
    /// 130: interrupted; the call to the provider was cancelled.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Invalid => 3,
            Exit::Interrupted => 130,
        })
    }
}
