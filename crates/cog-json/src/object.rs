//! Objects that are put together from other values.

use crate::{
    node::Node,
    value::Value,
    write::{ToJson, Writer},
};

/// The members of an object that is put together from other values. Each value stays as it was written, also a number that no
/// 64 bits hold.
///
/// ```
/// use cog_json::{Object, ToJson as _, Value};
///
/// let input = Value::parse(r#"{"id": 123456789012345678901, "text": "a"}"#)?;
/// let mut object = Object::from_node(input.node());
/// object.insert("text", Value::parse(r#""b""#)?);
/// assert_eq!(object.to_json(), r#"{"id":123456789012345678901,"text":"b"}"#);
/// # Ok::<(), cog_json::SyntaxError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Object(Vec<(String, Value)>);

impl Object {
    /// Copies the members of an object. Any other value has none.
    #[must_use]
    pub fn from_node(node: Node<'_>) -> Self {
        node.members().map(|(name, value)| (name.to_owned(), value.to_value())).collect()
    }

    /// Returns a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Sets a member, in its place if there is one of this name, otherwise as the last one.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) {
        let name = name.into();
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, member)) => *member = value,
            None => self.0.push((name, value)),
        }
    }

    /// Removes a member, and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let index = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(index).1)
    }

    /// Returns whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the object as a value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::from_written_text(self.to_json())
    }

    /// Returns the object as a value; none if it has no members.
    #[must_use]
    pub fn non_empty(&self) -> Option<Value> {
        (!self.is_empty()).then(|| self.to_value())
    }
}

/// The last of two members of one name counts.
impl FromIterator<(String, Value)> for Object {
    fn from_iter<T: IntoIterator<Item = (String, Value)>>(members: T) -> Self {
        Self(members.into_iter().collect())
    }
}

impl ToJson for Object {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for (name, value) in &self.0 {
                w.field(name, value);
            }
        });
    }
}
