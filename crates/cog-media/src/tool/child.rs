//! One process: started, fed, read and ended.

use std::{ffi::OsStr, path::Path, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::Command,
};

use crate::{MediaError, Store, Stored};

/// The first argument of every process that a tool starts.
pub(super) const COMMAND: &str = "internal-media";

/// How a process is run.
pub(super) struct Child<'a> {
    pub(super) program: &'a Path,
    /// How long it may take from its start to its end.
    pub(super) patience: Duration,
    /// The most bytes it may write.
    pub(super) most_bytes: u64,
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
    /// It has no environment and no way to speak but its standard output. Dropping the future kills it.
    pub(super) async fn run(
        &self,
        stored: &Stored,
        arguments: &[impl AsRef<OsStr>],
    ) -> Result<Stored, Failure> {
        let input = stored.handle().map_err(|error| Failure::Storage(error.into()))?;
        let mut child = Command::new(self.program)
            .arg(COMMAND)
            .args(arguments)
            .env_clear()
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::Start)?;
        let output = child.stdout.take();
        let work = async {
            let written = keep(output, self.most_bytes).await?;
            let status = child.wait().await.map_err(|_| Failure::Died)?;
            if status.success() { Ok(written) } else { Err(Failure::Died) }
        };
        tokio::time::timeout(self.patience, work).await.unwrap_or(Err(Failure::Late))
    }
}

async fn keep(output: Option<impl AsyncRead + Unpin>, most_bytes: u64) -> Result<Stored, Failure> {
    let mut store = Store::within(most_bytes);
    let mut block = vec![0; 64 * 1024];
    let mut output = output.ok_or(Failure::Died)?;
    loop {
        let length = output.read(&mut block).await.map_err(|_| Failure::Died)?;
        let Some(bytes) = block.get(..length).filter(|bytes| !bytes.is_empty()) else { break };
        store.push(bytes).map_err(|error| match error {
            MediaError::TooLarge { .. } => Failure::TooMuch,
            error => Failure::Storage(error),
        })?;
    }
    Ok(store.finish())
}
