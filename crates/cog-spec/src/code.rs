//! The table of error codes (SPEC 7, docs/spec/errors.md). This is its only definition.

use std::borrow::Cow;
use std::{fmt, str::FromStr};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Whether a retry can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recoverable {
    /// A retry can succeed.
    Yes,
    /// A retry fails again.
    No,
    /// It depends on the cause; see `error.recoverable`.
    Maybe,
}

impl Recoverable {
    /// Returns the value of `error.recoverable`; none for [`Recoverable::Maybe`].
    pub const fn as_bool(self) -> Option<bool> {
        match self {
            Recoverable::Yes => Some(true),
            Recoverable::No => Some(false),
            Recoverable::Maybe => None,
        }
    }
}

/// The category of a code: its first digit (SPEC 7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// E1xxx.
    Input,
    /// E2xxx.
    Processing,
    /// E3xxx.
    Output,
    /// E4xxx.
    Runtime,
}

impl Category {
    /// Returns the name of the category.
    pub const fn as_str(self) -> &'static str {
        match self {
            Category::Input => "input",
            Category::Processing => "processing",
            Category::Output => "output",
            Category::Runtime => "runtime",
        }
    }
}

/// Declares the codes: number, name, recoverable, HTTP status, older text code, meaning, advice.
macro_rules! codes {
    ($($variant:ident $number:literal $name:literal $recoverable:ident $http:literal $legacy:expr,
       $meaning:literal, $advice:literal;)+) => {
        /// An error code of the specification.
        ///
        /// The variants are in the order of their numbers, with the names of the specification.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = concat!($number, " ", $name, ": ", $meaning)] $variant),+ }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// Returns the code, such as `E1000`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $number),+ }
            }

            /// Returns the name, such as `PARSE_ERROR`.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),+ }
            }

            /// Returns whether a retry can succeed.
            pub const fn recoverable(self) -> Recoverable {
                match self { $(Code::$variant => Recoverable::$recoverable),+ }
            }

            /// Returns the status of the HTTP response with the envelope.
            pub const fn http_status(self) -> u16 {
                match self { $(Code::$variant => $http),+ }
            }

            /// Returns the equivalent text code of v2.2 (ruling R31).
            pub const fn legacy(self) -> Option<&'static str> {
                match self { $(Code::$variant => $legacy),+ }
            }

            /// Returns the meaning of the code, one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning),+ }
            }

            /// Returns the advice to the user.
            pub const fn advice(self) -> &'static str {
                match self { $(Code::$variant => $advice),+ }
            }
        }
    };
}

codes! {
    ParseError "E1000" "PARSE_ERROR" No 422 Some("PARSE_ERROR"),
        "The model's reply or the request is not the expected JSON.",
        "Check partial_data and the raw reply (`cog run -vv`). A stronger model or structured output may help.";
    InvalidInput "E1001" "INVALID_INPUT" Yes 400 Some("INVALID_INPUT"),
        "The input does not match the module's input schema.",
        "Compare the input with `cog info MODULE`. details.violations lists every violation.";
    MissingRequiredField "E1002" "MISSING_REQUIRED_FIELD" Yes 400 None,
        "A field that the input schema requires is missing.",
        "Add the field at the reported path.";
    TypeMismatch "E1003" "TYPE_MISMATCH" Yes 400 None,
        "A field of the input has the wrong type.",
        "Change the field to the type that the message names.";
    UnsupportedValue "E1004" "UNSUPPORTED_VALUE" Maybe 400 Some("UNSUPPORTED_LANGUAGE"),
        "A value of the input is not supported.",
        "Use one of the values that the message lists.";
    InputTooLarge "E1005" "INPUT_TOO_LARGE" Yes 413 None,
        "The input is over the module's max_input_tokens, the model's context window, or a size limit.",
        "Shorten or split the input, or raise the limit that the message names.";
    InvalidReference "E1006" "INVALID_REFERENCE" Yes 400 None,
        "A file, URL or name in the input does not exist or cannot be read.",
        "Check the path or name in the message.";
    UnsupportedMediaType "E1010" "UNSUPPORTED_MEDIA_TYPE" Yes 415 None,
        "The module does not support this media type.",
        "Convert the file, or add its modality to the manifest.";
    MediaTooLarge "E1011" "MEDIA_TOO_LARGE" Yes 413 None,
        "The media file exceeds the maximum size, duration or page count.",
        "Compress, shorten or split the file.";
    MediaFetchFailed "E1012" "MEDIA_FETCH_FAILED" Yes 422 None,
        "The media file could not be fetched from its URL, or the URL is not allowed.",
        "Check that the URL is reachable. Private addresses must be on the server's allow list.";
    MediaDecodeFailed "E1013" "MEDIA_DECODE_FAILED" Yes 422 None,
        "The base64 data or the media file cannot be decoded.",
        "Encode the file again, with padding and without line breaks.";
    MediaTypeMismatch "E1014" "MEDIA_TYPE_MISMATCH" Yes 422 None,
        "The declared media_type does not match the content.",
        "Correct media_type, or omit it where it is optional.";
    MediaDimensionExceeded "E1015" "MEDIA_DIMENSION_EXCEEDED" Yes 422 None,
        "The width or height of the image or video frame is too large.",
        "Scale the image down.";
    MediaDimensionTooSmall "E1016" "MEDIA_DIMENSION_TOO_SMALL" Yes 422 None,
        "The width or height of the image is below the manifest's minimum.",
        "Use a larger image.";
    MediaPixelLimit "E1017" "MEDIA_PIXEL_LIMIT" Yes 422 None,
        "The image has too many pixels.",
        "Scale the image down.";
    UploadExpired "E1018" "UPLOAD_EXPIRED" Yes 410 None,
        "The upload has expired.",
        "Upload the file again.";
    UploadNotFound "E1019" "UPLOAD_NOT_FOUND" Yes 404 None,
        "No upload with this upload_id exists.",
        "Check the upload_id, or upload the file again.";
    ChecksumMismatch "E1020" "CHECKSUM_MISMATCH" Yes 422 None,
        "The content does not match the given checksum.",
        "Transfer the file again, or correct the checksum.";
    LowConfidence "E2001" "LOW_CONFIDENCE" Yes 422 None,
        "The confidence of the answer is below the minimum of the tier, or it did not pass its gate.",
        "Review the answer in partial_data, add context, or ask another model with --provider a,b --escalate.";
    Timeout "E2002" "TIMEOUT" Maybe 504 None,
        "The request timed out.",
        "Raise --timeout, or shorten the input.";
    TokenLimit "E2003" "TOKEN_LIMIT" Yes 422 None,
        "The model reached its output limit; the answer is truncated.",
        "Raise --max-tokens, or request a shorter answer.";
    NoActionPossible "E2004" "NO_ACTION_POSSIBLE" No 422 Some("NO_SIMPLIFICATION_POSSIBLE"),
        "There is nothing to do, or the model refused. details.reason has the reason.",
        "Change the request.";
    SemanticConflict "E2005" "SEMANTIC_CONFLICT" Maybe 422 Some("BEHAVIOR_CHANGE_REQUIRED"),
        "The request contradicts a constraint.",
        "Relax the constraint, or change the request.";
    AmbiguousInput "E2006" "AMBIGUOUS_INPUT" Yes 422 None,
        "The input is ambiguous.",
        "Make the input more specific.";
    InsufficientContext "E2007" "INSUFFICIENT_CONTEXT" Yes 422 None,
        "The input does not contain enough information.",
        "Add the information that the message names.";
    StreamInterrupted "E2010" "STREAM_INTERRUPTED" Maybe 502 None,
        "The stream ended before the answer was complete.",
        "Resume the session, or send the request again.";
    StreamTimeout "E2011" "STREAM_TIMEOUT" Yes 504 None,
        "The stream timed out.",
        "Raise --timeout, or request a shorter answer.";
    OutputSchemaViolation "E3001" "OUTPUT_SCHEMA_VIOLATION" No 502 Some("SCHEMA_VALIDATION_FAILED"),
        "The answer does not match the module's output schema.",
        "details.violations lists every violation. Make the prompt or the schema clearer.";
    PartialResult "E3002" "PARTIAL_RESULT" Maybe 502 None,
        "A step of a composition failed; partial_data has the finished steps.",
        "See details for the step that failed.";
    MissingRationale "E3003" "MISSING_RATIONALE" No 502 None,
        "The rationale of the answer is missing or empty.",
        "Request a rationale in the prompt, and require it in the schema.";
    OverflowLimit "E3004" "OVERFLOW_LIMIT" No 502 None,
        "The answer contains more insights than the module allows.",
        "Raise overflow.max_items, or use a tier that allows overflow.";
    InvalidEnum "E3005" "INVALID_ENUM" No 502 None,
        "A value of the answer is not in its enum.",
        "Add the value to the enum, or make the enum extensible.";
    ConstraintViolation "E3006" "CONSTRAINT_VIOLATION" No 502 None,
        "The answer violates a constraint of the tier or the manifest.",
        "Review the answer in partial_data.";
    InternalError "E4000" "INTERNAL_ERROR" No 500 Some("INTERNAL_ERROR"),
        "The runtime failed because of an internal error.",
        "Please report this bug with the output of -v.";
    ProviderUnavailable "E4001" "PROVIDER_UNAVAILABLE" Yes 502 None,
        "The provider cannot be reached, or refused the request.",
        "Run `cog doctor`, and check the API key variable that the message names.";
    RateLimited "E4002" "RATE_LIMITED" Yes 429 None,
        "The rate limit of the provider or of this server is exceeded.",
        "Wait for the time in Retry-After, then try again.";
    ContextOverflow "E4003" "CONTEXT_OVERFLOW" Maybe 413 None,
        "The provider rejected the request: it exceeds the model's context window.",
        "Shorten the input, or use a model with a larger context window.";
    CircularDependency "E4004" "CIRCULAR_DEPENDENCY" No 422 None,
        "Modules depend on each other in a cycle.",
        "Break the cycle that the message shows.";
    MaxDepthExceeded "E4005" "MAX_DEPTH_EXCEEDED" No 422 None,
        "Module calls are nested too deeply.",
        "Flatten the composition, or raise composition.max_depth.";
    ModuleNotFound "E4006" "MODULE_NOT_FOUND" Yes 404 Some("MODULE_NOT_FOUND"),
        "No module with this name exists.",
        "Run `cog list` to see the modules and their directories.";
    PermissionDenied "E4007" "PERMISSION_DENIED" No 403 None,
        "A policy, an allowed directory or a missing token denies this.",
        "Check the rule that the message names; the operator can change it.";
    ModuleInvalid "E4008" "MODULE_INVALID" No 422 None,
        "The module's manifest, prompt or schema is invalid.",
        "Run `cog validate MODULE` to see the file, line and column.";
    StreamingNotSupported "E4010" "STREAMING_NOT_SUPPORTED" No 406 None,
        "A stream was required, but streaming is not available.",
        "Remove require_streaming, or use a module and provider that support streaming.";
    MultimodalNotSupported "E4011" "MULTIMODAL_NOT_SUPPORTED" No 415 None,
        "The runtime, provider or model does not support this modality.",
        "Use a model that supports it; `cog doctor` lists what each provider supports.";
    RecoveryNotSupported "E4012" "RECOVERY_NOT_SUPPORTED" No 501 None,
        "Resuming streams is disabled.",
        "Start a new run.";
    SessionExpired "E4013" "SESSION_EXPIRED" No 410 None,
        "The session has expired.",
        "Start a new run.";
    CheckpointInvalid "E4014" "CHECKPOINT_INVALID" Yes 409 None,
        "The checkpoint does not match the session.",
        "Resume from an earlier checkpoint, or from the start.";
}

impl Code {
    /// The codes that a model is offered for its own errors, with their conditions. A module may declare more. The other
    /// codes are about the runtime.
    pub const OF_MODELS: &'static [(Code, &'static str)] = &[
        (Code::InvalidInput, "The input is invalid"),
        (Code::UnsupportedValue, "A value of the input is not supported"),
        (Code::InvalidReference, "The input refers to something that does not exist"),
        (Code::MediaDecodeFailed, "A media file cannot be read"),
        (Code::NoActionPossible, "There is nothing to do, or you decline the task"),
        (Code::SemanticConflict, "The task contradicts one of its constraints"),
        (Code::AmbiguousInput, "The input can be understood in very different ways"),
        (Code::InsufficientContext, "The input does not contain enough information"),
    ];

    /// Returns the category of the code (SPEC 7.2).
    pub fn category(self) -> Category {
        match self.as_str().as_bytes().get(1) {
            Some(b'1') => Category::Input,
            Some(b'2') => Category::Processing,
            Some(b'3') => Category::Output,
            _ => Category::Runtime,
        }
    }

    /// Returns the code for a text code of v2.2, or for the name of a code (ruling R31).
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.legacy() == Some(text) || code.name() == text)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Code {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text).ok_or(())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(|()| D::Error::custom(format_args!("`{text}` is not an error code")))
    }
}

/// The code in an envelope: one of the table, or one of the module's own (ruling R31).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorCode {
    /// A code of the table.
    Standard(Code),
    /// A code that the module's manifest declares (E5xxx–E9xxx), or that its error schema allows.
    Declared(String),
}

impl ErrorCode {
    /// Returns the value of `error.code`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Standard(code) => code.as_str(),
            Self::Declared(code) => code,
        }
    }

    /// Returns the status of the HTTP response; 422 for a declared code.
    pub fn http_status(&self) -> u16 {
        match self {
            Self::Standard(code) => code.http_status(),
            Self::Declared(_) => 422,
        }
    }

    /// Returns whether a module may declare the code: E5000 to E9999.
    pub fn is_declarable(text: &str) -> bool {
        matches!(text.as_bytes(), [b'E', b'5'..=b'9', a, b, c] if [a, b, c].iter().all(|d| d.is_ascii_digit()))
    }

    /// Returns whether text has the form of a code: `E` and four digits, from E1000 on.
    pub fn is_number(text: &str) -> bool {
        matches!(text.as_bytes(), [b'E', b'1'..=b'9', a, b, c] if [a, b, c].iter().all(|d| d.is_ascii_digit()))
    }

    /// Returns the name of a code of the table; none for a declared code.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Self::Standard(code) => Some(code.name()),
            Self::Declared(_) => None,
        }
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl From<Code> for ErrorCode {
    fn from(code: Code) -> Self {
        Self::Standard(code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_parse_back() {
        assert!(Code::ALL.is_sorted_by_key(|code| code.as_str()));
        for code in Code::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
            assert_eq!(Code::from_text(code.name()), Some(*code));
        }
    }

    #[test]
    fn codes_have_the_http_status_of_the_specification() {
        let status = |code: &str| code.parse::<Code>().unwrap().http_status();
        for (code, expected) in [
            ("E1000", 422),
            ("E1001", 400),
            ("E1005", 413),
            ("E1010", 415),
            ("E1018", 410),
            ("E1019", 404),
            ("E2002", 504),
            ("E2010", 502),
            ("E3001", 502),
            ("E4000", 500),
            ("E4001", 502),
            ("E4002", 429),
            ("E4006", 404),
            ("E4007", 403),
            ("E4010", 406),
            ("E4012", 501),
            ("E4013", 410),
            ("E4014", 409),
        ] {
            assert_eq!(status(code), expected, "{code}");
        }
        assert_eq!(ErrorCode::Declared("E5000".to_owned()).http_status(), 422);
    }

    #[test]
    fn knows_text_codes_of_v22() {
        assert_eq!(Code::from_text("BEHAVIOR_CHANGE_REQUIRED"), Some(Code::SemanticConflict));
        assert_eq!(Code::from_text("SOMETHING_ELSE"), None);
    }

    #[test]
    fn modules_declare_e5000_to_e9999() {
        assert!(ErrorCode::is_declarable("E5000") && ErrorCode::is_declarable("E9999"));
        assert!(!ErrorCode::is_declarable("E4999") && !ErrorCode::is_declarable("E50000"));
    }

    #[test]
    fn first_digit_of_a_code_is_its_category() {
        for code in Code::ALL {
            let expected = match code.to_string().get(..2) {
                Some("E1") => "input",
                Some("E2") => "processing",
                Some("E3") => "output",
                Some("E4") => "runtime",
                other => panic!("{other:?}"),
            };
            assert_eq!(code.category().as_str(), expected, "{code}");
        }
    }

    #[test]
    fn a_code_that_depends_on_the_cause_does_not_say_whether_a_retry_can_succeed() {
        let recoverable = |code: Code| code.recoverable().as_bool();
        assert_eq!(recoverable(Code::InvalidInput), Some(true));
        assert_eq!(recoverable(Code::ParseError), Some(false));
        assert_eq!(recoverable(Code::UnsupportedValue), None);
    }
}
