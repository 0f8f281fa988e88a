//! The file of a session: a header line with the run, then one line per chunk.

use std::{
    fs::OpenOptions,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use cog_json::{Value, Writer};
use cog_spec::ErrorBody;
use cog_store::private::{self, ListedFile};

use super::{
    SessionState,
    log::{Event, Log},
    session::RunSpec,
    shared::Shared,
};
use crate::{RunContext, RunOptions, call_log::CallLog, clock, media_files::MediaFiles, options};

/// The format version of the header line.
const VERSION: u64 = 1;
/// The maximum length of a file that is read, larger than any usual input and log.
const MAX_LEN: u64 = 1 << 30;

/// Returns the header line of a session's file.
pub(crate) fn header(session: &Shared, spec: &RunSpec) -> String {
    let mut line = String::new();
    Writer::compact(&mut line).object(|w| {
        w.field("cog_session", &VERSION);
        w.field("session_id", &session.id);
        w.field("owner", &session.owner);
        w.field("detached", &session.detached);
        w.field("created_ms", &session.created_ms);
        w.field("partial_allowed", &session.partial_allowed);
        w.field("module", &spec.module);
        w.field("options", &spec.options);
        options::write_stored(w.key("internal_options"), &spec.options, &spec.context.warnings);
        w.field("input", &spec.input);
    });
    line.push('\n');
    line
}

/// Returns the session files of a directory, the least recently written first. Other files are skipped.
pub(crate) fn list(directory: &Path) -> io::Result<Vec<ListedFile>> {
    private::list(directory, |name| id_of(name).is_some())
}

/// The extension of the file with the tool calls of a session's run.
const CALLS: &str = "calls";

/// Returns the file with the tool calls of a session's run, next to the file of the session.
pub(crate) fn call_log(path: &Path) -> PathBuf {
    path.with_extension(CALLS)
}

/// Removes the logs of tool calls of sessions whose run does not start again.
pub(crate) fn remove_call_logs(directory: &Path, is_needed: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let session = path.with_extension("ndjson");
        let id = session.file_name().and_then(|name| id_of(name.to_str()?));
        if path.extension().is_some_and(|extension| extension == CALLS) && id.is_some_and(|id| !is_needed(id))
        {
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
}

/// Returns the session id in a file name: `sess_` and 32 hexadecimal digits.
pub(crate) fn id_of(name: &str) -> Option<&str> {
    let id = name.strip_suffix(".ndjson")?;
    let digits = id.strip_prefix("sess_").filter(|digits| digits.len() == 32)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(id)
}

/// Reads a session, and truncates a line that was written only in part. None when the file contains no
/// session, or one without chunks, which no client has seen.
pub(crate) fn read(file: &ListedFile, media: &Arc<MediaFiles>) -> io::Result<Option<Found>> {
    let path = &file.path;
    let bytes = private::read(path, MAX_LEN)?;
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').map(complete_line);
    let first = lines.next().flatten();
    let id = path.file_name().and_then(|name| id_of(name.to_str()?));
    let Some(mut header) = first.and_then(Header::read).filter(|header| Some(header.id.as_str()) == id)
    else {
        return Ok(None);
    };
    header.spec.context.call_log = Some(CallLog::restored(call_log(path), &header.owner, Arc::clone(media)));
    let mut log = Log::default();
    let mut state = SessionState::Running;
    let mut length = first.map_or(0, str::len) + 1;
    for line in lines {
        let Some(now) = line.and_then(|line| append_line(&mut log, line)) else { break };
        state = now;
        length += line.map_or(0, str::len) + 1;
    }
    if length < bytes.len() {
        // The next program that writes the session appends to what is valid.
        OpenOptions::new().write(true).open(path)?.set_len(length as u64)?;
    }
    let age = file.age(clock::now());
    Ok(log.meta().is_some().then_some(Found { header, log, state, age }))
}

/// Returns a complete line without its line break.
fn complete_line(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line.strip_suffix(b"\n")?).ok()
}

/// Adds a chunk to the log, and returns the state after it. None when the line is not a valid next chunk.
pub(crate) fn append_line(log: &mut Log, line: &str) -> Option<SessionState> {
    let value = Value::parse(line).ok()?;
    let (event, seq, state) = if let Some(chunk) = value.get("chunk") {
        (Event::Chunk, Some(chunk.get("seq")?.as_u64()?), SessionState::Running)
    } else if value.get("progress").is_some() {
        (Event::Progress, None, SessionState::Running)
    } else if value.get("part_answer").is_some() {
        (Event::PartAnswer, None, SessionState::Running)
    } else if value.get("final").is_some() {
        (Event::Final, None, SessionState::Finished)
    } else if let Some(error) = value.get("error") {
        let is_interrupted = error.get("recovery").is_some();
        let read = ErrorBody::read(error);
        let other = read.map_or(SessionState::Failed, |error| SessionState::from_error(&error));
        (Event::Error, None, if is_interrupted { SessionState::Interrupted } else { other })
    } else {
        value.get("session_id")?;
        (Event::Meta, None, SessionState::Running)
    };
    let is_first = log.end() == 0;
    let follows = seq.is_none_or(|seq| seq == log.last_seq() + 1);
    if is_first != (event == Event::Meta) || !follows {
        return None;
    }
    log.reopen(); // a chunk after a final event belongs to a resumed run
    let has_checkpoint = value.get("chunk").is_some_and(|chunk| chunk.get("checkpoint").is_some());
    log.push_line(line, event, seq, has_checkpoint);
    Some(state)
}

/// A session that was read from its file.
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) log: Log,
    pub(crate) state: SessionState,
    /// The time since the file was last written.
    pub(crate) age: Duration,
}

/// The header line of a session's file.
pub(crate) struct Header {
    pub(crate) id: String,
    pub(crate) owner: String,
    pub(crate) detached: bool,
    pub(crate) created_ms: u64,
    pub(crate) partial_allowed: bool,
    pub(crate) spec: RunSpec,
}

impl Header {
    pub(crate) fn read(line: &str) -> Option<Self> {
        let value = Value::parse(line).ok().filter(|value| value.get("cog_session").is_some())?;
        let mut options = RunOptions::read(value.get("options")?, &[]).ok()?;
        let mut context = RunContext::default();
        if let Some(internal_options) = value.get("internal_options") {
            context.warnings = options::read_stored(internal_options, &mut options)?;
        }
        let input = value.child(value.get("input")?);
        let module = value.get_str("module")?.to_owned();
        Some(Self {
            id: value.get_str("session_id")?.to_owned(),
            owner: value.get_str("owner")?.to_owned(),
            detached: value.get("detached")?.as_bool()?,
            created_ms: value.get("created_ms")?.as_u64()?,
            partial_allowed: value
                .get("partial_allowed")
                .is_none_or(|allowed| allowed.as_bool() == Some(true)),
            spec: RunSpec { module, input, options, context },
        })
    }
}
