//! Extensible enums: `{custom, reason}` instead of a listed value (rulings R20, R22).

use cog_json::{Node, Path};
use cog_spec::{Code, EnumStrategy};

use super::{absent, below, mistyped};
use crate::contract::Contract;
use crate::finding::counted;
use crate::violation::Violation;

/// The maximum length of a custom value, in characters.
const MAX_LEN: usize = 32;

impl Contract {
    /// Checks an object that replaces a listed value.
    pub(super) fn check_custom(&self, object: Node<'_>, path: &Path) -> Result<(), Violation> {
        if self.rules.enums.strategy == EnumStrategy::Strict {
            let message = "found an object; `enums.strategy: strict` allows only the values of the enum";
            return Err(Violation::new(path, "extensible_enum", Code::InvalidEnum, message));
        }
        let tag = self.rules.enums.unknown_tag.as_str();
        let value = text_of(object, tag, path)?;
        text_of(object, "reason", path)?;
        let length = value.chars().count();
        if length <= MAX_LEN {
            return Ok(());
        }
        let message = format!("found {}; allowed: at most {MAX_LEN}", counted(length, "character"));
        Err(Violation::new(&below(path, tag), "maxLength", Code::OutputSchemaViolation, message))
    }
}

fn text_of<'a>(object: Node<'a>, key: &str, path: &Path) -> Result<&'a str, Violation> {
    let node = object.get(key).ok_or_else(|| absent(&below(path, key), key))?;
    node.as_str().ok_or_else(|| mistyped(&below(path, key), node, "a string"))
}
