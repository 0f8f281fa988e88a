//! The limits that a process sets itself before it reads untrusted bytes.

/// What a process is for, which decides what it may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reading a document or container in this very process.
    Read,
    /// Becoming ffmpeg.
    Ffmpeg,
}

/// MediaCapabilities from this process, for good, what its purpose does not need.
///
/// Reading needs no file and no socket, for whose want of a number both fail: the three streams are open already.
///
/// # Errors
/// Where the system does not let itself be asked; nothing is to be read then.
#[cfg(unix)]
pub(super) fn confine(purpose: Purpose) -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    const MB: u64 = 1 << 20;
    let (memory, seconds, files) = match purpose {
        Purpose::Read => (1024 * MB, 20, 3),
        Purpose::Ffmpeg => (2048 * MB, 120, 32),
    };
    let mut limits = vec![
        (Resource::Cpu, seconds),
        (Resource::Nofile, files),
        // What is written goes to a pipe, which this does not bound: no file is to grow.
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

/// Where the system has no such limits, time and the size of the answer bound the process.
#[cfg(not(unix))]
pub(super) fn confine(_: Purpose) -> std::io::Result<()> {
    Ok(())
}
