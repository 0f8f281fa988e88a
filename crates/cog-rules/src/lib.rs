#![doc = include_str!("../README.md")]

mod checks;
mod condition;
mod cursor;
mod grounding;
mod path;
mod search_text;
mod static_type;
mod typing;

pub use checks::{Check, CheckFailure, CheckFinding, CheckedAnswer, Checks, Verdict};
pub use condition::{
    Cases, Comparison, Computed, ComputedKind, Condition, Content, Decimal, Document, EvaluationError,
    Expression, FailedValue, Failure, KnownValues, List, Literal, Operand, Test, TestKind, Values,
};
pub use cursor::{Cursor, TextError};
pub use path::{ListPath, PathRoot, PathStep, ValuePath};
pub use search_text::SearchText;
pub use static_type::{AbsentMember, MAX_ALTERNATIVES, StaticType};
pub use typing::{check, types_of, values};
