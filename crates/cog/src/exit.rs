//! Exit codes.

use std::process::ExitCode;

/// The exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: success.
    Ok,
    /// 1: the envelope has `ok: false`, a check found something, or the command failed.
    Failed,
    /// 2: invalid arguments or settings.
    Usage,
    /// 3: invalid module.
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
