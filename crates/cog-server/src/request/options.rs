//! `_options` (docs/spec/streaming.md).

use cog_json::Node;
use cog_run::RunOptions;
use cog_spec::{Code, ErrorBody};

/// The options of a request: those of the run, and those of its delivery.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// What the run sets differently.
    pub(crate) run: RunOptions,
    /// One envelope or a stream.
    pub(crate) mode: Option<Mode>,
    /// Rather nothing than one envelope.
    pub(crate) require_streaming: bool,
    /// The answer is not waited for.
    pub(crate) detach: bool,
    /// How the media come that the module makes.
    pub(crate) media: MediaOutput,
}

/// How the media come that a module makes (SPEC 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MediaOutput {
    /// As addresses of this server.
    #[default]
    Url,
    /// In the answer.
    Base64,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One envelope.
    Sync,
    /// Chunk by chunk.
    Streaming,
}

/// The keys that are not the run's own.
const KEYS: &[&str] = &["response_mode", "require_streaming", "detach", "media_output"];

impl Options {
    /// Reads `_options`.
    ///
    /// # Errors
    /// E1001 and E1004, with the path, and what is allowed.
    pub(crate) fn read(node: Node<'_>) -> Result<Self, ErrorBody> {
        let run = RunOptions::read(node, KEYS)?;
        let mode = word(node, "response_mode", "sync, streaming")?;
        let media = word(node, "media_output", "url, base64")?.map(MediaOutput::read);
        Ok(Self {
            run,
            mode: mode.map(|word| Mode::read(word, "_options.response_mode")).transpose()?,
            require_streaming: flag(node, "require_streaming")?,
            detach: flag(node, "detach")?,
            media: media.transpose()?.unwrap_or_default(),
        })
    }

    /// The mode that these options ask for; requiring a stream is asking for one.
    pub(crate) fn asked(&self) -> Option<Mode> {
        self.mode.or_else(|| self.require_streaming.then_some(Mode::Streaming))
    }
}

impl Mode {
    /// Reads the word; `place` says where it stands.
    pub(crate) fn read(word: &str, place: &str) -> Result<Self, ErrorBody> {
        match word {
            "sync" => Ok(Self::Sync),
            "streaming" => Ok(Self::Streaming),
            _ => Err(unsupported(word, place, "sync, streaming")),
        }
    }
}

impl MediaOutput {
    fn read(word: &str) -> Result<Self, ErrorBody> {
        match word {
            "url" => Ok(Self::Url),
            "base64" => Ok(Self::Base64),
            _ => Err(unsupported(word, "_options.media_output", "url, base64")),
        }
    }
}

fn unsupported(word: &str, place: &str, allowed: &str) -> ErrorBody {
    let word: String = word.chars().take(40).collect();
    ErrorBody::new(Code::UnsupportedValue, format!("{place}: found `{word}`; allowed: {allowed}"))
}

fn word<'a>(node: Node<'a>, key: &str, allowed: &str) -> Result<Option<&'a str>, ErrorBody> {
    let no_text = || {
        let message = format!("_options.{key}: found no text; allowed: {allowed}");
        ErrorBody::new(Code::InvalidInput, message)
    };
    node.get(key).map(|value| value.as_str().ok_or_else(no_text)).transpose()
}

fn flag(node: Node<'_>, key: &str) -> Result<bool, ErrorBody> {
    match node.get(key) {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| {
            ErrorBody::new(Code::InvalidInput, format!("_options.{key}: allowed: true or false"))
        }),
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;

    fn read(text: &str) -> Result<Options, ErrorBody> {
        Options::read(Value::parse(text).unwrap().node())
    }

    #[test]
    fn options_of_run_and_delivery_are_read_together() {
        let options = read(r#"{"response_mode": "streaming", "detach": true, "strict": true}"#).unwrap();
        assert!(options.detach && options.run.strict && !options.require_streaming);
        assert_eq!(options.asked(), Some(Mode::Streaming));
    }

    #[test]
    fn a_misspelt_option_is_told_with_the_nearest() {
        let error = read(r#"{"respons_mode": "sync"}"#).unwrap_err();
        assert_eq!(error.code, Code::InvalidInput.into());
        assert!(format!("{error:?}").contains("response_mode"), "{error:?}");
        assert!(read(r#"{"detach": "yes"}"#).unwrap_err().message.contains("_options.detach"));
        assert!(read(r#"{"media_output": "file"}"#).unwrap_err().message.contains("url, base64"));
        assert!(read(r#"{"response_mode": "both"}"#).unwrap_err().message.contains("sync, streaming"));
    }
}
