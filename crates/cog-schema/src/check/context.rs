use cog_json::{Node, Path};
use cog_spec::Code;

use crate::context_pointer::context_pointer;
use crate::contract::Contract;
use crate::violation::Violation;

impl Contract {
    /// Checks a context that the module reads, with paths from `input._context` (docs/spec/context.md).
    pub fn check_context(&self, name: &str, node: Node<'_>) -> Vec<Violation> {
        let base = path(&["input", "_context", name]);
        self.check_at_pointer(&context_pointer("accepts", name), (&base, node), Code::InvalidInput)
    }

    /// Checks a context that the module emits, with paths from `_emitted_context`.
    pub fn check_emitted(&self, name: &str, node: Node<'_>) -> Vec<Violation> {
        let base = path(&["_emitted_context", name]);
        self.check_at_pointer(&context_pointer("emits", name), (&base, node), Code::OutputSchemaViolation)
    }

    /// Checks a value against the schema at a pointer of the document, if there is one.
    fn check_at_pointer(&self, pointer: &str, (base, node): (&Path, Node<'_>), code: Code) -> Vec<Violation> {
        let Some(id) = self.graph.at(pointer) else { return Vec::new() };
        self.violations(&self.errors(id, node), (base, node), |_| code)
    }
}

fn path(keys: &[&str]) -> Path {
    let mut path = Path::root();
    keys.iter().for_each(|key| path.push_key(key));
    path
}
