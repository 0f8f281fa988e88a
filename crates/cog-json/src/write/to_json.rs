//! Types that can be written as JSON.

use serde::Serialize;

use crate::write::Writer;

/// A value that has a JSON form. Types that serde can serialize have one.
///
/// Derive `Serialize` where the members are the fields. Implement this trait by hand only where they are not: the form is
/// computed from other types (a code with its meaning, a path as text), or members appear only in some states.
pub trait ToJson {
    /// Writes exactly one value.
    fn write_json(&self, w: &mut Writer<'_>);

    /// Returns the value as compact JSON.
    fn to_json(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut Writer::compact(&mut out));
        out
    }

    /// Returns the value as JSON with line breaks, indented by two spaces.
    fn to_json_pretty(&self) -> String {
        let mut out = String::new();
        self.write_json(&mut Writer::pretty(&mut out));
        out
    }
}

/// A value whose serialization fails, such as a map with keys that are not strings, becomes `null`.
impl<T: Serialize + ?Sized> ToJson for T {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.value(self);
    }
}

/// The array of values whose JSON form is written by hand.
pub struct Array<'a, T>(pub &'a [T]);

impl<T: ToJson> ToJson for Array<'_, T> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.array(|w| {
            for value in self.0 {
                w.item(value);
            }
        });
    }
}
