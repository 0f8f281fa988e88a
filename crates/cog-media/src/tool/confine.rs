//! The limits that a process sets itself before it reads untrusted content.

/// The purpose of a process, which decides its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads a document or container in this process.
    Read,
    /// Becomes a program that converts media files.
    Convert,
}

/// Restricts this process permanently to what its purpose needs.
///
/// Reading needs no file and no socket: the three streams are open already, and the file limit prevents more.
///
/// # Errors
/// If the system refuses a limit; the content must not be read then.
#[cfg(unix)]
pub(super) fn confine(purpose: Purpose) -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    const MB: u64 = 1 << 20;
    let (memory, seconds, files) = match purpose {
        Purpose::Read => (1024 * MB, 20, 3),
        Purpose::Convert => (2048 * MB, 120, 32),
    };
    let mut limits = vec![
        (Resource::Cpu, seconds),
        (Resource::Nofile, files),
        // Output goes to a pipe, which this limit does not affect: no file may grow.
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ];
    if cfg!(target_os = "linux") {
        limits.push((Resource::As, memory));
    }
    if purpose == Purpose::Read {
        limits.push((Resource::Nproc, 0));
    }
    for (resource, limit) in limits {
        let limit = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
        setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
    }
    Ok(())
}

/// Without resource limits, the timeout and the output limit bound the process.
#[cfg(not(unix))]
pub(super) fn confine(_: Purpose) -> std::io::Result<()> {
    Ok(())
}
