use cog_json::{Path, Segment};
use cog_spec::Chunk;
use serde_json::{Map, Value};

/// The `data` to which the chunks of a stream add up. Paths create the containers (ruling R44).
#[derive(Debug, Clone, Default)]
pub struct DataAccumulator {
    data: Option<Value>,
}

impl DataAccumulator {
    /// Applies a delta or a snapshot; other chunks, and fields outside `data`, change nothing.
    pub fn apply(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Delta { field, delta, .. } => self.append(field, delta),
            Chunk::Snapshot { field: None, data, .. } => self.data = Some(data.to_serde()),
            Chunk::Snapshot { field: Some(field), data, .. } => self.replace(field, data.to_serde()),
            Chunk::Meta { .. } | Chunk::Progress(_) | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
    }

    /// Returns the data so far; none before the first chunk of data.
    pub fn data(&self) -> Option<&Value> {
        self.data.as_ref()
    }

    /// Converts it to the data.
    pub(crate) fn into_data(self) -> Option<Value> {
        self.data
    }

    /// Returns the value of a field.
    pub fn at(&self, field: &str) -> Option<&Value> {
        let path: Path = field.parse().ok()?;
        self.data.as_ref()?.pointer(path.pointer().strip_prefix("/data")?)
    }

    /// Appends to a string.
    pub(crate) fn append(&mut self, field: &str, delta: &str) {
        match self.place(field) {
            Some(Value::String(text)) => text.push_str(delta),
            Some(place) => *place = Value::from(delta),
            None => {}
        }
    }

    /// Replaces a value.
    pub(crate) fn replace(&mut self, field: &str, value: Value) {
        if let Some(place) = self.place(field) {
            *place = value;
        }
    }

    /// Returns the value of a field of `data`, which is created if it is absent.
    fn place(&mut self, field: &str) -> Option<&mut Value> {
        let path: Path = field.parse().ok()?;
        let mut steps = path.segments();
        if steps.next() != Some(Segment::Key("data")) {
            return None;
        }
        let root = self.data.get_or_insert(Value::Null);
        steps.try_fold(root, step_into)
    }
}

fn step_into<'a>(place: &'a mut Value, step: Segment<'_>) -> Option<&'a mut Value> {
    match step {
        Segment::Key(key) => {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            Some(place.as_object_mut()?.entry(key).or_insert(Value::Null))
        }
        Segment::Index(index) => {
            if !place.is_array() {
                *place = Value::Array(Vec::new());
            }
            let elements = place.as_array_mut()?;
            // Arrays grow by one element. An index beyond that is invalid.
            if index == elements.len() {
                elements.push(Value::Null);
            }
            elements.get_mut(index)
        }
    }
}
