//! The interface of composed modules: modules whose parts run before their own answer (docs/spec/composition.md).
//!
//! The runtime runs a composed module like any other. A [`Composer`] finds and checks its parts, and the
//! [`ComposedModule`] that it returns runs them. The crate `cog-flow` implements both.
//!
//! ```text
//! find → ComposedModule → PendingParts → Parts → the run of each part (pipeline/part.rs) → PartsAnswer
//! ```

mod answer;
mod composer;
mod find;
mod finished;
mod halted;
mod parts;
mod pending;
mod provider;

pub use self::{
    answer::{PartsAnswer, PartsEnd, PartsError, PartsFuture, PartsSummary},
    composer::Composer,
    find::is_composed,
    finished::FinishedParts,
    halted::{HaltedPart, PartsState},
    parts::{ComposedModule, PartOptions, Parts},
};
pub(crate) use self::{
    find::composed_module,
    parts::{Composed, PartRun, StartPart},
    pending::PendingParts,
    provider::{COMPOSITION, PartsReply},
};
pub use crate::modules::Modules;
pub use cog_spec::{PartAnswer, PartError, PartProgress, PartReport, PartStatus};
