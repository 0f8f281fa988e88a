//! Better prompts from golden tests: how the cases are split, which prompts are refused, and which one is proposed.
//!
//! The search itself calls models, and is in the command `cog optimize` (docs/optimize.md).

mod copied;
mod front;
mod prompt;
mod split;

#[cfg(test)]
mod tests;

pub use self::{
    front::{Comparison, Front},
    prompt::{PromptRules, Refusal},
    split::{MIN_CASES, Part, Split, TooFew},
};
