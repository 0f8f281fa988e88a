//! The contents of a request: body, options, recovery.

mod body;
mod continuation;
mod form;
mod options;
mod recovery;

pub(crate) use self::{
    body::{ExecuteBody, RunBody, check_encoding, object, read},
    form::{Form, is_form, read_form},
    options::{MediaOutput, Mode, Options},
    recovery::recovery_from_headers,
};
