//! What a reply is: an envelope, or the bare data (ruling R28).

use cog_json::{Event, EventKind, Node, Segment};

/// What a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `{ok, meta, data}` or `{ok, meta, error}`.
    Envelope {
        /// What `ok` says.
        ok: bool,
    },
    /// Data alone.
    Bare,
}

impl Shape {
    /// The shape of a whole reply: an object with a boolean `ok` is an envelope.
    fn of(root: Node<'_>) -> Self {
        match root.get("ok").and_then(Node::as_bool) {
            Some(ok) => Self::Envelope { ok },
            None => Self::Bare,
        }
    }
}

/// Keys that an envelope may begin with.
const ENVELOPE_KEYS: [&str; 4] = ["ok", "meta", "data", "error"];

/// Finds out the shape of a reply while it arrives, as early as nothing has to be taken back.
///
/// An envelope is known by its `ok`. Data alone are known by their first key where the module's format asks for
/// them (v1, v2.1), else only when the reply is over.
#[derive(Debug)]
pub(crate) struct Recognizer {
    asked_for_data: bool,
    shape: Option<Shape>,
    /// A member went by before the shape was known.
    has_passed_member: bool,
    /// `data` of an envelope went by before it was known that they are the answer.
    has_passed_data: bool,
}

impl Recognizer {
    /// `asked_for_data`: the module's format asks for the data alone.
    pub(crate) fn new(asked_for_data: bool) -> Self {
        Self { asked_for_data, shape: None, has_passed_member: false, has_passed_data: false }
    }

    /// The shape, once it is known.
    pub(crate) fn shape(&self) -> Option<Shape> {
        self.shape
    }

    /// MediaCapabilities note of an event.
    pub(crate) fn note(&mut self, event: &Event<'_>) {
        if self.shape == Some(Shape::Bare) {
            return;
        }
        match (event.path.depth(), event.path.first()) {
            (0, _) if self.asked_for_data && event.node.is_array() => self.shape = Some(Shape::Bare),
            (1, Some(Segment::Key("ok"))) if event.kind == EventKind::Complete => self.read_ok(event.node),
            (1, Some(Segment::Key(key))) if self.is_first_of_data(key) => self.shape = Some(Shape::Bare),
            (_, Some(Segment::Key("data"))) => {
                self.has_passed_data |= self.shape != Some(Shape::Envelope { ok: true });
            }
            _ => {}
        }
        self.has_passed_member |= self.shape.is_none() && !event.path.is_root();
    }

    /// The shape of the whole reply, and whether its data were recognised as such from their first event on.
    pub(crate) fn conclude(&self, root: Node<'_>) -> (Shape, bool) {
        match self.shape {
            Some(Shape::Bare) => (Shape::Bare, !self.has_passed_member),
            early => {
                let shape = Shape::of(root);
                (shape, early == Some(shape) && !self.has_passed_data)
            }
        }
    }

    /// The data as far as they have arrived, once they are known to be the answer.
    pub(crate) fn draft<'a>(&self, root: Node<'a>) -> Option<Node<'a>> {
        match self.shape? {
            Shape::Envelope { ok } => root.get("data").filter(|_| ok),
            Shape::Bare => Some(root),
        }
    }

    fn read_ok(&mut self, ok: Node<'_>) {
        self.shape = ok.as_bool().map(|ok| Shape::Envelope { ok }).or(self.shape);
    }

    fn is_first_of_data(&self, key: &str) -> bool {
        self.asked_for_data && self.shape.is_none() && !ENVELOPE_KEYS.contains(&key)
    }
}
