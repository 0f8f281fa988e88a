//! Envelopes as Rust results: a failed run as an error, and the data of a successful one as the caller's own type.

use std::fmt;

use cog_json::DeserializeError;
use serde::Deserialize;
use thiserror::Error;

use crate::{Envelope, ErrorBody, Outcome};

/// The error of [`Envelope::data_as`].
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum DataError {
    /// The run failed.
    #[error(transparent)]
    Failed(ErrorBody),
    /// The data do not match the type.
    #[error("the data of the answer do not fit the type: {0}")]
    Form(DeserializeError),
}

impl fmt::Display for ErrorBody {
    /// `E1006 INVALID_REFERENCE: message`, and the suggestion if there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        if let Some(name) = self.code.name() {
            write!(f, " {name}")?;
        }
        write!(f, ": {}", self.message)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, " (help: {suggestion})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ErrorBody {}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            Outcome::Success { .. } => f.write_str("the run succeeded"),
            Outcome::Failure { error, .. } => error.fmt(f),
        }
    }
}

/// A failed run as an error, with the message of its [`ErrorBody`].
impl std::error::Error for Envelope {}

impl Envelope {
    /// Returns the data of a successful run as the caller's own type, which may borrow its strings from the envelope.
    ///
    /// # Errors
    /// [`DataError::Failed`] with the error of a failed run; [`DataError::Form`] if the data do not match the type.
    pub fn data_as<'de, T: Deserialize<'de>>(&'de self) -> Result<T, DataError> {
        match &self.outcome {
            Outcome::Success { data } => cog_json::from_value(data).map_err(DataError::Form),
            Outcome::Failure { error, .. } => Err(DataError::Failed(error.clone())),
        }
    }

    /// Returns the envelope of a successful run, and the error of a failed one.
    ///
    /// # Errors
    /// The error of a failed run.
    pub fn into_result(self) -> Result<Self, ErrorBody> {
        match self.outcome {
            Outcome::Success { .. } => Ok(self),
            Outcome::Failure { error, .. } => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;

    use super::*;
    use crate::{Code, ErrorCode, Meta};

    #[derive(Debug, PartialEq, Deserialize)]
    struct Review<'a> {
        verdict: &'a str,
        issues: Vec<String>,
    }

    fn success(data: &str) -> Envelope {
        let meta = Meta::for_failure("only its data matter");
        Envelope::success(meta, Value::parse(data).unwrap())
    }

    #[test]
    fn errors_display_code_name_message_and_suggestion() {
        let error = ErrorBody::new(Code::InvalidReference, "`a.png` does not exist");
        assert_eq!(error.to_string(), "E1006 INVALID_REFERENCE: `a.png` does not exist");
        let error = error.suggest("Check the path.");
        assert_eq!(
            error.to_string(),
            "E1006 INVALID_REFERENCE: `a.png` does not exist (help: Check the path.)"
        );
        let declared = ErrorBody::with_code(ErrorCode::Declared("E5001".to_owned()), "no stock");
        assert_eq!((declared.to_string().as_str(), declared.recoverable), ("E5001: no stock", None));
    }

    #[test]
    fn converts_data_to_own_type() {
        let envelope = success(r#"{"verdict": "approve", "issues": ["one"]}"#);
        let review: Review<'_> = envelope.data_as().unwrap();
        assert_eq!(review, Review { verdict: "approve", issues: vec!["one".to_owned()] });
    }

    #[test]
    fn mismatch_names_the_path() {
        let envelope = success(r#"{"verdict": "approve", "issues": [7]}"#);
        let error = envelope.data_as::<Review<'_>>().unwrap_err();
        assert!(matches!(error, DataError::Form(_)));
        assert!(error.to_string().contains("issues[0]"), "{error}");
    }

    #[test]
    fn failed_run_is_an_error_with_its_code() {
        let failed = Envelope::failure(ErrorBody::new(Code::InvalidInput, "no text"));
        let error: Box<dyn std::error::Error> = Box::new(failed.clone());
        assert_eq!(error.to_string(), "E1001 INVALID_INPUT: no text");
        assert_eq!(failed.data_as::<Review<'_>>().unwrap_err().to_string(), "E1001 INVALID_INPUT: no text");
        assert_eq!(failed.into_result().unwrap_err().to_string(), "E1001 INVALID_INPUT: no text");
    }
}
