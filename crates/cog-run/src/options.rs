//! What one run sets differently.

mod json;
mod setters;

use std::time::Duration;

use cog_media::{Access, Delivery};
use cog_spec::{ChunkType, Generation, OnViolation, Warning};

use crate::Cancellation;

/// The options of one run. Each that is not set is taken from the module or the runtime.
///
/// ```
/// use std::time::Duration;
///
/// use cog_run::RunOptions;
///
/// let options = RunOptions::new().model("gpt-5.4-mini").strict(true).timeout(Duration::from_secs(30));
/// assert_eq!(options.model.as_deref(), Some("gpt-5.4-mini"));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Who is asked, by name, `a,b` one after the other; none for the runtime's own order.
    pub provider: Option<String>,
    /// The model to ask of the first provider; none for its own. The others are asked for their own.
    pub model: Option<String>,
    /// Any repair is a violation (ruling R26).
    pub strict: bool,
    /// The longest the whole run may take (ruling R40); none for the runtime's own limit.
    pub timeout: Option<Duration>,
    /// What replaces the manifest's `generation`, field by field.
    pub generation: Generation,
    /// What a violation does while the answer arrives (ruling R49).
    pub on_violation: Option<OnViolation>,
    /// How often the model is asked at most.
    pub max_attempts: Option<u32>,
    /// How content travels (SPEC 2.2); none for the manifest's way.
    pub chunk_type: Option<ChunkType>,
    /// How many bytes are held back before they leave (ruling R47); none for the manifest's number.
    pub buffer_size: Option<u64>,
    /// What this run may open of what its input names; none for what the runtime's runs may.
    pub media: Option<Access>,
    /// Whose uploads it may open, where they have owners.
    pub owner: Option<String>,
    /// Where the media go that the module makes (SPEC 4.3); owned by the owner of the uploads.
    pub delivery: Delivery,
    /// Who asks (docs/spec/modules.md, `invocation`).
    pub caller: Caller,
    /// Stands in `meta.trace_id`.
    pub trace_id: Option<String>,
    /// Ends the run from outside.
    pub stop: Cancellation,
    /// The session the run belongs to; none for one of its own.
    pub session_id: Option<String>,
    /// The run is asked again in a stream that is resumed (docs/spec/streaming.md): the last `seq` that was told. The
    /// stream says so, takes back what was told by a snapshot of no data, and counts on.
    pub resume_from: Option<u64>,
    /// What the answer warns of beside what the run itself finds.
    pub warnings: Vec<Warning>,
    /// What an end that a resumed stream can mend says of how to go on.
    pub recovery: Option<RecoveryOffer>,
}

pub use cog_answer::RecoveryOffer;

/// Who asks for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Caller {
    /// A person, or a program on a person's behalf: `invocation.user_invocable`.
    #[default]
    User,
    /// A model: `invocation.agent_invocable`.
    Agent,
}

/// The generation of a run: the manifest's, with what the caller sets in its place.
pub(crate) fn merge(manifest: &Generation, run: &Generation) -> Generation {
    Generation {
        temperature: run.temperature.or(manifest.temperature),
        max_tokens: run.max_tokens.or(manifest.max_tokens),
        seed: run.seed.or(manifest.seed),
        stop: if run.stop.is_empty() { manifest.stop.clone() } else { run.stop.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_overrides_the_manifest_field_by_field() {
        let manifest = Generation { temperature: Some(0.2), max_tokens: Some(100), ..Generation::default() };
        let run = Generation { temperature: Some(1.0), ..Generation::default() };
        let merged = merge(&manifest, &run);
        assert_eq!((merged.temperature, merged.max_tokens), (Some(1.0), Some(100)));
    }
}
