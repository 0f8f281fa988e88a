use cog_json::Node;
use cog_spec::Code;

use super::root;
use crate::contract::Contract;
use crate::finding::Finding;
use crate::violation::Violation;

impl Contract {
    /// Checks what a caller gives, before a model is asked: every violation, rooted at `input` (SPEC 2.3).
    ///
    /// An absent required field is E1002, another type E1003, a value that is none of those supported E1004, a
    /// media type that is none E1010, anything else E1001.
    pub fn check_input(&self, input: Node<'_>) -> Vec<Violation> {
        let Some(part) = &self.input else { return Vec::new() };
        let path = root("input");
        self.violations(&self.errors(part.shape, input), (&path, input), |finding| self.input_code(finding))
    }

    fn input_code(&self, finding: &Finding) -> Code {
        match finding.rule.as_str() {
            "required" => Code::MissingRequiredField,
            "type" => Code::TypeMismatch,
            "enum" | "const" => Code::UnsupportedValue,
            "pattern" if self.is_media_type(&finding.schema) => Code::UnsupportedMediaType,
            _ => Code::InvalidInput,
        }
    }

    /// Whether a keyword of the document stands at the `media_type` of a media input.
    fn is_media_type(&self, schema: &str) -> bool {
        schema.ends_with("/media_type/pattern")
            && self.document.media.iter().any(|media| schema.starts_with(media))
    }
}
