//! What the runs of a runtime have in common.

use std::{sync::Arc, time::Duration};

use cog_media::Access;

use crate::{Providers, compiled::Compilations, modules::Modules, observe::Observer};

/// What all runs of a runtime share.
pub(crate) struct Shared {
    pub(crate) providers: Providers,
    pub(crate) modules: Modules,
    pub(crate) compilations: Compilations,
    /// How long a run may take that sets no timeout of its own.
    pub(crate) timeout: Duration,
    /// What runs may open of what inputs name.
    pub(crate) media: Access,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}
