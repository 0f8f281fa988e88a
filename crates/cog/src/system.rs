//! What the program sets at the operating system and in its C library, and the signals that it handles.

#[cfg(target_os = "linux")]
use std::path::Path;

use cog_spec::{Code, ErrorBody};
#[cfg(target_os = "linux")]
use cog_store::private;

/// The signals that end the program, from now on: Ctrl-C, SIGTERM, and SIGHUP, which a terminal sends when it is closed.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    /// Starts listening. Must be called within an async runtime.
    ///
    /// # Errors
    /// E4000 where the system refuses.
    pub(crate) fn new() -> Result<Self, ErrorBody> {
        let mut signals = Self::without_hangup()?;
        if !ignores_hangup() {
            signals.hangup = Some(listen(tokio::signal::unix::SignalKind::hangup())?);
        }
        Ok(signals)
    }

    /// Starts listening for a program to which SIGHUP means something else.
    ///
    /// # Errors
    /// E4000 where the system refuses.
    pub(crate) fn without_hangup() -> Result<Self, ErrorBody> {
        use tokio::signal::unix::SignalKind;
        let interrupt = listen(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: listen(SignalKind::terminate())?, hangup: None })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

/// Whether SIGHUP is ignored, as under `nohup`: a batch must outlive its terminal then. Listening would end that.
#[cfg(target_os = "linux")]
fn ignores_hangup() -> bool {
    let status = private::read(Path::new("/proc/self/status"), 1 << 16).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // The lowest bit is signal 1, SIGHUP. Without the file nothing is known, and the signal keeps its default.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_none_or(|mask| mask & 1 == 1)
}

/// Other systems tell this only to unsafe code. There, SIGHUP ends the program at once.
#[cfg(all(unix, not(target_os = "linux")))]
fn ignores_hangup() -> bool {
    true
}

#[cfg(not(unix))]
impl Signals {
    /// Starts listening.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new() -> Result<Self, ErrorBody> {
        Ok(Self {})
    }

    /// Starts listening: this system has no SIGHUP.
    ///
    /// # Errors
    /// None.
    pub(crate) fn without_hangup() -> Result<Self, ErrorBody> {
        Self::new()
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}

/// The signal to read files again (SIGHUP), from now on.
pub(crate) struct ReloadSignal {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
    /// Whether the program was started in a terminal.
    #[cfg(unix)]
    has_terminal: bool,
}

#[cfg(unix)]
impl ReloadSignal {
    /// Starts listening, so that the signal no longer ends the program. Must be called within an async runtime.
    ///
    /// # Errors
    /// E4000 where the system refuses.
    pub(crate) fn new() -> Result<Self, ErrorBody> {
        let hangup = listen(tokio::signal::unix::SignalKind::hangup())?;
        Ok(Self { hangup, has_terminal: has_terminal() })
    }

    /// Waits for the next signal. Returns false if it was sent because the terminal of the program was closed.
    pub(crate) async fn next(&mut self) -> bool {
        self.hangup.recv().await;
        !self.has_terminal || has_terminal()
    }
}

/// Whether one of the standard streams is a terminal that is still open.
#[cfg(unix)]
fn has_terminal() -> bool {
    use std::io::IsTerminal as _;
    std::io::stdin().is_terminal() || std::io::stdout().is_terminal() || std::io::stderr().is_terminal()
}

#[cfg(not(unix))]
impl ReloadSignal {
    /// Does nothing: this system has no such signal.
    ///
    /// # Errors
    /// None.
    pub(crate) fn new() -> Result<Self, ErrorBody> {
        Ok(Self {})
    }

    /// Never returns.
    pub(crate) async fn next(&mut self) -> bool {
        std::future::pending().await
    }
}

#[cfg(unix)]
fn listen(kind: tokio::signal::unix::SignalKind) -> Result<tokio::signal::unix::Signal, ErrorBody> {
    tokio::signal::unix::signal(kind)
        .map_err(|error| ErrorBody::new(Code::InternalError, format!("cannot listen for signals: {error}")))
}

/// Limits lookups of hosts and users to files and DNS, which are part of the binary.
///
/// By default, glibc loads the libraries that `/etc/nsswitch.conf` of the machine names. They belong to another version of
/// glibc than the one in the binary, and can crash it.
#[cfg(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static"))]
#[expect(unsafe_code, reason = "glibc has this setting only as a C function")]
pub(crate) fn limit_lookups() {
    use std::ffi::{CStr, c_char, c_int};

    unsafe extern "C" {
        fn __nss_configure_lookup(database: *const c_char, services: *const c_char) -> c_int;
    }
    let limits: [(&CStr, &CStr); 2] = [(c"hosts", c"files dns"), (c"passwd", c"files")];
    for (database, services) in limits {
        // SAFETY: both texts end with a zero byte and are static. No other thread runs yet.
        // If it fails, the default stays.
        unsafe { __nss_configure_lookup(database.as_ptr(), services.as_ptr()) };
    }
}

/// Other binaries use the C library of the machine.
#[cfg(not(all(target_os = "linux", target_env = "gnu", target_feature = "crt-static")))]
pub(crate) fn limit_lookups() {}

/// Raises the limit of open files to its maximum; the usual limit is 1,024.
#[cfg(unix)]
pub(crate) fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If that fails, the limit stays, and further connections wait.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// This system has no such limit.
#[cfg(not(unix))]
pub(crate) fn raise_open_files() {}

/// Makes the allocator return the memory of large requests to the system.
///
/// By default, glibc reuses the memory of blocks up to 32 MiB itself once it has freed one of this size. Each thread then
/// retains what its largest requests needed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "glibc has this setting only as a C function")]
pub(crate) fn return_large_blocks() {
    /// The size of a block, in bytes, from which it has pages of its own.
    const FROM: libc::c_int = 1 << 20;
    // SAFETY: the call reads its two numbers and changes a setting under the lock of the allocator.
    // If it fails, the default stays.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, FROM) };
}

/// Other allocators return large blocks.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_large_blocks() {}
