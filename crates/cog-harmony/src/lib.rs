//! Harmony messages: the only format between a prompt and a provider (appendix A).
//!
//! A [`Conversation`] is a list of [`Message`]s, and a message has [`Part`]s. The pipeline creates them from a prompt;
//! providers translate them into their wire protocol. [`check`] applies the rules of the format to a history, [`fix`] fixes
//! what can be fixed, and [`convert`] translates to and from the formats of vendors. This is not the token format of the same
//! name for gpt-oss.
//!
//! ```
//! use cog_harmony::{Conversation, Message};
//! use cog_json::ToJson;
//!
//! let conversation = Conversation::new([Message::system("You count words."), Message::user("a b c")]);
//! assert_eq!(
//!     conversation.to_json(),
//!     r#"[{"role":"system","content":[{"type":"text","text":"You count words."}]},{"role":"user","content":[{"type":"text","text":"a b c"}]}]"#,
//! );
//! ```

mod assign;
mod canonical;
mod check;
pub mod citation;
mod convert;
mod document;
mod fix;
pub mod handoff;
mod media_text;
mod message;
mod metadata;
mod other;
mod part;
mod problem;
mod read;
pub mod rules;
pub mod timeline;
mod tokens;
mod trim;
pub mod wire;

pub use self::problem::Finding;
pub use canonical::hash as canonical_hash;
pub use check::{PartSupport, check};
pub use convert::{Converted, Format, Loss, convert, write_as};
pub use document::Document;
pub use fix::{Change, FixReport, fix};
pub use message::{Conversation, Message, Reasoning, Role, ToolCall, ToolChoice, ToolDefinition};
pub use metadata::{Latency, Metadata, SafetyCheck, TokenUsage};
pub use part::{
    AudioPart, Detail, FilePart, FileReferencePart, FileSource, ImagePart, NativePart, Part, RefusalPart,
    TextPart, VideoFrame,
};
pub use problem::Problem;
pub use rules::{Rule, Severity};
pub use tokens::{Estimate, MessageTokens, PartTokens, TokenCounter};
pub use trim::{TrimError, TrimReport, TrimmedItem, is_summary, trim_messages};
