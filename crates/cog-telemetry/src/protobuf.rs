//! Writes protobuf messages. OTLP needs five kinds of fields, and a reader of one.

/// A message that is being written.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Message(Vec<u8>);

/// The kinds of fields.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const BYTES: u32 = 2;
const FIXED32: u32 = 5;

impl Message {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Removes everything, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the bytes for which there is memory.
    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Writes fields that are already encoded.
    pub(crate) fn encoded(&mut self, encoded: &[u8]) {
        self.0.extend_from_slice(encoded);
    }

    /// Writes an integer, an enum or a truth value.
    pub(crate) fn integer(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn fixed32(&mut self, field: u32, value: u32) {
        self.key(field, FIXED32);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, BYTES);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// Writes 64-bit values as one packed field.
    pub(crate) fn packed(&mut self, field: u32, values: impl ExactSizeIterator<Item = u64>) {
        self.key(field, BYTES);
        self.varint(values.len() as u64 * 8);
        values.for_each(|value| self.0.extend_from_slice(&value.to_le_bytes()));
    }

    /// Writes a message within this one. The length of a message under 128 bytes, the common case, has one byte.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.key(field, BYTES);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        let length = self.0.len() - at - 1;
        match self.0.get_mut(at) {
            Some(byte) if length < 0x80 => *byte = length as u8,
            _ => {
                let groups =
                    std::iter::successors(Some(length), |rest| Some(rest >> 7).filter(|rest| *rest > 0));
                let encoded = groups.map(|rest| rest as u8 & 0x7f | if rest < 0x80 { 0 } else { 0x80 });
                self.0.splice(at..=at, encoded);
            }
        }
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// Returns the first field with this number: an integer, or the bytes of a message. None for a message that is not valid.
pub(crate) fn find(mut message: &[u8], field: u64) -> Option<Field<'_>> {
    while !message.is_empty() {
        let key = take_varint(&mut message)?;
        let value = match key & 7 {
            0 => Field::Integer(take_varint(&mut message)?),
            1 => Field::Bytes(take(&mut message, 8)?),
            2 => {
                let length = usize::try_from(take_varint(&mut message)?).ok()?;
                Field::Bytes(take(&mut message, length)?)
            }
            5 => Field::Bytes(take(&mut message, 4)?),
            _ => return None,
        };
        if key >> 3 == field {
            return Some(value);
        }
    }
    None
}

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
}

fn take<'a>(message: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(taken)
}

fn take_varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(message, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_format() {
        let mut message = Message::default();
        message.integer(1, 150);
        message.text(2, "testing");
        message.message(3, |inner| inner.integer(1, 150));
        message.fixed64(4, 1);
        message.fixed32(16, 0x301);
        message.packed(6, [1u64, 2].into_iter());
        let expected: &[u8] = &[
            0x08, 0x96, 0x01, 0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g', 0x1a, 0x03, 0x08, 0x96,
            0x01, 0x21, 1, 0, 0, 0, 0, 0, 0, 0, 0x85, 0x01, 0x01, 0x03, 0, 0, 0x32, 16, 1, 0, 0, 0, 0, 0, 0,
            0, 2, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(message.into_bytes(), expected);
    }

    #[test]
    fn messages_of_any_length_read_back() {
        for length in [0, 1, 126, 127, 128, 129, 16_382, 16_383, 16_384, 70_000] {
            let text = "x".repeat(length);
            let mut message = Message::default();
            message.integer(9, 1);
            message.message(1, |inner| inner.message(2, |inner| inner.text(3, &text)));
            message.integer(4, 7);
            let bytes = message.into_bytes();
            let Some(Field::Bytes(outer)) = find(&bytes, 1) else { panic!("{length}") };
            let Some(Field::Bytes(inner)) = find(outer, 2) else { panic!("{length}") };
            assert_eq!(find(inner, 3), Some(Field::Bytes(text.as_bytes())), "{length}");
            assert_eq!(find(&bytes, 4), Some(Field::Integer(7)));
        }
    }

    #[test]
    fn malformed_messages_have_no_fields() {
        for bytes in
            [&[0x08][..], &[0x0a, 5, 1], &[0xff; 20], &[0x0b, 1], &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff]]
        {
            assert_eq!(find(bytes, 1), None, "{bytes:?}");
        }
    }
}
