//! The code of the reader process: content on standard input, JSON on standard output.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    process::{Command, ExitCode},
};

use cog_json::{ToJson as _, Writer};

use super::{
    child::Purpose,
    container::{self, Handle, declared_facts},
    pdf,
    report::{PDF, ReadError, Report},
};

/// Runs the reader process that a [`Tool`](crate::Tool) started, with the arguments after `internal-media`.
///
/// It limits itself, reads its standard input and exits. Its output is not for people.
pub fn internal_media(arguments: &[OsString]) -> ExitCode {
    if let [command, program, arguments @ ..] = arguments {
        let mut programs = [Purpose::ReadDocument, Purpose::Convert].into_iter();
        if let Some(purpose) = programs.find(|purpose| command == purpose.command()) {
            return become_program(purpose, program, arguments);
        }
    }
    let names: Vec<&str> = arguments.iter().map_while(|argument| argument.to_str()).collect();
    let done = match *names.as_slice() {
        ["probe", media_type] => confined(|input| facts(input, media_type)),
        ["declared", media_type] => confined(|input| declared(input, media_type)),
        ["text"] => confined(text),
        ["sizes"] => confined(sizes),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns what a document or container of this type declares.
pub(super) fn facts(input: Handle, media_type: &str) -> Result<Report, ReadError> {
    caught(|| match media_type {
        PDF => pdf::facts(input),
        _ => container::facts(input, media_type),
    })
    .map(Report::Info)
}

/// Returns the duration that the header of audio declares.
fn declared(input: Handle, media_type: &str) -> Result<Report, ReadError> {
    caught(|| Ok(declared_facts(input, media_type))).map(Report::Info)
}

/// Returns the text of a document.
pub(super) fn text(input: Handle) -> Result<Report, ReadError> {
    caught(|| pdf::text(input)).map(Report::Pages)
}

/// Returns the sizes of the pages of a document.
pub(super) fn sizes(input: Handle) -> Result<Report, ReadError> {
    caught(|| pdf::sizes(input)).map(Report::Sizes)
}

/// Runs a reader. A panic in it means that the content is damaged.
fn caught<T>(read: impl FnOnce() -> Result<T, ReadError>) -> Result<T, ReadError> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or(Err(ReadError::Broken))
}

fn confined(read: impl FnOnce(Handle) -> Result<Report, ReadError>) -> io::Result<()> {
    let input = Handle::new(input()?)?;
    // Before the first byte of the content is read.
    enter_sandbox(Purpose::Read)?;
    let report = read(input).unwrap_or_else(Report::Error);
    let mut json = String::new();
    report.write_json(&mut Writer::compact(&mut json));
    let mut output = io::stdout();
    output.write_all(json.as_bytes())?;
    // Only the end of a Rust program does this by itself.
    output.flush()
}

/// Limits this process and replaces it with a program, which inherits the limits. Returns only on failure.
#[cfg(unix)]
fn become_program(purpose: Purpose, program: &OsStr, arguments: &[OsString]) -> ExitCode {
    if enter_sandbox(purpose).is_err() {
        return ExitCode::FAILURE;
    }
    let _failed = std::os::unix::process::CommandExt::exec(Command::new(program).args(arguments).env_clear());
    u8::try_from(super::child::NOT_STARTED).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Runs a program.
#[cfg(not(unix))]
fn become_program(purpose: Purpose, program: &OsStr, arguments: &[OsString]) -> ExitCode {
    if enter_sandbox(purpose).is_err() {
        return ExitCode::FAILURE;
    }
    let done = Command::new(program).args(arguments).env_clear().status();
    if done.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns standard input as a file.
fn input() -> io::Result<File> {
    #[cfg(unix)]
    let handle = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
    #[cfg(windows)]
    let handle = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned()?;
    Ok(File::from(handle))
}

// The sandbox: the limits that a process sets itself before it reads untrusted content.

/// Restricts this process permanently to what its purpose needs.
///
/// Reading needs no file and no socket: the three streams are open already, and the file limit prevents more.
///
/// # Errors
/// If the system refuses a limit; the content must not be read then.
#[cfg(unix)]
fn enter_sandbox(purpose: Purpose) -> std::io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    const MB: u64 = 1 << 20;
    let (memory, seconds, files) = match purpose {
        Purpose::Read => (1024 * MB, 20, 3),
        // A few kilobytes can describe a page that takes minutes and gigabytes.
        Purpose::ReadDocument => (300 * MB, 10, 32),
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
fn enter_sandbox(_: Purpose) -> std::io::Result<()> {
    Ok(())
}
