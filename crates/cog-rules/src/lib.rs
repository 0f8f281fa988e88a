#![doc = include_str!("../README.md")]

mod condition;
mod cursor;
mod path;
mod static_type;
mod typing;

pub use condition::{
    Cases, Comparison, Condition, Content, Decimal, Expression, KnownValues, Operand, Values,
};
pub use cursor::{Cursor, TextError};
pub use path::{PathStep, ValuePath};
pub use static_type::{AbsentMember, MAX_ALTERNATIVES, StaticType};
pub use typing::{check, types_of, values};
