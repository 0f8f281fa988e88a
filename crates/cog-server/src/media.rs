//! Stored media files: uploads before a run, and files that a run generated (docs/spec/media.md).
//!
//! * `store`: all files with owner and expiry; `entry`: one of them; `publisher`: stores generated files;
//! * `receive`: writes a request body to the store, in blocks; `span`: the part of an upload that a body is;
//! * `serve`: from the store to a response; `range`: the requested part; `ticket`: the description of an upload;
//! * `error`: why an upload fails.

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
pub(crate) mod time;

pub(crate) use self::{
    error::UploadError,
    receive::receive,
    serve::serve,
    span::Span,
    store::UploadLease,
    ticket::{Progress, UploadTicket, Wanted},
};
pub use self::{settings::UploadSettings, store::MediaStore};
