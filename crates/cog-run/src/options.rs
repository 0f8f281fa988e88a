use std::time::Duration;

use cog_spec::{Generation, OnViolation};

/// What one run sets differently from its module and its runtime.
///
/// The default leaves everything to them.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// The model to ask; none for the provider's own.
    pub model: Option<String>,
    /// Any repair is a violation (supplement R26).
    pub strict: bool,
    /// The longest the whole run may take (supplement R40); none for the runtime's own limit.
    pub timeout: Option<Duration>,
    /// What replaces the manifest's `generation`, field by field.
    pub generation: Generation,
    /// What a violation does while the answer arrives (supplement R49).
    pub on_violation: Option<OnViolation>,
    /// How often the model is asked at most.
    pub max_attempts: Option<u32>,
    /// Who asks (supplement section 3, `invocation`).
    pub caller: Caller,
    /// Stands in `meta.trace_id`.
    pub trace_id: Option<String>,
}

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
