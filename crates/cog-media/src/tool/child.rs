//! Starts a process, and reads its output within limits.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
};

use crate::{MediaError, Store, Stored};

/// The first argument of every process that a tool starts.
const COMMAND: &str = "internal-media";

/// The variable in the environment of every process that a tool starts. A process that has it starts no other reader.
pub const READER_VARIABLE: &str = "COG_MEDIA_READER";

/// The exit code of a process that could not become another program.
pub(super) const NOT_STARTED: i32 = 127;

/// The maximum bytes of a log that are stored.
const MAX_LOG: usize = 1 << 20;

/// How a process is run.
pub(super) struct Child<'a> {
    pub(super) program: &'a Path,
    /// Its arguments before the command.
    pub(super) before: &'a [OsString],
    /// The maximum run time.
    pub(super) timeout: Duration,
    /// The maximum bytes of its output.
    pub(super) max_bytes: u64,
}

/// The output of a process.
#[derive(Debug)]
pub(super) struct ChildOutput {
    /// Its standard output.
    pub(super) bytes: Stored,
    /// The start of its standard error, which is never shown: messages of a decoder may reveal memory.
    pub(super) log: Vec<u8>,
}

/// Why a process has no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// It could not be started.
    Start(std::io::Error),
    /// This process is itself one that a tool started.
    Nested,
    /// It exceeded its run time and was killed.
    TimedOut,
    /// It wrote too much and was killed.
    TooLarge,
    /// The program that it should become could not be started.
    NotStarted,
    /// It was ended by the system, such as at a resource limit.
    Killed,
    /// It exited without a result.
    Failed,
    /// Its output could not be stored.
    Storage(MediaError),
}

impl Child<'_> {
    /// Runs the process with a seekable file as standard input, and stores its output.
    ///
    /// Its environment has one variable, and it has only its standard streams. Dropping the future kills it.
    pub(super) async fn run(
        &self,
        stored: &Stored,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<ChildOutput, Failure> {
        // A program that does not handle `internal-media` at its start would start itself as a reader, again and again.
        if is_reader() {
            return Err(Failure::Nested);
        }
        let input = stored.handle().map_err(|error| Failure::Storage(error.into()))?;
        let mut child = Command::new(self.program)
            .args(self.before)
            .arg(COMMAND)
            .args(arguments)
            // Keys of providers are in the environment; what reads untrusted content must not have them.
            .env_clear()
            .env(READER_VARIABLE, "1")
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::Start)?;
        let output = child.stdout.take();
        let log = child.stderr.take();
        let work = async {
            // Both at once: a process that fills the pipe of its log would wait for a reader, and never end.
            let (bytes, log) = tokio::try_join!(store_output(output, self.max_bytes), read_log(log))?;
            let status = child.wait().await.map_err(|_| Failure::Failed)?;
            match status.code() {
                Some(0) => Ok(ChildOutput { bytes, log }),
                Some(NOT_STARTED) => Err(Failure::NotStarted),
                // Windows ends a process with a code that has the highest bit set.
                Some(0..) => Err(Failure::Failed),
                _ => Err(Failure::Killed),
            }
        };
        tokio::time::timeout(self.timeout, work).await.unwrap_or(Err(Failure::TimedOut))
    }
}

/// Returns whether this process was started as a reader, by a program that does not handle that at its start.
#[expect(clippy::disallowed_methods, reason = "the parent process sets it, and not a user")]
fn is_reader() -> bool {
    std::env::var_os(READER_VARIABLE).is_some()
}

/// Stores output up to a limit.
async fn store_output(output: Option<impl AsyncRead + Unpin>, max_bytes: u64) -> Result<Stored, Failure> {
    let mut store = Store::with_limit(max_bytes);
    copy(output, |bytes| store.push(bytes)).await?;
    Ok(store.finish())
}

/// Stores the start of the output and discards the rest.
async fn read_log(output: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Failure> {
    let mut log = Vec::new();
    copy(output, |bytes| {
        let left = MAX_LOG.saturating_sub(log.len());
        log.extend_from_slice(bytes.get(..left).unwrap_or(bytes));
        Ok(())
    })
    .await?;
    Ok(log)
}

async fn copy(
    output: Option<impl AsyncRead + Unpin>,
    mut into: impl FnMut(&[u8]) -> Result<(), MediaError>,
) -> Result<(), Failure> {
    let mut output = output.ok_or(Failure::Failed)?;
    let mut block = vec![0; 64 * 1024];
    loop {
        let length = output.read(&mut block).await.map_err(|_| Failure::Failed)?;
        match block.get(..length) {
            Some(bytes) if length > 0 => into(bytes).map_err(|error| match error {
                MediaError::TooLarge { .. } => Failure::TooLarge,
                error => Failure::Storage(error),
            })?,
            _ => return Ok(()),
        }
    }
}

// What a process is started for.

/// The purpose of a process, which decides its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reads a document or container itself.
    Read,
    /// Becomes a program that reads documents.
    ReadDocument,
    /// Becomes a program that converts audio, video or pictures.
    Convert,
}

impl Purpose {
    /// Returns the first argument after `internal-media` of a process that becomes another program.
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadDocument => "read-document",
            Self::Convert => "convert",
        }
    }

    /// Returns the maximum run time.
    pub(super) fn timeout(self) -> Duration {
        Duration::from_secs(match self {
            Self::Read => 30,
            // The reader process answers instead of a program that takes longer.
            Self::ReadDocument => 15,
            Self::Convert => 120,
        })
    }
}

#[cfg(unix)]
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the program that these tests start")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

    use super::*;

    /// Returns a program that writes its process id to a file and runs this script.
    fn program(directory: &Path, script: &str) -> PathBuf {
        let path = directory.join("program");
        let number = directory.join("number");
        fs::write(&path, format!("#!/bin/sh\necho $$ > {}\n{script}\n", number.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    async fn run(program: &Path, timeout: Duration) -> Result<ChildOutput, Failure> {
        let child = Child { program, before: &[], timeout, max_bytes: 1000 };
        let mut store = Store::with_limit(100);
        store.push(b"bytes").unwrap();
        child.run(&store.finish(), &["word"]).await
    }

    /// Waits until the program has exited after a kill.
    async fn has_exited(directory: &Path) -> bool {
        let number = fs::read_to_string(directory.join("number")).unwrap();
        let process = Path::new("/proc").join(number.trim());
        let is_dead = || !fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
        for _ in 0..500 {
            if is_dead() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test]
    async fn passes_input_and_returns_output_and_log() {
        let directory = tempfile::tempdir().unwrap();
        let program = program(directory.path(), "cat; echo log $1 $2 $HOME >&2");
        let written = run(&program, Duration::from_secs(10)).await.unwrap();
        assert_eq!(
            (written.bytes.head(), &written.log[..]),
            (&b"bytes"[..], &b"log internal-media word\n"[..])
        );
    }

    #[tokio::test]
    async fn failing_or_endless_program_returns_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let fails = program(directory.path(), "echo half; exit 3");
        assert!(matches!(run(&fails, Duration::from_secs(10)).await, Err(Failure::Failed)));
        let killed = program(directory.path(), "kill -9 $$");
        assert!(matches!(run(&killed, Duration::from_secs(10)).await, Err(Failure::Killed)));
        let endless = program(directory.path(), "while :; do echo more; done");
        assert!(matches!(run(&endless, Duration::from_secs(10)).await, Err(Failure::TooLarge)));
        assert!(has_exited(directory.path()).await);
    }

    #[tokio::test]
    async fn program_over_its_time_limit_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let sleeps = program(directory.path(), "exec sleep 600");
        assert!(matches!(run(&sleeps, Duration::from_millis(500)).await, Err(Failure::TimedOut)));
        assert!(has_exited(directory.path()).await);
    }

    #[tokio::test]
    async fn dropping_the_future_kills_the_program() {
        let directory = tempfile::tempdir().unwrap();
        let sleeps = program(directory.path(), "exec sleep 600");
        let started = async {
            while fs::read_to_string(directory.path().join("number")).map_or(true, |number| number.is_empty())
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = run(&sleeps, Duration::from_secs(600)) => panic!("it sleeps"),
            () = started => {}
        }
        assert!(has_exited(directory.path()).await);
    }
}
