//! Reading results while the batch runs.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use tokio::sync::watch;

use super::{JournalError, lock};
use crate::row::Position;

/// The results that are written, read by a file handle with a position of its own.
#[derive(Debug)]
pub(super) struct StoredLines {
    path: PathBuf,
    /// The length up to which the results are written.
    written: watch::Receiver<u64>,
    /// None until the first line is read.
    file: Option<BufReader<File>>,
}

impl StoredLines {
    pub(super) fn new(path: &Path, written: watch::Receiver<u64>) -> Self {
        Self { path: path.to_owned(), written, file: None }
    }

    /// Returns a line, once it is written. None if it never will be, because the writer has ended.
    pub(super) async fn read(&mut self, at: Position) -> Result<Option<Vec<u8>>, JournalError> {
        if self.written.wait_for(|end| *end > at.0).await.is_err() {
            return Ok(None);
        }
        let file = self.file.take().map_or_else(|| lock::open_file(&self.path).map(BufReader::new), Ok);
        let read = move |mut file: BufReader<File>| {
            let line = read_line(&mut file, at)?;
            Ok((file, line))
        };
        let read = async {
            let file = file?;
            tokio::task::spawn_blocking(move || read(file)).await.unwrap_or_else(|error| Err(error.into()))
        };
        let (file, line) = read.await.map_err(|error| JournalError::read(&self.path, error))?;
        self.file = Some(file);
        Ok(Some(line))
    }
}

/// Reads the line at a position, without its line break.
pub(crate) fn read_line(file: &mut BufReader<File>, at: Position) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    file.seek(SeekFrom::Start(at.0))?;
    file.read_until(b'\n', &mut line)?;
    line.pop_if(|byte| *byte == b'\n');
    Ok(line)
}
