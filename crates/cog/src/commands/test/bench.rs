//! What all test cases share.

use cog_host::settings::Settings;
use cog_run::Runtime;

use crate::{args::TestArgs, output::Console};

/// What all test cases share.
pub(super) struct Bench<'a> {
    pub(super) args: &'a TestArgs,
    pub(super) settings: &'a Settings,
    /// Loads modules. Replays and recordings run in a runtime of their own.
    pub(super) runtime: Runtime,
    /// Judges criteria, if `--judge` names a provider.
    pub(super) judge: Option<Runtime>,
    pub(super) console: &'a Console,
}
