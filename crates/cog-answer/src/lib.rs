//! From a model's reply to chunks and one checked envelope.
//!
//! [`Assembler`] takes a model's events and gives the chunks of a stream: the text goes straight into the tolerant
//! parser, whose draft is the one tree that is told, repaired, checked and answered with. [`fold`] makes the
//! chunks one [`Envelope`](cog_spec::Envelope), which is the sync answer: there is no other way to one.
//!
//! ```text
//! ModelEvent* → Reply (draft) → Reading → repaired → checked → admitted → Chunk* → Envelope
//! ```
//!
//! * what is repaired, and the account of it: `repair` (supplement R24–R26);
//! * what a reply must be to stand: `judge` (supplement R2–R4, R20–R32);
//! * what is told while it arrives: `tell`, `watch` (supplement R41–R49).
//!
//! [`verify`] checks what the specification describes, whoever produced it.
//!
//! No clock, no file, no socket: time is an argument.

mod assembler;
mod error_code;
mod fault;
mod fold;
mod judge;
mod listener;
mod meta;
mod outbox;
mod partial;
mod picture;
mod place;
#[cfg(test)]
mod properties;
mod repair;
mod reply;
mod rules;
mod shape;
mod tell;
#[cfg(test)]
mod testing;
pub mod verify;
mod watch;

pub use crate::assembler::{Assembler, Finish, Step};
pub use crate::fold::{Folder, fold};
pub use crate::rules::AnswerRules;
