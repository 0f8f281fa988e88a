//! Types that can be written as JSON.

use crate::node::Node;
use crate::value::Value;
use crate::write::Writer;

/// A value that has a JSON form.
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

impl<T: ToJson + ?Sized> ToJson for &T {
    fn write_json(&self, w: &mut Writer<'_>) {
        (**self).write_json(w);
    }
}

impl<T: ToJson + ?Sized> ToJson for Box<T> {
    fn write_json(&self, w: &mut Writer<'_>) {
        (**self).write_json(w);
    }
}

impl ToJson for Node<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.node(*self);
    }
}

impl ToJson for Value {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.node(self.node());
    }
}

impl ToJson for str {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.string(self);
    }
}

impl ToJson for String {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.string(self);
    }
}

impl ToJson for bool {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.bool(*self);
    }
}

/// `None` is `null`; [`Writer::optional`] leaves the member out.
impl<T: ToJson> ToJson for Option<T> {
    fn write_json(&self, w: &mut Writer<'_>) {
        match self {
            Some(value) => value.write_json(w),
            None => w.null(),
        }
    }
}

impl<T: ToJson> ToJson for [T] {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.array(|w| {
            for item in self {
                w.item(item);
            }
        });
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn write_json(&self, w: &mut Writer<'_>) {
        self.as_slice().write_json(w);
    }
}

impl ToJson for f64 {
    /// The shortest text that reads back as the same float; `null` if it is not finite.
    fn write_json(&self, w: &mut Writer<'_>) {
        match serde_json::Number::from_f64(*self) {
            Some(number) => w.literal(&number.to_string()),
            None => w.null(),
        }
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl ToJson for $integer {
            fn write_json(&self, w: &mut Writer<'_>) {
                w.literal(&self.to_string());
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize }
