//! From a model's reply to chunks and one checked envelope.
//!
//! [`Assembler`] takes a model's events and emits the chunks of a stream. The text goes straight into the tolerant
//! parser, whose draft is the one tree that is emitted, repaired and checked. [`fold`] combines the chunks into one
//! [`Envelope`](cog_spec::Envelope), the sync answer. There is no other way to an envelope.
//!
//! `ModelEvent*` → `Reply` (draft) → `ParsedReply` → repaired → checked → admitted → `Chunk*` → `Envelope`
//! ```
//! # use std::{sync::Arc, time::Duration};
//! # use cog_answer::{AnswerRules, Assembler, Finish, fold};
//! # use cog_spec::{FinishReason, Format, Manifest, ModelEvent, Tier};
//! let manifest = Manifest::with_defaults("greeter", Format::V22, Some(Tier::Decision));
//! let schema = serde_json::json!({ "data": { "properties": { "rationale": { "type": "string" } } } });
//! let contract = cog_schema::Contract::compile(&schema, &cog_schema::Rules::from(&manifest)).unwrap();
//! let rules = AnswerRules::new("sess_1", Arc::new(manifest), Arc::new(contract));
//! let (mut assembler, first) = Assembler::new(rules);
//! let mut chunks = vec![first];
//! let reply = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low"}, "data": {"rationale": "Hi."}}"#;
//! for event in [ModelEvent::Text(reply.to_owned()), ModelEvent::Finished(FinishReason::Stop)] {
//!     assembler.event(event, Duration::from_millis(5), &mut chunks);
//! }
//! assert!(matches!(assembler.finish(Duration::from_millis(9), &mut chunks), Finish::Ended));
//! assert_eq!(fold(chunks).meta.explain, "Hi.");
//! ```
//!
//! `repair` repairs a reply (rulings R24–R26), `finalize` checks it (R2–R4, R20–R32), `emit` and `listener` emit chunks
//! (R41–R49). [`PendingReply`] inserts the media that were generated with the text;
//! [`JudgedReply`] adds what the checks of the program find. [`verify`] checks envelopes and
//! streams from any source. No clock, no I/O.

mod assembler;
mod correction;
mod emit;
mod error;
pub mod evidence;
mod finalize;
mod fold;
mod listener;
mod patch;
#[cfg(test)]
mod properties;
mod repair;
mod reply;
mod rules;
mod sequencer;
mod shape;
#[cfg(test)]
mod testing;
pub mod verify;

pub use crate::assembler::{Assembler, Finish, JudgedReply, PartsSummary, PendingReply, Step};
pub use crate::error::refused_after;
pub use crate::finalize::{DeferredJudgement, aggregated_risk};
pub use crate::fold::{DataAccumulator, EnvelopeBuilder, fold};
pub use crate::rules::{
    AnswerRules, CalibrationInForce, ConfidenceRules, HandoffRules, HandoffTarget, RecoveryOffer,
    Uncalibrated,
};
pub use crate::{correction::Correction, patch::PlacedValue};
