//! Conformance cases for runtimes of Cognitive Modules.
//!
//! A case is data: a module, the replies of a scripted model, commands or requests, and what must come out
//! (docs/conformance-cases.md). One runner executes all of them, with the mock of `cog-testkit` as the model:
//!
//! * [`Suite`] has the cases of a checkout. Each runs in a directory of its own, with the programs `cog` and `cogn`.
//! * [`Levels`] has the cases of the four conformance levels, which are part of this crate. They run over HTTP, against `cog serve`
//!   or any other runtime, and give a [`Report`].
//!
//! ```no_run
//! use std::ops::ControlFlow;
//!
//! use cog_conformance::{Levels, Target};
//!
//! let levels = Levels::new()?;
//! let target = Target::Url { url: "http://127.0.0.1:8000".to_owned(), mock_port: 9797 };
//! let report = levels.check(&target, Some(2), |_, _| ControlFlow::Continue(()))?;
//! assert!(report.is_some_and(|report| report.is_reached()));
//! # Ok::<(), cog_conformance::CheckError>(())
//! ```

mod base;
mod case;
mod directory;
mod forms;
mod http;
mod levels;
mod matching;
mod model;
mod outcome;
mod run;
mod scene;
mod server;
mod site;
mod socket;
mod stream;
mod suite;

pub use levels::{CaseReport, CheckError, LevelReport, Levels, Report, Target};
pub use server::Programs;
pub use suite::Suite;
