//! Media that are kept for a while: uploads before a run, and what a run has made (docs/spec/media.md).
//!
//! * `store`: what there is, whose it is, and until when; `entry`: one of them; `publisher`: what runs leave there;
//! * `receive`: from a request's body to the store, block by block; `span`: which part of an upload a body is;
//! * `serve`: from the store to a response; `range`: which part of it; `ticket`: what a client is told of an upload;
//! * `error`: why not.

mod entry;
mod error;
mod publisher;
mod range;
mod receive;
mod serve;
mod settings;
mod span;
mod store;
mod ticket;
mod time;

pub(crate) use self::{
    error::UploadError,
    receive::receive,
    serve::serve,
    span::Span,
    store::UploadLease,
    ticket::{Progress, UploadTicket, Wanted},
};
pub use self::{settings::UploadSettings, store::MediaStore};
