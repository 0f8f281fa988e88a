use std::sync::Arc;

use cog_module::Module;

use crate::{
    guard::{BodyLease, Client},
    media::UploadLease,
    request::ExecuteBody,
};

/// A request to run a module.
pub(crate) struct ExecuteRequest {
    pub(crate) module: Arc<Module>,
    /// The name in the request's path.
    pub(crate) name: String,
    pub(crate) body: ExecuteBody,
    pub(crate) client: Client,
    /// The files of a form, stored until the run has ended.
    pub(crate) files: Vec<UploadLease>,
    /// The memory of the body, in use until the run has ended.
    pub(crate) lease: BodyLease,
}
