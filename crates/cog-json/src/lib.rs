//! Incremental JSON: a push parser, a value tree and a writer.
//!
//! - [`Parser`] takes bytes in any split and emits [`Event`]s: a container opened, text arrived, a value became
//!   complete. [`Parser::root`] borrows the draft at any time. The strict parser accepts exactly RFC 8259; the
//!   tolerant one also reads what language models send (ruling R24), and records each deviation.
//! - [`Value`] and [`Node`] are the tree: a tape of 16-byte entries over the parsed text. A `Value` owns the
//!   tape and is cheap to clone; a `Node` borrows it and is `Copy`.
//! - [`from_value`] and [`to_value`] convert between a value and any type that serde supports.
//! - [`Writer`] and [`ToJson`] write JSON text, compact or indented.
//!
//! ```
//! use cog_json::{EventKind, Limits, Parser, Value};
//!
//! let value = Value::parse(r#"{"data": {"tags": ["a", "b"]}}"#)?;
//! assert_eq!(value.pointer("/data/tags/1").and_then(|tag| tag.as_str()), Some("b"));
//!
//! let mut parser = Parser::strict(Limits::model_output());
//! let mut events = String::new();
//! for chunk in [r#"{"label": "ca"#, r#"t"}"#] {
//!     parser.push(chunk.as_bytes(), &mut |event| {
//!         if let EventKind::Text { delta, .. } = event.kind {
//!             events += &format!("{}+{delta} ", event.path);
//!         }
//!     })?;
//! }
//! assert_eq!(events, "label+ca label+t ");
//! # Ok::<(), cog_json::SyntaxError>(())
//! ```

mod error;
mod event;
mod node;
mod number;
mod object;
mod parser;
mod path;
mod scan;
mod tape;
mod typed;
mod value;
mod write;

pub use self::event::Limits;
pub use crate::error::{Position, SyntaxError, SyntaxErrorKind};
pub use crate::event::{Event, EventKind};
pub use crate::node::{Elements, Key, Kind, Members, Node, NodeId};
pub use crate::number::Number;
pub use crate::object::Object;
pub use crate::parser::{Deviation, End, Parser, Reader, Tolerance};
pub use crate::path::{Path, PathError, Segment};
pub use crate::typed::{DeserializeError, SerializeError, from_value, to_value};
pub use crate::value::Value;
pub use crate::write::{Array, ToJson, Writer};
