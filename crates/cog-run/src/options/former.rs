use super::RunOptions;

impl RunOptions {
    /// Returns these options, and where they set none, those of the former run that this one continues.
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
            continuation: None,
            ..self.clone()
        }
    }
}
