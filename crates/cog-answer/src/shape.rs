//! Whether a reply is an envelope or bare data (ruling R28).

use cog_json::{Event, EventKind, Node, Segment};
use cog_schema::Contract;

use crate::AnswerRules;

/// The shape of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `{ok, meta, data}` or `{ok, meta, error}`.
    Envelope {
        /// The value of `ok`.
        ok: bool,
    },
    /// An envelope that lacks a boolean `ok`, so that its outcome is unknown.
    WithoutOk,
    /// The data without an envelope.
    Bare,
}

/// Returns whether a reply has the parts of an envelope: `meta`, and `data` or `error`.
fn has_parts(root: Node<'_>) -> bool {
    has_object(root, "meta") && (has_object(root, "data") || has_object(root, "error"))
}

fn has_object(root: Node<'_>, key: &str) -> bool {
    root.get(key).is_some_and(Node::is_object)
}

/// Returns whether a module's own data have the members of an envelope, so that they show nothing.
fn has_own_parts(contract: &Contract) -> bool {
    let Some(shape) = contract.shape("data") else { return false };
    let names = shape.member_names();
    names.contains(&"meta") && (names.contains(&"data") || names.contains(&"error"))
}

/// Returns whether a reply is `{error}`, as a form of data alone has it (ruling R91).
fn is_error_alone(root: Node<'_>) -> bool {
    has_object(root, "error") && root.members().count() == 1
}

/// The keys that an envelope may start with.
const ENVELOPE_KEYS: [&str; 4] = ["ok", "meta", "data", "error"];

/// Recognises the shape of a reply while it arrives, as early as it is certain.
///
/// An envelope is recognised by its `ok`. Bare data are recognised by their first key if the module's format or the form
/// requests them, otherwise at the end of the reply.
#[derive(Debug)]
pub(crate) struct Recognizer {
    expects_data: bool,
    /// An object `{error}` is the model's own error.
    may_be_error: bool,
    /// Bare data of the module may look like an envelope.
    has_own_parts: bool,
    shape: Option<Shape>,
    /// A member arrived before the shape was known.
    has_passed_member: bool,
    /// `data` arrived before `ok: true`.
    has_passed_data: bool,
    /// The values that began with the path of the root: the document, and the value of the wrapper.
    roots: usize,
    /// One of them is complete.
    has_complete_root: bool,
}

impl Recognizer {
    pub(crate) fn new(rules: &AnswerRules) -> Self {
        let may_be_error = rules.form.is_data() && rules.contract.accepts_error(rules.form);
        Self { may_be_error, ..Self::with_parts(rules.expects_data(), has_own_parts(&rules.contract)) }
    }

    fn with_parts(expects_data: bool, has_own_parts: bool) -> Self {
        Self {
            expects_data,
            may_be_error: false,
            has_own_parts,
            shape: None,
            has_passed_member: false,
            has_passed_data: false,
            roots: 0,
            has_complete_root: false,
        }
    }

    /// Returns whether an event shows that the value of the wrapper is not the answer, because it is not the only
    /// member.
    pub(crate) fn is_beside_wrapper(&self, event: &Event<'_>) -> bool {
        self.has_complete_root && !event.path.is_root()
    }

    /// Starts again at the members next to the wrapper.
    pub(crate) fn start_beside_wrapper(&self) -> Self {
        let fresh = Self::with_parts(self.expects_data, self.has_own_parts);
        Self { roots: self.roots, may_be_error: self.may_be_error, ..fresh }
    }

    /// Returns the shape, once it is known.
    pub(crate) fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// Processes an event.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        self.roots += usize::from(event.path.is_root() && event.kind == EventKind::Open);
        self.has_complete_root |= event.path.is_root() && event.kind == EventKind::Complete;
        if self.shape == Some(Shape::Bare) {
            return;
        }
        match (event.path.depth(), event.path.first()) {
            (0, _) if self.expects_data && event.node.is_array() => self.shape = Some(Shape::Bare),
            (1, Some(Segment::Key("ok"))) => self.read_ok(event.node),
            (1, Some(Segment::Key(key))) if self.is_first_of_data(key) => self.shape = Some(Shape::Bare),
            (_, Some(Segment::Key("data"))) => {
                self.has_passed_data |= self.shape != Some(Shape::Envelope { ok: true });
            }
            _ => {}
        }
        self.has_passed_member |= self.shape.is_none() && !event.path.is_root();
    }

    /// Returns the shape of the complete reply, and whether its data were recognised from their first event on. `root`
    /// is inside the wrapper if `is_unwrapped`.
    pub(crate) fn finish(&self, root: Node<'_>, is_unwrapped: bool) -> (Shape, bool) {
        let has_one_root = self.roots <= 1 + usize::from(is_unwrapped);
        let shape = self.shape_of(root);
        let is_complete = match shape {
            Shape::Bare => self.shape == Some(shape) && !self.has_passed_member,
            _ => self.shape == Some(shape) && !self.has_passed_data,
        };
        (shape, is_complete && has_one_root)
    }

    /// Returns the shape of a complete reply: an object with a boolean `ok` is an envelope, and so is one with the parts of
    /// an envelope.
    fn shape_of(&self, root: Node<'_>) -> Shape {
        // What was emitted as data stays data, whatever members followed.
        match root.get("ok").and_then(Node::as_bool).filter(|_| self.shape != Some(Shape::Bare)) {
            Some(ok) => Shape::Envelope { ok },
            None if self.may_be_error && is_error_alone(root) => Shape::Envelope { ok: false },
            None if has_parts(root) && !self.has_own_parts => Shape::WithoutOk,
            None => Shape::Bare,
        }
    }

    /// Returns the data so far, once they are known to be the answer.
    pub(crate) fn draft<'a>(&self, root: Node<'a>) -> Option<Node<'a>> {
        match self.shape? {
            Shape::Envelope { ok } => root.get("data").filter(|_| ok),
            Shape::WithoutOk => None,
            Shape::Bare => Some(root),
        }
    }

    fn read_ok(&mut self, ok: Node<'_>) {
        self.shape = ok.as_bool().map(|ok| Shape::Envelope { ok }).or(self.shape);
    }

    fn is_first_of_data(&self, key: &str) -> bool {
        // A v1 module may have a field `meta` or `data`, so these keys decide nothing before the end.
        self.expects_data && self.shape.is_none() && !ENVELOPE_KEYS.contains(&key)
    }
}

#[cfg(test)]
mod tests {
    use cog_json::{Limits, Parser};

    use super::*;

    const SUCCESS: Shape = Shape::Envelope { ok: true };

    /// Returns the shape known before the end, the final shape, and whether its data were recognised from the first
    /// event.
    fn recognise(parser: Parser, expects_data: bool, text: &str) -> (Option<Shape>, Shape, bool) {
        let mut parser = parser;
        let mut recognizer = Recognizer::with_parts(expects_data, false);
        let read = parser.push(text.as_bytes(), &mut |event| {
            if recognizer.is_beside_wrapper(&event) {
                recognizer = recognizer.start_beside_wrapper();
            }
            recognizer.note(&event);
        });
        read.unwrap();
        let root = parser.unwrapped_root().unwrap();
        let is_unwrapped = parser.root().map(Node::id) != Some(root.id());
        let (shape, is_complete) = recognizer.finish(root, is_unwrapped);
        (recognizer.shape(), shape, is_complete)
    }

    #[test]
    fn envelope_is_recognised_by_its_ok() {
        for (text, early, shape, is_complete) in [
            (r#"{"ok": true, "data": {"a": {"b": [{}]}}}"#, Some(SUCCESS), SUCCESS, true),
            (r#"{"meta": {}, "ok": true, "data": {}}"#, Some(SUCCESS), SUCCESS, true),
            (r#"{"data": {}, "ok": true}"#, Some(SUCCESS), SUCCESS, false),
            (r#"{"ok": "yes", "data": {}}"#, None, Shape::Bare, false),
            (r#"{"ok": "yes", "meta": {}, "data": {}}"#, None, Shape::WithoutOk, false),
            (r#"{"meta": {}, "error": {}}"#, None, Shape::WithoutOk, false),
            (r#"{"meta": {}, "data": []}"#, None, Shape::Bare, false),
            (r#"{"a": 1}"#, None, Shape::Bare, false),
        ] {
            let found = recognise(Parser::tolerant(Limits::model_output()), false, text);
            assert_eq!(found, (early, shape, is_complete), "{text}");
        }
    }

    #[test]
    fn requested_data_are_recognised_by_their_first_key() {
        for (text, is_complete) in [
            (r#"{"a": {"b": [{}]}}"#, true),
            (r#"[{"a": 1}, {"ok": true}]"#, true),
            (r#"{"meta": {}, "a": 1}"#, false),
        ] {
            let found = recognise(Parser::tolerant(Limits::model_output()), true, text);
            assert_eq!(found, (Some(Shape::Bare), Shape::Bare, is_complete), "{text}");
        }
        for (text, shape, is_complete) in [
            (r#"{"ok": true, "data": {}}"#, SUCCESS, true),
            (r#"{"meta": {}, "data": {}}"#, Shape::WithoutOk, false),
            (r#"{"a": 1, "meta": {}, "data": {}}"#, Shape::WithoutOk, false),
        ] {
            let (_, found, complete) = recognise(Parser::tolerant(Limits::model_output()), true, text);
            assert_eq!((found, complete), (shape, is_complete), "{text}");
        }
    }

    #[test]
    fn data_whose_schema_names_the_parts_of_an_envelope_are_data() {
        let mut schema = crate::testing::schema(serde_json::json!({ "meta": {}, "data": {} }));
        for (names, expected) in [(true, Shape::Bare), (false, Shape::WithoutOk)] {
            if !names {
                schema["data"]["properties"].as_object_mut().unwrap().remove("data");
            }
            let rules = crate::testing::rules(crate::testing::manifest(cog_spec::Tier::Decision), &schema);
            let recognizer = Recognizer::with_parts(true, has_own_parts(&rules.contract));
            let reply = cog_json::Value::parse(r#"{"meta": {}, "data": {}}"#).unwrap();
            assert_eq!(recognizer.finish(reply.node(), false).0, expected, "{names}");
        }
    }

    #[test]
    fn data_beside_a_wrapper_are_not_complete() {
        let inner = r#"{"ok": true, "data": {"a": 1}}"#;
        for (text, is_complete) in [
            (format!(r#"{{"w": {inner}}}"#), true),
            (format!(r#"{{"w": {inner}"#), true),
            (format!(r#"{{"w": {inner}, "ok": true, "data": {{"a": 1}}}}"#), false),
            (format!(r#"{{"w": {inner}, "ok": true, "data": {{"a": 1}}"#), false),
        ] {
            let parser = Parser::tolerant(Limits::model_output()).unwrapping("w");
            assert_eq!(recognise(parser, false, &text), (Some(SUCCESS), SUCCESS, is_complete), "{text}");
        }
    }
}
