//! Harmony messages: the only form between a prompt and a provider (appendix A).
//!
//! A [`Conversation`] is a list of [`Message`]s, a message has [`Part`]s. Prompts are filled into
//! them, providers translate them into their wire form; nothing else knows a wire form.
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
mod tool;

pub use message::{Conversation, Message, Role};
pub use part::{AudioPart, Detail, FilePart, ImagePart, Part, TextPart, VideoFrame};
pub use read::Problem;
pub use tool::ToolCall;
