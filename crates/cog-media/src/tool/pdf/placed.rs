//! The text of a page with the places of its strings, so that the value of a field follows its label.

use hayro_syntax::object::{Array, Object};

/// The maximum number of strings of a page whose places are known, and of annotations that are placed among them.
const MAX_STRINGS: usize = 20_000;
const MAX_PLACED: usize = 2_000;
/// How far a label and its field may be apart from each other's line, or overlap, in points.
const TOLERANCE: f32 = 3.0;
/// How many times its font size a label may be above its field.
const ABOVE: f32 = 2.0;

/// The text of a page.
#[derive(Default)]
pub(super) struct PlacedText {
    pub(super) text: String,
    strings: Vec<PlacedString>,
}

/// A string that is written from left to right.
struct PlacedString {
    /// Where it ends in the text.
    end: usize,
    left: f32,
    right: f32,
    baseline: f32,
    size: f32,
}

/// The text of an annotation and its place.
pub(super) struct PlacedAnnotation {
    /// Empty, if it has none.
    pub(super) text: String,
    pub(super) rectangle: Rectangle,
}

/// A rectangle on the page.
#[derive(Clone, Copy, Default)]
pub(super) struct Rectangle {
    left: f32,
    bottom: f32,
    right: f32,
    top: f32,
}

impl PlacedText {
    /// Notes that the string at the end of the text was shown from one point to another, in a font of this size.
    pub(super) fn place(&mut self, from: [f32; 2], to: [f32; 2], size: f32) {
        let [[left, baseline], [right, end]] = [from, to];
        let is_horizontal = right > left && (end - baseline).abs() <= TOLERANCE;
        if is_horizontal && self.strings.len() < MAX_STRINGS {
            self.strings.push(PlacedString { end: self.text.len(), left, right, baseline, size });
        }
    }

    /// Removes a character of the text.
    pub(super) fn remove(&mut self, at: usize) {
        self.text.remove(at);
        let after = self.strings.iter_mut().rev().take_while(|string| string.end > at);
        after.for_each(|string| string.end -= 1);
    }

    /// Returns the text with the text of annotations: each after its label, those without one at the end.
    pub(super) fn with(self, annotations: &[PlacedAnnotation]) -> String {
        let mut placed = Vec::new();
        let mut others = Vec::new();
        let fields = annotations.get(..MAX_PLACED).unwrap_or(annotations);
        for (at, annotation) in annotations.iter().enumerate().filter(|(_, found)| !found.text.is_empty()) {
            let label = fields.get(at).and_then(|field| self.label_of(field.rectangle, fields));
            match label {
                Some(label) => placed.push((label, annotation)),
                None => others.push(annotation),
            }
        }
        // Fields of one label are in their order on the line.
        placed.sort_by(|(one, a), (other, b)| {
            one.cmp(other).then(a.rectangle.left.total_cmp(&b.rectangle.left))
        });
        let mut text = String::new();
        let mut written = 0;
        for (label, annotation) in placed {
            text.push_str(self.text.get(written..label).unwrap_or_default());
            text.push(' ');
            text.push_str(&annotation.text);
            written = label;
        }
        text.push_str(self.text.get(written..).unwrap_or_default());
        others.iter().fold(text, |all, annotation| all + "\n" + &annotation.text)
    }

    /// Returns where in the text the label of a field ends: to its left on its line, perhaps as a line on which one writes, or above
    /// it. What is behind another field is the label of that one.
    fn label_of(&self, field: Rectangle, fields: &[PlacedAnnotation]) -> Option<usize> {
        let is_behind_field =
            |between: Rectangle| fields.iter().any(|other| other.rectangle.overlaps(between));
        let before = self
            .before(field)
            .filter(|string| !is_behind_field(Rectangle { left: string.right, right: field.left, ..field }));
        let label = before.or_else(|| {
            let above = self.above(field)?;
            let between = Rectangle { bottom: field.top, top: above.baseline, ..field };
            (!is_behind_field(between)).then_some(above)
        });
        label.map(|string| string.end)
    }

    /// Returns the nearest string to the left of a field, or the last one of those without a gap that begin there.
    fn before(&self, field: Rectangle) -> Option<&PlacedString> {
        let on_line = self.strings.iter().enumerate().filter(|(_, string)| {
            field.bottom - TOLERANCE <= string.baseline
                && string.baseline <= field.top
                && string.left < field.left - TOLERANCE
        });
        let (at, mut last) = on_line.max_by(|(_, one), (_, other)| one.left.total_cmp(&other.left))?;
        for next in self.strings.iter().skip(at + 1) {
            let continues = (next.left - last.right).abs() <= TOLERANCE
                && (next.baseline - last.baseline).abs() <= TOLERANCE;
            if !continues {
                break;
            }
            last = next;
        }
        Some(last)
    }

    /// Returns the last string of the line that is directly above a field.
    fn above(&self, field: Rectangle) -> Option<&PlacedString> {
        let above = self.strings.iter().filter(|string| {
            (-TOLERANCE..=ABOVE * string.size).contains(&(string.baseline - field.top))
                && string.left < field.right
                && string.right > field.left - TOLERANCE
        });
        above.min_by(|one, other| {
            one.baseline.total_cmp(&other.baseline).then(other.left.total_cmp(&one.left))
        })
    }
}

impl Rectangle {
    /// Reads two opposite corners.
    pub(super) fn read(corners: &Array<'_>) -> Option<Self> {
        let mut numbers = corners.iter::<Object<'_>>().filter_map(|corner| match corner {
            Object::Number(number) => Some(number.as_f32()),
            _ => None,
        });
        let [x, y, x2, y2] = [numbers.next()?, numbers.next()?, numbers.next()?, numbers.next()?];
        Some(Self { left: x.min(x2), bottom: y.min(y2), right: x.max(x2), top: y.max(y2) })
    }

    /// Whether more than their edges have something in common.
    fn overlaps(self, other: Self) -> bool {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.top.min(other.top) - self.bottom.max(other.bottom);
        width > TOLERANCE && height > TOLERANCE
    }
}
