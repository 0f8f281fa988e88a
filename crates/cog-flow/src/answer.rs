/// Where the answer of a composed module comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The steps to `output`, without a model. Confidence is the minimum of the parts, unless the own prompt ran.
    Output,
    /// The module's own prompt, which runs last with the module's own input.
    OwnPrompt,
    /// The result so far.
    Result,
}
