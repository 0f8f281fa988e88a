//! Options that are stored, so that a run that continues or starts again has them: those that are not part of its request.

use cog_json::{Node, Writer};
use cog_spec::{Generation, Warning};
use serde::Deserialize as _;

use super::{Approval, Decision};
use crate::{Caller, RunOptions};

/// Writes the options that are set, and the warnings of the run, as an object.
pub(crate) fn write(w: &mut Writer<'_>, options: &RunOptions, warnings: &[Warning]) {
    let Generation { temperature, max_tokens, seed, stop, .. } = &options.generation;
    w.object(|w| {
        w.optional("trace_id", &options.trace_id);
        w.optional("by_agent", &(options.caller == Caller::Agent).then_some(true));
        w.optional("buffer_size", &options.buffer_size);
        w.optional("continues", &options.approval.as_ref().map(|halted| halted.id.clone()));
        let is_confirmed = |halted: &Approval| halted.decision == Decision::yes();
        w.optional("confirms", &options.approval.as_ref().map(is_confirmed));
        w.optional("temperature", temperature);
        w.optional("max_tokens", max_tokens);
        w.optional("seed", seed);
        w.field("stop", stop);
        w.field("warnings", warnings);
    });
}

/// Reads the stored options, and returns the warnings of the run; none when the object is invalid.
pub(crate) fn read(node: Node<'_>, options: &mut RunOptions) -> Option<Vec<Warning>> {
    let text = |node: Node<'_>| node.as_str().map(str::to_owned);
    options.trace_id = node.get("trace_id").and_then(text);
    if node.get("by_agent").is_some() {
        options.caller = Caller::Agent;
    }
    let is_confirmed = node.get("confirms").and_then(|it| it.as_bool()).unwrap_or_default();
    let decision = if is_confirmed { Decision::yes() } else { Decision::Deny };
    options.approval = node.get("continues").and_then(text).map(|id| Approval { id, decision });
    options.buffer_size = node.get("buffer_size").and_then(|size| size.as_u64());
    options.generation = Generation {
        temperature: node.get("temperature").and_then(|it| it.as_f64()),
        max_tokens: node.get("max_tokens").and_then(|it| it.as_u64()),
        seed: node.get("seed").and_then(|it| it.as_i64()),
        stop: node.get("stop")?.elements().map(text).collect::<Option<_>>()?,
        // The others are options of the request.
        ..std::mem::take(&mut options.generation)
    };
    node.get("warnings")?.elements().map(|it| Warning::deserialize(it).ok()).collect()
}

impl RunOptions {
    /// Returns these options. What they do not set comes from the former run that this one continues.
    #[must_use]
    pub(crate) fn or_former(&self, former: &Self) -> Self {
        Self {
            provider: self.provider.clone().or_else(|| former.provider.clone()),
            model: self.model.clone().or_else(|| former.model.clone()),
            strict: self.strict || former.strict,
            timeout: self.timeout.or(former.timeout),
            generation: self.generation.or(&former.generation),
            on_violation: self.on_violation.or(former.on_violation),
            max_attempts: self.max_attempts.or(former.max_attempts),
            chunk_type: self.chunk_type.or(former.chunk_type),
            buffer_size: self.buffer_size.or(former.buffer_size),
            risk: self.risk.or(former.risk),
            max_tool_rounds: self.max_tool_rounds.or(former.max_tool_rounds),
            max_tool_calls: self.max_tool_calls.or(former.max_tool_calls),
            trace_id: self.trace_id.clone().or_else(|| former.trace_id.clone()),
            handoff_to: self.handoff_to.clone().or_else(|| former.handoff_to.clone()),
            caller: former.caller,
            approval: None,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_json::Value;
    use cog_spec::WarningCode;

    use super::*;

    fn round_trip(options: &RunOptions, warnings: &[Warning]) -> (RunOptions, Vec<Warning>) {
        let mut text = String::new();
        write(&mut Writer::compact(&mut text), options, warnings);
        let mut read_back = RunOptions::default();
        let warnings = read(Value::parse(&text).unwrap().node(), &mut read_back).unwrap();
        (read_back, warnings)
    }

    #[test]
    fn options_read_back_as_written() {
        let generation = Generation {
            temperature: Some(0.25),
            max_tokens: Some(100),
            seed: Some(-7),
            stop: vec!["END".to_owned()],
            ..Generation::default()
        };
        let options = RunOptions {
            trace_id: Some("0af7651916cd43dd8448eb211c80319c".to_owned()),
            caller: Caller::Agent,
            buffer_size: Some(64),
            approval: Some(Approval { id: "halt_1".to_owned(), decision: Decision::yes() }),
            generation,
            ..RunOptions::default()
        };
        let warnings = [Warning::new(WarningCode::SessionNew, "a new run")];
        let (read_back, warnings_back) = round_trip(&options, &warnings);
        assert_eq!(read_back.trace_id, options.trace_id);
        assert_eq!((read_back.caller, read_back.buffer_size), (options.caller, options.buffer_size));
        assert_eq!(read_back.approval, options.approval);
        assert_eq!(read_back.generation, options.generation);
        assert_eq!(warnings_back, warnings);
    }

    #[test]
    fn unset_options_stay_unset() {
        let (read_back, warnings) = round_trip(&RunOptions::default(), &[]);
        assert_eq!((read_back.trace_id, read_back.caller), (None, Caller::User));
        assert_eq!((read_back.generation, warnings), (Generation::default(), Vec::new()));
    }
}
