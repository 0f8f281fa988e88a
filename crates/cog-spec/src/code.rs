//! The table of error codes (SPEC 7, docs/spec/errors.md). It stands here and nowhere else.

use std::{fmt, str::FromStr};

use cog_json::{ToJson, Writer};

/// Whether another attempt can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recoverable {
    /// It can.
    Yes,
    /// It cannot.
    No,
    /// It depends on what went wrong; `error.recoverable` says.
    Maybe,
}

/// The thousands of a code (SPEC 7.2).
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
    /// The category in a word.
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
        /// The variants stand in the order of their numbers; each is named as the specification
        /// names it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Code { $(#[doc = concat!($number, " ", $name, ": ", $meaning)] $variant),+ }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// The code itself, `E1000`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $number),+ }
            }

            /// Its name, `PARSE_ERROR`.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),+ }
            }

            /// Whether another attempt can help.
            pub const fn recoverable(self) -> Recoverable {
                match self { $(Code::$variant => Recoverable::$recoverable),+ }
            }

            /// The status of an HTTP response that carries the envelope.
            pub const fn http_status(self) -> u16 {
                match self { $(Code::$variant => $http),+ }
            }

            /// The text code of v2.2 that means the same (ruling R31).
            pub const fn legacy(self) -> Option<&'static str> {
                match self { $(Code::$variant => $legacy),+ }
            }

            /// What the code says, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning),+ }
            }

            /// What the person who meets it can do.
            pub const fn advice(self) -> &'static str {
                match self { $(Code::$variant => $advice),+ }
            }
        }
    };
}

codes! {
    ParseError "E1000" "PARSE_ERROR" No 422 Some("PARSE_ERROR"),
        "The reply, or the request, is not the JSON it should be.",
        "Look at partial_data and the model's reply (-v); a stronger model or structured output helps.";
    InvalidInput "E1001" "INVALID_INPUT" Yes 400 Some("INVALID_INPUT"),
        "The input does not fit the module's input schema.",
        "Compare the input with `cog info MODULE`; every violation is listed in details.violations.";
    MissingRequiredField "E1002" "MISSING_REQUIRED_FIELD" Yes 400 None,
        "A field that the input schema requires is absent.",
        "Add the field that the path names.";
    TypeMismatch "E1003" "TYPE_MISMATCH" Yes 400 None,
        "A field of the input has another type than the schema says.",
        "Give the field the type that the message names.";
    UnsupportedValue "E1004" "UNSUPPORTED_VALUE" Maybe 400 Some("UNSUPPORTED_LANGUAGE"),
        "A value of the input is none of those supported.",
        "Choose one of the values that the message lists.";
    InputTooLarge "E1005" "INPUT_TOO_LARGE" Yes 413 None,
        "The input is larger than the module's max_input_tokens.",
        "Shorten the input, split it, or raise runtime_requirements.max_input_tokens.";
    InvalidReference "E1006" "INVALID_REFERENCE" Yes 400 None,
        "Something the input refers to is missing or cannot be read.",
        "Check the path or name in the message.";
    UnsupportedMediaType "E1010" "UNSUPPORTED_MEDIA_TYPE" Yes 415 None,
        "The media type is not supported by the module.",
        "Convert the medium, or list its modality in the manifest.";
    MediaTooLarge "E1011" "MEDIA_TOO_LARGE" Yes 413 None,
        "The medium exceeds a limit of size, length or pages.",
        "Shrink, cut or split it.";
    MediaFetchFailed "E1012" "MEDIA_FETCH_FAILED" Yes 422 None,
        "The medium could not be fetched from its URL, or the URL is refused.",
        "Check the address from another place; private addresses need the operator's allow list.";
    MediaDecodeFailed "E1013" "MEDIA_DECODE_FAILED" Yes 422 None,
        "The base64 or the medium itself cannot be decoded.",
        "Encode it again, with padding and without line breaks.";
    MediaTypeMismatch "E1014" "MEDIA_TYPE_MISMATCH" Yes 422 None,
        "The declared media_type is not what the bytes are.",
        "Correct media_type, or leave it out where that is allowed.";
    MediaDimensionExceeded "E1015" "MEDIA_DIMENSION_EXCEEDED" Yes 422 None,
        "A side of the image or frame is too long.",
        "Scale it down.";
    MediaDimensionTooSmall "E1016" "MEDIA_DIMENSION_TOO_SMALL" Yes 422 None,
        "A side of the image is shorter than the manifest asks.",
        "Use a larger image.";
    MediaPixelLimit "E1017" "MEDIA_PIXEL_LIMIT" Yes 422 None,
        "The image has too many pixels.",
        "Scale it down.";
    UploadExpired "E1018" "UPLOAD_EXPIRED" Yes 410 None,
        "The upload was not used in time.",
        "Upload it again.";
    UploadNotFound "E1019" "UPLOAD_NOT_FOUND" Yes 404 None,
        "No upload has this upload_id.",
        "Check the id, or upload it again.";
    ChecksumMismatch "E1020" "CHECKSUM_MISMATCH" Yes 422 None,
        "The bytes do not have the checksum that was given.",
        "Transfer the medium again, or correct the checksum.";
    LowConfidence "E2001" "LOW_CONFIDENCE" Yes 422 None,
        "The answer is less sure than the tier demands.",
        "The answer is in partial_data: have a person look, add context, or ask another model.";
    Timeout "E2002" "TIMEOUT" Maybe 504 None,
        "The answer did not arrive in time.",
        "Raise --timeout, or shorten what is asked.";
    TokenLimit "E2003" "TOKEN_LIMIT" Yes 422 None,
        "The model stopped at its output limit; the answer is cut.",
        "Raise --max-tokens, or ask for less.";
    NoActionPossible "E2004" "NO_ACTION_POSSIBLE" No 422 Some("NO_SIMPLIFICATION_POSSIBLE"),
        "There is nothing to do, or the model refuses; details.reason says.",
        "Change the request.";
    SemanticConflict "E2005" "SEMANTIC_CONFLICT" Maybe 422 Some("BEHAVIOR_CHANGE_REQUIRED"),
        "What is asked contradicts a constraint.",
        "Relax the constraint, or change the request.";
    AmbiguousInput "E2006" "AMBIGUOUS_INPUT" Yes 422 None,
        "The input can be read in several ways.",
        "Say more precisely what is meant.";
    InsufficientContext "E2007" "INSUFFICIENT_CONTEXT" Yes 422 None,
        "The input does not hold enough to answer.",
        "Add what the message asks for.";
    StreamInterrupted "E2010" "STREAM_INTERRUPTED" Maybe 502 None,
        "The stream ended before the answer did.",
        "Resume the session, or ask again.";
    StreamTimeout "E2011" "STREAM_TIMEOUT" Yes 504 None,
        "The stream took longer than allowed.",
        "Raise the timeout, or ask for less.";
    OutputSchemaViolation "E3001" "OUTPUT_SCHEMA_VIOLATION" No 502 Some("SCHEMA_VALIDATION_FAILED"),
        "The answer does not fit the module's schema.",
        "details.violations lists each place; the prompt or the schema may need to be clearer.";
    PartialResult "E3002" "PARTIAL_RESULT" Maybe 502 None,
        "A part of a composition failed; what is finished is in partial_data.",
        "Look at details for the part that failed.";
    MissingRationale "E3003" "MISSING_RATIONALE" No 502 None,
        "The answer has no rationale, or an empty one.",
        "Have the prompt ask for it; require it in the schema.";
    OverflowLimit "E3004" "OVERFLOW_LIMIT" No 502 None,
        "The answer holds more insights than the module allows.",
        "Raise overflow.max_items, or use a tier with overflow.";
    InvalidEnum "E3005" "INVALID_ENUM" No 502 None,
        "A value of the answer is none of its enum.",
        "Add the word to the enum, or make the enum extensible.";
    ConstraintViolation "E3006" "CONSTRAINT_VIOLATION" No 502 None,
        "The answer breaks a constraint of the tier or the manifest.",
        "A person should look at it; the answer is in partial_data.";
    InternalError "E4000" "INTERNAL_ERROR" No 500 Some("INTERNAL_ERROR"),
        "The runtime itself failed.",
        "This is a defect: please report it with the output of -v.";
    ProviderUnavailable "E4001" "PROVIDER_UNAVAILABLE" Yes 502 None,
        "The model's provider cannot be reached or refuses the call.",
        "`cog doctor` shows which providers answer; check the key variable that the message names.";
    RateLimited "E4002" "RATE_LIMITED" Yes 429 None,
        "The provider or this server asks to slow down.",
        "Wait as long as Retry-After says.";
    ContextOverflow "E4003" "CONTEXT_OVERFLOW" Maybe 413 None,
        "The request is longer than the model's context.",
        "Shorten the input, or use a model with a longer context.";
    CircularDependency "E4004" "CIRCULAR_DEPENDENCY" No 422 None,
        "Modules call each other in a circle.",
        "Break the circle that the message shows.";
    MaxDepthExceeded "E4005" "MAX_DEPTH_EXCEEDED" No 422 None,
        "Modules call each other too deep.",
        "Flatten the composition, or raise composition.max_depth.";
    ModuleNotFound "E4006" "MODULE_NOT_FOUND" Yes 404 Some("MODULE_NOT_FOUND"),
        "No module has this name.",
        "`cog list` shows the modules that are found, and where.";
    PermissionDenied "E4007" "PERMISSION_DENIED" No 403 None,
        "A policy, a root or a missing token forbids it.",
        "The message names the rule; the operator can change it.";
    ModuleInvalid "E4008" "MODULE_INVALID" No 422 None,
        "The module's manifest, prompt or schema does not load.",
        "`cog validate MODULE` shows the file, line and column.";
    StreamingNotSupported "E4010" "STREAMING_NOT_SUPPORTED" No 406 None,
        "A stream was required and cannot be had.",
        "Drop require_streaming, or use a module and provider that stream.";
    MultimodalNotSupported "E4011" "MULTIMODAL_NOT_SUPPORTED" No 415 None,
        "The runtime, provider or model cannot take this modality.",
        "Use a model that can; `cog doctor` shows what each takes.";
    RecoveryNotSupported "E4012" "RECOVERY_NOT_SUPPORTED" No 501 None,
        "Recovery of streams is switched off.",
        "Ask again from the start.";
    SessionExpired "E4013" "SESSION_EXPIRED" No 410 None,
        "The session is gone.",
        "Ask again from the start.";
    CheckpointInvalid "E4014" "CHECKPOINT_INVALID" Yes 409 None,
        "The checkpoint does not fit the session.",
        "Resume from an earlier checkpoint, or from the start.";
}

impl Code {
    /// The thousands of the code (SPEC 7.2).
    pub fn category(self) -> Category {
        match self.as_str().as_bytes().get(1) {
            Some(b'1') => Category::Input,
            Some(b'2') => Category::Processing,
            Some(b'3') => Category::Output,
            _ => Category::Runtime,
        }
    }

    /// The code for a text code of v2.2, or for the name of a code (ruling R31).
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

impl ToJson for Code {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.string(self.as_str());
    }
}

/// The code in an envelope: the specification's, or one that the manifest declares (E5xxx–E9xxx).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorCode {
    /// A code of the table.
    Standard(Code),
    /// A code that the module's manifest declares.
    Declared(String),
}

impl ErrorCode {
    /// The code as it stands in `error.code`.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Standard(code) => code.as_str(),
            Self::Declared(code) => code,
        }
    }

    /// The status of an HTTP response; 422 for a code of the module's own.
    pub fn http_status(&self) -> u16 {
        match self {
            Self::Standard(code) => code.http_status(),
            Self::Declared(_) => 422,
        }
    }

    /// Whether the text has the form of a code that a module may declare: E5000 to E9999.
    pub fn is_declarable(text: &str) -> bool {
        matches!(text.as_bytes(), [b'E', b'5'..=b'9', a, b, c] if [a, b, c].iter().all(|d| d.is_ascii_digit()))
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
    fn codes_stand_in_order_and_read_back() {
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
    fn older_text_codes_are_known() {
        assert_eq!(Code::from_text("BEHAVIOR_CHANGE_REQUIRED"), Some(Code::SemanticConflict));
        assert_eq!(Code::from_text("SOMETHING_ELSE"), None);
    }

    #[test]
    fn only_five_to_nine_thousand_can_be_declared() {
        assert!(ErrorCode::is_declarable("E5000") && ErrorCode::is_declarable("E9999"));
        assert!(!ErrorCode::is_declarable("E4999") && !ErrorCode::is_declarable("E50000"));
    }
}
