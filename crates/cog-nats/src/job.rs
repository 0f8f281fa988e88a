//! A job: one run of a module.

use std::fmt;

use async_nats::HeaderMap;
use bytes::Bytes;
use cog_json::{Value, Writer};
use cog_run::RunOptions;
use cog_spec::{Code, ErrorBody};
use sha2::{Digest as _, Sha256};

use crate::Names;

/// The maximum length of an id in bytes.
const MAX_ID: usize = 128;
/// The keys of a job.
const KEYS: [&str; 5] = ["module", "version", "input", "options", "reply"];

/// The id of a job: the header `Nats-Msg-Id` of its message. Its result is stored under the id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobId(String);

impl JobId {
    /// Returns the id for a string of letters, digits and `-_=.`, without empty parts between dots.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (text.len() <= MAX_ID && text.split('.').all(is_part_of_id)).then_some(Self(text))
    }

    /// Returns the id as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the id of a message.
    pub(crate) fn from_headers(headers: Option<&HeaderMap>) -> Option<Self> {
        let id = headers?.get(async_nats::header::NATS_MESSAGE_ID)?;
        Self::new(id.as_str())
    }
}

fn is_part_of_id(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte))
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A job: `{"module": …, "version": …, "input": {…}, "options": {…}, "reply": …}`.
#[derive(Debug, Clone)]
pub struct Job {
    /// The name of the module.
    pub module: String,
    /// The version that the module must have, as in its manifest.
    pub version: Option<String>,
    /// The input.
    pub input: Value,
    /// The options of the run, with the keys of `_options` of a request.
    pub options: RunOptions,
    /// A subject to which the result is published too.
    pub reply: Option<String>,
}

impl Job {
    /// Returns a job without options.
    pub fn new(module: impl Into<String>, input: Value) -> Self {
        Self { module: module.into(), version: None, input, options: RunOptions::default(), reply: None }
    }

    /// Reads the text of a message.
    ///
    /// # Errors
    /// E1000 for bytes that are not JSON; E1001 to E1004 for JSON that is not a valid job.
    pub fn read(text: &[u8], names: &Names) -> Result<Self, ErrorBody> {
        let job = Value::parse_bytes(text)
            .map_err(|error| ErrorBody::new(Code::ParseError, format!("the job is not JSON: {error}")))?;
        if !job.is_object() {
            return Err(ErrorBody::new(Code::InvalidInput, "the job is not an object").suggest(FORM));
        }
        if let Some((key, _)) = job.members().find(|(key, _)| !KEYS.contains(key)) {
            let key: String = key.chars().take(40).collect();
            let message = format!("{key}: unknown key; allowed: {}", KEYS.join(", "));
            return Err(ErrorBody::new(Code::InvalidInput, message).suggest(FORM));
        }
        let module = job.get("module").ok_or_else(|| missing("module"))?.as_str();
        let input = job.get("input").ok_or_else(|| missing("input"))?;
        let version = optional_string(&job, "version")?.map(str::to_owned);
        Ok(Self {
            version,
            module: module.ok_or_else(|| wrong_type("module", "a string"))?.to_owned(),
            input: job.child(input),
            options: match job.get("options") {
                Some(options) => RunOptions::read(options, &[])?,
                None => RunOptions::default(),
            },
            reply: optional_string(&job, "reply")?.map(|reply| allowed(reply, names)).transpose()?,
        })
    }

    /// Returns the text of a message.
    pub fn write(&self) -> Bytes {
        let mut text = String::new();
        Writer::compact(&mut text).object(|w| {
            w.field("module", &self.module);
            w.optional("version", &self.version);
            w.field("input", &self.input);
            w.field("options", &self.options);
            w.optional("reply", &self.reply);
        });
        text.into()
    }
}

fn optional_string<'a>(job: &'a Value, key: &str) -> Result<Option<&'a str>, ErrorBody> {
    let Some(value) = job.get(key) else { return Ok(None) };
    value.as_str().map(Some).ok_or_else(|| wrong_type(key, "a string"))
}

/// Returns the subject for the result of a job that is not valid, if it names an allowed one.
pub(crate) fn reply_of(text: &[u8], names: &Names) -> Option<String> {
    let job = Value::parse_bytes(text).ok()?;
    allowed(job.get("reply")?.as_str()?, names).ok()
}

/// Returns the beginning of the SHA-256 of the text, which differs between two jobs with the same id.
pub(crate) fn digest(text: &[u8]) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

const FORM: &str =
    r#"A job is {"module": NAME, "input": {…}}, optionally with "version", "options" and "reply"."#;

fn allowed(reply: &str, names: &Names) -> Result<String, ErrorBody> {
    if names.allows_reply(reply) {
        return Ok(reply.to_owned());
    }
    let message = "reply: the subject is not allowed";
    let help = format!("Use an inbox (_INBOX.…) or a subject below {}.", names.replies());
    Err(ErrorBody::new(Code::PermissionDenied, message).suggest(help))
}

fn missing(key: &str) -> ErrorBody {
    ErrorBody::new(Code::MissingRequiredField, format!("{key}: missing")).suggest(FORM)
}

fn wrong_type(key: &str, kind: &str) -> ErrorBody {
    ErrorBody::new(Code::TypeMismatch, format!("{key}: must be {kind}")).suggest(FORM)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Job, ErrorBody> {
        Job::read(text.as_bytes(), &Names::new("cog").unwrap())
    }

    #[test]
    fn job_survives_its_way_through_a_message() {
        let text = r#"{"module":"m","version":"1.0.0","input":{"n":1.50},"options":{"model":"x"},"reply":"cog.replies.a"}"#;
        let written = read(text).unwrap().write();
        assert_eq!(std::str::from_utf8(&written).unwrap(), text);
    }

    #[test]
    fn invalid_job_has_the_code_and_the_key() {
        for (text, code, key) in [
            ("", "E1000", "not JSON"),
            ("[]", "E1001", "not an object"),
            ("{}", "E1002", "module"),
            (r#"{"module":"m"}"#, "E1002", "input"),
            (r#"{"module":1,"input":{}}"#, "E1003", "module"),
            (r#"{"module":"m","version":1,"input":{}}"#, "E1003", "version"),
            (r#"{"module":"m","input":{},"modle":1}"#, "E1001", "modle"),
            (r#"{"module":"m","input":{},"options":{"modle":1}}"#, "E1001", "modle"),
            (r#"{"module":"m","input":{},"reply":"$JS.API.x"}"#, "E4007", "reply"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.code.as_str() == code && error.message.contains(key), "{text}: {error:?}");
        }
    }

    #[test]
    fn id_is_a_key_of_a_bucket() {
        for id in ["a", "batch-1.17", "a_b=c"] {
            assert_eq!(JobId::new(id).unwrap().as_str(), id);
        }
        for id in ["", ".", "a.", "a..b", "a b", "a*", "a>", "é", &"a".repeat(129)] {
            assert!(JobId::new(id).is_none(), "{id}");
        }
    }
}
