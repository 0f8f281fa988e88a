//! Writes messages as JSON.

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{
    Message, Part, Role,
    other::{member, write_number, write_optional, write_other},
};

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        write_optional(&mut map, "id", &self.id)?;
        let role = member(&self.other, "role").and_then(cog_json::Node::as_str);
        map.serialize_entry("role", role.unwrap_or(self.role.as_str()))?;
        write_optional(&mut map, "name", &self.name)?;
        if let Some(created_at) = self.created_at {
            write_number(&mut map, "created_at", created_at)?;
        }
        map.serialize_entry("content", &Content(self))?;
        if !self.tool_calls.is_empty() {
            map.serialize_entry("tool_calls", &self.tool_calls)?;
        }
        write_optional(&mut map, "tool_call_id", &self.tool_call_id)?;
        write_optional(&mut map, "reasoning", &self.reasoning)?;
        write_optional(&mut map, "metadata", &self.metadata)?;
        write_other(&mut map, &self.other, &["role"])?;
        map.end()
    }
}

/// `content`, in the form that the role of the message requires (ruling R63).
struct Content<'a>(&'a Message);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plain = matches!(self.0.role, Role::Assistant | Role::Tool);
        match self.0.content.as_slice() {
            [] if plain => serializer.serialize_none(),
            [Part::Text(text)] if plain && text.index.is_none() && text.other.is_none() => {
                text.text.serialize(serializer)
            }
            parts => parts.serialize(serializer),
        }
    }
}
