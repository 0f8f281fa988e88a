//! Handoff packets: everything that an agent needs to take over a task (appendix A.3).
//!
//! A [`Handoff`] is a document whose form is right. [`Handoff::seal`] creates one from a [`Draft`] with hashes, so that
//! a chain of packets can be verified from its end with [`verify_chain`]: the objective never changes, and constraints
//! are only added. [`losses`] lists what a handoff would lose of a history. [`Handoff::messages`] renders a packet for the
//! agent that receives it.
//!
//! ```
//! use cog_harmony::handoff::{Draft, Handoff};
//!
//! let draft = Draft {
//!     source_agent: "planner".to_owned(),
//!     target_agent: "coder".to_owned(),
//!     timestamp: "2024-03-20T10:00:00Z".to_owned(),
//!     primary_objective: "Build a snake game".to_owned(),
//!     ..Draft::default()
//! };
//! let first = Handoff::seal(&draft, None).unwrap();
//! let changed = Draft { primary_objective: "Build a chess game".to_owned(), ..draft };
//! assert_eq!(Handoff::seal(&changed, Some(&first)).unwrap_err()[0].rule, "primary_objective");
//! ```

mod artifact;
mod chain;
mod draft;
mod form;
mod loss;
mod packet;
mod render;
mod seal;

pub use self::{
    artifact::{Artifact, Reference},
    chain::{ChainReport, verify_chain},
    draft::Draft,
    form::PROTOCOL,
    loss::{Loss, LossKind, losses},
    packet::Handoff,
};

#[cfg(test)]
mod tests;
