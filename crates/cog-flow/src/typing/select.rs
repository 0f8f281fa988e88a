//! What is known about the values that the operands of a mapping select.

use std::rc::Rc;

use cog_rules::{AbsentMember, StaticType, types_of};
use cog_schema::Types;

use crate::{
    json_path::{JsonPath, WildPath, WildStep},
    mapping::Operand,
};

/// Follows operands and paths of a mapping.
pub(crate) trait Select: Sized {
    /// Returns what is known about an operand of a mapping, for an element of this type.
    fn operand(&self, operand: &Operand, item: &Self) -> Result<Self, AbsentMember>;

    /// Follows the path of a mapping. A path to several values selects a list.
    fn select(&self, path: &JsonPath) -> Result<Self, AbsentMember>;
}

impl<'c> Select for StaticType<'c> {
    fn operand(&self, operand: &Operand, item: &Self) -> Result<StaticType<'c>, AbsentMember> {
        match operand {
            Operand::Path(path) => self.select(path),
            Operand::Item(path) => item.select(path),
            Operand::Index => Ok(StaticType::Types(Types::INTEGER)),
            Operand::Constant(value) => Ok(StaticType::Types(types_of(value.node().kind()))),
        }
    }

    fn select(&self, path: &JsonPath) -> Result<StaticType<'c>, AbsentMember> {
        match path {
            JsonPath::One(path) => self.find(path),
            JsonPath::Many(_, path) => select_many(self, path),
        }
    }
}

fn select_many<'c>(from: &StaticType<'c>, path: &WildPath) -> Result<StaticType<'c>, AbsentMember> {
    let mut known = from.clone();
    for step in &path.steps {
        known = match step {
            WildStep::Key(key) => known.member_or_absent(key, from)?,
            WildStep::Index => known.elements_or_absent()?,
            WildStep::All => known.elements().unwrap_or(StaticType::Any),
        };
    }
    Ok(StaticType::List(Rc::new(if path.is_complete { known } else { StaticType::Any })))
}
