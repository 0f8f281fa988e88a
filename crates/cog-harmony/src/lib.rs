//! Harmony messages: the only format between a prompt and a provider (appendix A).
//!
//! A [`Conversation`] is a list of [`Message`]s, and a message has [`Part`]s. The pipeline creates them from a prompt;
//! providers translate them into their wire protocol.
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

mod message;
mod part;
mod read;
mod tokens;
mod tool;
mod tool_calls;
mod trim;

pub use message::{Conversation, Message, Reasoning, Role};
pub use part::{AudioPart, Detail, FilePart, ImagePart, Part, TextPart, VideoFrame};
pub use read::Problem;
pub use tokens::{Estimate, MessageTokens, PartTokens, TokenCounter};
pub use tool::{ToolCall, ToolChoice, ToolDefinition};
pub use tool_calls::ToolCalls;
pub use trim::{Removed, TrimError, Trimmed, is_summary, trim_messages};
