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
const MOST_LOG: usize = 1 << 20;

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
        let left = MOST_LOG.saturating_sub(log.len());
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
