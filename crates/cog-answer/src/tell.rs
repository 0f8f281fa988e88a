//! Telling the data of an answer while it arrives.

mod buffer;
mod deltas;
mod drafts;
mod tally;

pub(crate) use self::{deltas::Deltas, drafts::Drafts};
