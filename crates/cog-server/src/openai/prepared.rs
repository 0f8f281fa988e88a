use std::sync::Arc;

use cog_module::Module;
use cog_run::RunInput;

use super::{reply::Reply, response_format::ResponseFormat};
use crate::{
    guard::{BodyLease, Client},
    request::Options,
};

/// A request that is ready to run.
pub(super) struct Run {
    pub(super) module: Arc<Module>,
    pub(super) input: RunInput,
    pub(super) options: Box<Options>,
    /// What the client expects of the answer.
    pub(super) format: ResponseFormat,
    pub(super) reply: Box<dyn Reply>,
    /// The size of the request.
    pub(super) bytes: usize,
    pub(super) client: Client,
    /// The memory of the request, in use until the run has ended.
    pub(super) lease: BodyLease,
}
