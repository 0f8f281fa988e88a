//! What a request asks for: body, options, recovery.

mod body;
mod options;
mod recovery;

pub(crate) use self::{
    body::{ExecuteBody, RunBody, object, only, read},
    options::{Mode, Options},
    recovery::of_headers,
};
