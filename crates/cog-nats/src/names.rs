//! The names of streams and subjects.

use crate::NatsError;

/// The maximum length of a name in bytes.
const MAX_NAME: usize = 32;

/// The names of streams and subjects. Programs with the same name share their jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names(String);

impl Names {
    /// Returns the names that begin with this one.
    ///
    /// # Errors
    /// [`NatsError::Name`] for a name with other characters than a-z, 0-9 and `-`.
    pub fn new(name: &str) -> Result<Self, NatsError> {
        let has_valid_bytes =
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if name.is_empty() || name.len() > MAX_NAME || !has_valid_bytes {
            return Err(NatsError::Name { name: name.chars().take(64).collect() });
        }
        Ok(Self(name.to_owned()))
    }

    /// Returns the stream of the jobs.
    pub fn jobs(&self) -> String {
        format!("{}-jobs", self.0)
    }

    /// Returns the subject of jobs with this last part, such as the id of a batch.
    pub fn job_subject(&self, last: &str) -> String {
        format!("{}.jobs.{last}", self.0)
    }

    /// Returns the stream of the jobs that cannot be run.
    pub fn failed(&self) -> String {
        format!("{}-failed", self.0)
    }

    /// Returns the subject of the jobs that cannot be run.
    pub fn failed_subject(&self) -> String {
        format!("{}.failed", self.0)
    }

    /// Returns the key-value bucket of the results.
    pub fn results(&self) -> String {
        format!("{}-results", self.0)
    }

    /// Returns the stream of the sessions.
    pub fn sessions(&self) -> String {
        format!("{}-sessions", self.0)
    }

    /// Returns the subject of a session.
    pub(crate) fn session_subject(&self, id: &str) -> String {
        format!("{}.sessions.{id}", self.0)
    }

    /// Returns the subject of requests to a server.
    pub(crate) fn server_subject(&self, server: &str) -> String {
        format!("{}.servers.{server}", self.0)
    }

    /// Returns the subject below which the subjects for results are.
    pub fn replies(&self) -> String {
        format!("{}.replies", self.0)
    }

    /// Returns the subject for the result of the job with this id.
    pub(crate) fn reply_subject(&self, id: &str) -> String {
        format!("{}.replies.{id}", self.0)
    }

    /// Returns whether a job may name this subject for its result: one below `NAME.replies`, or an inbox.
    ///
    /// A worker may publish to more subjects than the author of a job, so a job cannot choose any subject.
    pub(crate) fn allows_reply(&self, subject: &str) -> bool {
        let rest = subject.strip_prefix("_INBOX.");
        let rest = rest.or_else(|| subject.strip_prefix(&self.0)?.strip_prefix(".replies."));
        rest.is_some_and(|rest| rest.len() <= 200 && rest.split('.').all(is_token))
    }
}

/// Returns whether a string can be a part of a subject: graphic ASCII without wildcards.
fn is_token(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'*' | b'>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_has_no_separators_or_wildcards() {
        for name in ["", "a.b", "A", "a b", "*", ">", "a\n", &"a".repeat(33)] {
            assert!(Names::new(name).is_err(), "{name}");
        }
        assert_eq!(Names::new("cog-2").unwrap().jobs(), "cog-2-jobs");
    }

    #[test]
    fn reply_is_an_inbox_or_below_the_subject_for_replies() {
        let names = Names::new("cog").unwrap();
        for subject in ["_INBOX.a.b", "cog.replies.team-1"] {
            assert!(names.allows_reply(subject), "{subject}");
        }
        for subject in [
            "$JS.API.STREAM.DELETE.x",
            "cog.jobs.x",
            "cog.replies.",
            "cog.replies.>",
            "_INBOX.*",
            "_INBOX.a b",
        ] {
            assert!(!names.allows_reply(subject), "{subject}");
        }
    }
}
