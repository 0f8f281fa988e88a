//! Emits the data of an answer while it arrives.

mod buffer;
mod checkpoint;
mod deltas;
mod drafts;

pub(crate) use self::{checkpoint::CheckpointHasher, deltas::Deltas, drafts::Drafts};
