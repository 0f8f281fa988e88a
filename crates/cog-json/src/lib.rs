//! JSON that is still arriving: a push parser, the value tree, and a writer.
//!
//! Four things, one tree:
//!
//! - [`Parser`] takes bytes in any split and tells [`Event`]s: where in the document something happened, the
//!   text that arrived, the value that became complete. The draft is readable at any time by borrow
//!   ([`Parser::root`]). The strict parser accepts exactly RFC 8259; the tolerant one reads what language
//!   models send (ruling R24) and records each thing it let pass.
//! - [`Value`] and [`Node`] are the tree: a tape of 16-byte entries over the text it was read from. A `Value`
//!   owns it and is cheap to clone; a `Node` looks at it and is `Copy`.
//! - [`from_value`] and [`to_value`] convert between a value and a type of one's own, through serde.
//! - [`Writer`] and [`ToJson`] write JSON text, compact or indented.
//!
//! ```
//! use cog_json::{EventKind, Limits, Parser, Value};
//!
//! let value = Value::parse(r#"{"data": {"tags": ["a", "b"]}}"#)?;
//! assert_eq!(value.pointer("/data/tags/1").and_then(|tag| tag.as_str()), Some("b"));
//!
//! let mut parser = Parser::strict(Limits::model_output());
//! let mut told = String::new();
//! for piece in [r#"{"label": "ca"#, r#"t"}"#] {
//!     parser.push(piece.as_bytes(), &mut |event| {
//!         if let EventKind::Text { delta, .. } = event.kind {
//!             told += &format!("{}+{delta} ", event.path);
//!         }
//!     })?;
//! }
//! assert_eq!(told, "label+ca label+t ");
//! # Ok::<(), cog_json::SyntaxError>(())
//! ```

mod error;
mod event;
mod limits;
mod node;
mod number;
mod parser;
mod path;
mod scan;
mod tape;
mod typed;
mod value;
mod write;

pub use crate::error::{Position, SyntaxError, SyntaxErrorKind};
pub use crate::event::{Event, EventKind};
pub use crate::limits::Limits;
pub use crate::node::{Elements, Key, Kind, Members, Node, NodeId};
pub use crate::number::Number;
pub use crate::parser::{End, Parser, Reader, Tolerance, Tolerated};
pub use crate::path::{Path, PathError, Segment};
pub use crate::typed::{DeserializeError, SerializeError, from_value, to_value};
pub use crate::value::Value;
pub use crate::write::{ToJson, Writer};
