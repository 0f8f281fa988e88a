//! The context of a run: what a module reads beside its input, and what it emits for later runs (docs/spec/context.md).

mod directory;
mod entry;
mod given;
mod key;
mod limits;
mod memory;
mod scope;
mod shape;
mod store;

pub(crate) use self::given::{ContextSink, Given};
pub use self::{limits::ContextLimits, scope::ContextScope, store::ContextStore};
