//! One process: started, fed, read and ended.

use std::{ffi::OsStr, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
};

use crate::{MediaError, Store, Stored};

/// The first argument of every process that a tool starts.
const COMMAND: &str = "internal-media";

/// The most bytes of a log that are kept.
const MAX_LOG: usize = 1 << 20;

/// How a process is run.
pub(super) struct Child<'a> {
    pub(super) program: &'a Path,
    /// How long it may take from its start to its end.
    pub(super) patience: Duration,
    /// The most bytes it may write.
    pub(super) most_bytes: u64,
}

/// What a process wrote.
#[derive(Debug)]
pub(super) struct Written {
    /// Its standard output.
    pub(super) bytes: Stored,
    /// The beginning of its standard error, which is for nobody's eyes: what a decoder says may show memory.
    pub(super) log: Vec<u8>,
}

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// The process could not be started.
    Start(std::io::Error),
    /// It took too long and was killed.
    Late,
    /// It wrote too much and was killed.
    TooMuch,
    /// It ended, by itself or at a limit, without having done its work.
    Died,
    /// What it wrote could not be kept.
    Storage(MediaError),
}

impl Child<'_> {
    /// Runs the process with these bytes as its standard input, which it can seek in, and keeps what it writes.
    ///
    /// It has no environment and no way to speak but its two streams. Dropping the future kills it.
    pub(super) async fn run(
        &self,
        stored: &Stored,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<Written, Failure> {
        let input = stored.handle().map_err(|error| Failure::Storage(error.into()))?;
        let mut child = Command::new(self.program)
            .arg(COMMAND)
            .args(arguments)
            .env_clear()
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::Start)?;
        let (output, log) = (child.stdout.take(), child.stderr.take());
        let work = async {
            let (bytes, log) = tokio::try_join!(keep(output, self.most_bytes), hear(log))?;
            let status = child.wait().await.map_err(|_| Failure::Died)?;
            if status.success() { Ok(Written { bytes, log }) } else { Err(Failure::Died) }
        };
        tokio::time::timeout(self.patience, work).await.unwrap_or(Err(Failure::Late))
    }
}

/// Keeps what comes, up to a limit.
async fn keep(output: Option<impl AsyncRead + Unpin>, most_bytes: u64) -> Result<Stored, Failure> {
    let mut store = Store::within(most_bytes);
    pour(output, |bytes| store.push(bytes)).await?;
    Ok(store.finish())
}

/// Keeps the beginning of what comes, and lets the rest go by.
async fn hear(output: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, Failure> {
    let mut log = Vec::new();
    let keep = |bytes: &[u8]| {
        let left = MAX_LOG.saturating_sub(log.len());
        log.extend_from_slice(bytes.get(..left).unwrap_or(bytes));
        Ok(())
    };
    pour(output, keep).await?;
    Ok(log)
}

async fn pour(
    output: Option<impl AsyncRead + Unpin>,
    mut into: impl FnMut(&[u8]) -> Result<(), MediaError>,
) -> Result<(), Failure> {
    let mut output = output.ok_or(Failure::Died)?;
    let mut block = vec![0; 64 * 1024];
    loop {
        let length = output.read(&mut block).await.map_err(|_| Failure::Died)?;
        match block.get(..length) {
            Some(bytes) if length > 0 => into(bytes).map_err(|error| match error {
                MediaError::TooLarge { .. } => Failure::TooMuch,
                error => Failure::Storage(error),
            })?,
            _ => return Ok(()),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the program that these tests start")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

    use super::*;

    /// A program that writes its number where it can be found, and does this.
    fn program(directory: &Path, does: &str) -> PathBuf {
        let path = directory.join("program");
        let number = directory.join("number");
        fs::write(&path, format!("#!/bin/sh\necho $$ > {}\n{does}\n", number.display())).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    async fn run(program: &Path, patience: Duration) -> Result<Written, Failure> {
        let child = Child { program, patience, most_bytes: 1000 };
        let mut store = Store::within(100);
        store.push(b"bytes").unwrap();
        child.run(&store.finish(), &["word"]).await
    }

    /// Whether the program has gone, which may take a moment after it was killed.
    async fn has_gone(directory: &Path) -> bool {
        let number = fs::read_to_string(directory.join("number")).unwrap();
        let process = Path::new("/proc").join(number.trim());
        let is_gone = || !fs::read_to_string(process.join("stat")).is_ok_and(|stat| !stat.contains(") Z "));
        for _ in 0..500 {
            if is_gone() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    #[tokio::test]
    async fn bytes_go_in_and_bytes_and_a_log_come_out() {
        let directory = tempfile::tempdir().unwrap();
        let program = program(directory.path(), "cat; echo log $1 $2 $HOME >&2");
        let written = run(&program, Duration::from_secs(10)).await.unwrap();
        assert_eq!(
            (written.bytes.head(), &written.log[..]),
            (&b"bytes"[..], &b"log internal-media word\n"[..])
        );
    }

    #[tokio::test]
    async fn what_fails_or_says_too_much_gives_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let fails = program(directory.path(), "echo half; exit 3");
        assert!(matches!(run(&fails, Duration::from_secs(10)).await, Err(Failure::Died)));
        let endless = program(directory.path(), "while :; do echo more; done");
        assert!(matches!(run(&endless, Duration::from_secs(10)).await, Err(Failure::TooMuch)));
        assert!(has_gone(directory.path()).await);
    }

    #[tokio::test]
    async fn what_is_late_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let sleeps = program(directory.path(), "exec sleep 600");
        assert!(matches!(run(&sleeps, Duration::from_millis(500)).await, Err(Failure::Late)));
        assert!(has_gone(directory.path()).await);
    }

    #[tokio::test]
    async fn what_nobody_waits_for_is_killed() {
        let directory = tempfile::tempdir().unwrap();
        let sleeps = program(directory.path(), "exec sleep 600");
        let begun = async {
            while fs::read_to_string(directory.path().join("number")).map_or(true, |number| number.is_empty())
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = run(&sleeps, Duration::from_secs(600)) => panic!("it sleeps"),
            () = begun => {}
        }
        assert!(has_gone(directory.path()).await);
    }
}
