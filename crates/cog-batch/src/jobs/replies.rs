//! The replies of jobs, in files.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
};

use cog_json::{Node, Value, Writer};
use cog_provider::batch::{BatchOutcome, BatchReply, BatchResult};

use super::Job;
use crate::RowHash;

/// The replies of the jobs, by row.
pub(crate) struct Answers {
    /// The files, which are opened for each reply: there may be more than a process may hold open.
    paths: Vec<PathBuf>,
    /// The entries, sorted by row.
    index: Vec<Entry>,
    jobs: Vec<Job>,
}

/// Where the reply of a row is.
#[derive(Debug, Clone, Copy)]
struct Entry {
    row: u64,
    hash: u32,
    file: u32,
    offset: u64,
    length: u32,
    crc: u32,
    /// Whether there is another reply that differs.
    is_ambiguous: bool,
}

impl Answers {
    /// Opens the files with the replies of each job.
    pub(crate) fn open(jobs: &[Job], paths: Vec<PathBuf>) -> io::Result<Self> {
        let mut index = Vec::new();
        for (number, path) in (0..).zip(&paths) {
            let mut file = BufReader::new(open(path)?);
            let mut offset = 0;
            let mut line = Vec::new();
            while file.read_until(b'\n', &mut line)? > 0 {
                index.extend(entry(&line, number, offset));
                offset += line.len() as u64;
                line.clear();
            }
        }
        index.sort_by_key(|entry: &Entry| entry.row);
        index.dedup_by(|later, kept| {
            let is_same = later.row == kept.row;
            kept.is_ambiguous |= is_same && later.crc != kept.crc;
            is_same
        });
        Ok(Self { paths, index, jobs: jobs.to_vec() })
    }

    /// Returns whether the row was another one when it was sent.
    pub(crate) fn has_changed(&self, row: u64, hash: RowHash) -> bool {
        self.find(row).is_some_and(|entry| entry.hash != hash.to_u32())
    }

    /// Returns what became of a row; none if its job has no result for it. Blocks.
    pub(super) fn get(&self, row: u64) -> io::Result<Option<BatchOutcome>> {
        let Some(entry) = self.find(row) else { return Ok(None) };
        if entry.is_ambiguous {
            return Ok(Some(BatchOutcome::Missing("there are two different results for it".to_owned())));
        }
        let Some(path) = self.paths.get(entry.file as usize) else { return Ok(None) };
        let mut line = vec![0; entry.length as usize];
        let mut file = open(path)?;
        file.seek(SeekFrom::Start(entry.offset))?;
        file.read_exact(&mut line)?;
        let value = Value::parse_bytes(&line).map_err(io::Error::other)?;
        Ok(Some(outcome(value.node())))
    }

    /// Returns why the job of a row has no result for it.
    pub(super) fn reason(&self, row: u64) -> Option<String> {
        let job = self.jobs.iter().find(|job| (job.first..=job.last).contains(&row))?;
        let id = job.id.as_deref().unwrap_or_default();
        let message = job.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        Some(format!("the job {id} ended as `{}`{message}", job.state))
    }

    fn find(&self, row: u64) -> Option<&Entry> {
        let at = self.index.binary_search_by_key(&row, |entry| entry.row).ok()?;
        self.index.get(at)
    }
}

#[expect(clippy::disallowed_methods, reason = "the file is the batch's own")]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

fn entry(line: &[u8], file: u32, offset: u64) -> Option<Entry> {
    let value = Value::parse_bytes(line).ok()?;
    let number = |key: &str| value.get(key).and_then(Node::as_u64);
    Some(Entry {
        row: number("row")?,
        hash: u32::try_from(number("hash")?).ok()?,
        file,
        offset,
        length: u32::try_from(line.len()).ok()?,
        crc: crc32fast::hash(line),
        is_ambiguous: false,
    })
}

fn outcome(line: Node<'_>) -> BatchOutcome {
    let status = line.get("status").and_then(Node::as_u64).and_then(|status| u16::try_from(status).ok());
    let text = |key: &str| line.get(key).and_then(Node::as_str).unwrap_or_default().to_owned();
    match (status, line.get("body"), text("lost").as_str()) {
        (Some(status), Some(body), _) => BatchOutcome::Replied(BatchReply { status, body: body.to_string() }),
        (_, _, "expired") => BatchOutcome::Expired,
        (_, _, "cancelled") => BatchOutcome::Cancelled,
        _ => BatchOutcome::Missing(text("reason")),
    }
}

/// Returns the ID of a row in a job.
pub(crate) fn entry_id(name: &str, row: u64, hash: RowHash) -> String {
    format!("{name}-{row}-{:08x}", hash.to_u32())
}

/// Returns the row with an ID; `None` if it is not one of the job.
fn row_of(name: &str, id: &str) -> Option<(u64, u32)> {
    let (row, hash) = id.strip_prefix(name)?.strip_prefix('-')?.split_once('-')?;
    Some((row.parse().ok()?, u32::from_str_radix(hash, 16).ok()?))
}

/// Writes a result as a line. Returns false if its ID is not one of the job.
pub(crate) fn write(out: &mut impl Write, job: &Job, result: BatchResult) -> io::Result<bool> {
    let rows = job.first..=job.last;
    let Some((row, hash)) = row_of(&job.name, &result.id).filter(|(row, _)| rows.contains(row)) else {
        return Ok(false);
    };
    let mut line = String::new();
    Writer::compact(&mut line).object(|w| {
        w.field("row", &row).field("hash", &u64::from(hash));
        match &result.outcome {
            BatchOutcome::Replied(reply) => {
                let body = Value::parse(&reply.body).unwrap_or_default();
                w.field("status", &u64::from(reply.status)).field("body", &body);
            }
            BatchOutcome::Expired => drop(w.field("lost", "expired")),
            BatchOutcome::Cancelled => drop(w.field("lost", "cancelled")),
            BatchOutcome::Missing(reason) => drop(w.field("lost", "missing").field("reason", reason)),
        }
    });
    line.push('\n');
    out.write_all(line.as_bytes())?;
    Ok(true)
}
