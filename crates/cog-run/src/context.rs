//! The state that all runs of a runtime share.

use std::{sync::Arc, time::Duration};

use cog_media::Access;
use cog_spec::Generation;

use crate::{Providers, compiled::Compilations, modules::Modules, observe::Observer};

/// The state that all runs of a runtime share.
pub(crate) struct Shared {
    pub(crate) providers: Providers,
    pub(crate) modules: Modules,
    pub(crate) compilations: Compilations,
    /// The maximum duration of runs without their own timeout.
    pub(crate) timeout: Duration,
    /// The media that runs may open from their input.
    pub(crate) media: Access,
    /// The parameters of the generation for runs without their own.
    pub(crate) generation: Generation,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}
