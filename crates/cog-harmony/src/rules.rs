//! The rules of messages: one table, which checks, reports and pages share.

use std::fmt;

/// A rule that messages must follow.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The name, `result-missing`.
    pub name: &'static str,
    /// Whether a violation makes a history invalid.
    pub severity: Severity,
    /// What the rule requires.
    pub requires: &'static str,
    /// What to do about a violation.
    pub suggestion: &'static str,
}

/// How serious a violation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The history is invalid.
    Error,
    /// The history is valid, but probably not what its author wants.
    Warning,
}

impl Rule {
    const fn error(name: &'static str, requires: &'static str, suggestion: &'static str) -> Self {
        Self { name, severity: Severity::Error, requires, suggestion }
    }

    const fn warning(name: &'static str, requires: &'static str, suggestion: &'static str) -> Self {
        Self { name, severity: Severity::Warning, requires, suggestion }
    }

    /// Returns whether a violation makes a history invalid.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Defines each rule as a static, and the table of all of them.
macro_rules! rules {
    ($($id:ident = $severity:ident($name:literal, $requires:literal, $suggestion:literal);)*) => {
        $(#[doc = $requires]
        pub static $id: Rule = Rule::$severity($name, $requires, $suggestion);)*

        /// Every rule, in the order of the documentation.
        pub static RULES: &[&Rule] = &[$(&$id),*];
    };
}

rules! {
    JSON = error("json",
        "The document is JSON: an array of messages, an object with `messages`, or one message per line.",
        "Fix the JSON at this position.");
    COMMENT = error("comment",
        "The document has no comments, because JSON has none.",
        "Remove the comments; `cog messages fix` does it.");
    REQUIRED = error("required",
        "A message has its `role`, a part its `type`, and each of them the fields of its kind.",
        "Add the field.");
    TYPE = error("type",
        "Each field has the type of the format.",
        "Write the value in the expected type.");
    ENUM = error("enum",
        "Roles, part types and levels of detail are defined by the format.",
        "Use one of the allowed values.");
    ROLE = warning("role",
        "The role `developer` of OpenAI is the role `system`.",
        "Write `system`; `cog messages convert --to openai-chat` keeps `developer`.");
    MESSAGE_ID = error("message-id",
        "The `id` of a message is unique in its history.",
        "Give each message an identifier of its own.");
    NAME = error("name",
        "If several speakers of a role have names, each message of that role has a `name`.",
        "Add the `name` of the speaker.");
    NAME_UNCLEAR = warning("name-unclear",
        "If one agent has a `name`, the messages of other agents have one too.",
        "Add the `name` of the speaker, or remove the only one.");
    ARGUMENTS_TYPE = error("arguments-type",
        "`arguments` is a string that contains JSON, not an object.",
        "Write the object as a string; `cog messages fix` does it.");
    ARGUMENTS_JSON = error("arguments-json",
        "`arguments` contains a JSON object.",
        "Store the arguments as the model sent them; a truncated call must be repeated.");
    ARGUMENTS_KEY = error("arguments-key",
        "A key occurs once in each object of `arguments`.",
        "Remove the duplicate key; readers differ in which of them they use.");
    CALL_ID = error("call-id",
        "The `id` of a tool call is unique in its history and not empty.",
        "Give each call an identifier of its own, and use it in its result.");
    CALL_ROLE = error("call-role",
        "Only an assistant has `tool_calls`, and only a tool message has a `tool_call_id`.",
        "Move the field to the message it belongs to.");
    RESULT_MISSING = error("result-missing",
        "Each tool call has a result.",
        "Add a tool message with the result, or with an error as JSON: `{\"status\":\"error\",…}`.");
    RESULT_REPEATED = error("result-repeated",
        "A tool call has only one result.",
        "Remove the repeated result; `cog messages fix` moves it to `orphans`.");
    RESULT_UNKNOWN = error("result-unknown",
        "The `tool_call_id` of a result is the `id` of a call in the history.",
        "Correct the identifier; `cog messages fix` moves the result to `orphans`.");
    RESULT_PLACE = error("result-place",
        "The results of calls follow directly after the message with the calls.",
        "Move the result; `cog messages fix` does it.");
    RESULT_ORDER = warning("result-order",
        "Results have the order of their calls.",
        "Reorder the results; `cog messages fix` does it.");
    RESULT_NAME = error("result-name",
        "The `name` of a result is the name of the function that was called.",
        "Correct the name, or remove it.");
    RESULT_ERROR = error("result-error",
        "The result of a tool that failed is JSON with `status`, `error_type` and `message`.",
        "Write `{\"status\":\"error\",\"error_type\":\"…\",\"message\":\"…\"}`.");
    BINARY_TEXT = error("binary-text",
        "Text contains no binary data: no control characters, base64 of files, or `data:` URLs of audio and video.",
        "Send media as parts: `image_url`, `input_audio` or `file`.");
    CITATION = error("citation",
        "Each anchor `<cite id=\"…\"/>` of an assistant refers to an entry of a `citation_map` in the history.",
        "Add the entry to `metadata.citation_map`, or remove the anchor.");
    IMAGE_INLINE = warning("image-inline",
        "Images are sent by URL; base64 is for debugging and local use.",
        "Use a short-lived signed URL in production.");
    IMAGE_TYPE = error("image-type",
        "An `image_url` is an image: video is sent as frames, audio as `input_audio`.",
        "Extract frames with `cog media frames FILE -o DIR --audio`.");
    AUDIO_DATA = error("audio-data",
        "The `data` of `input_audio` is base64.",
        "Encode the bytes as base64, without a `data:` prefix.");
    AUDIO_RATE = warning("audio-rate",
        "Raw PCM has a `sample_rate`.",
        "Add `sample_rate`, such as 24000.");
    PART_MODEL = error("part-model",
        "The model that is named accepts each part.",
        "Use another model, or replace the part by text.");
    MORE = error("more",
        "A report lists at most 1,000 problems.",
        "Fix the listed problems first.");
}
