//! The size of a page.

use lopdf::{Dictionary, Document, Object, ObjectId};

/// The maximum number of ancestors of a page that are searched for an inherited box.
const MAX_ANCESTORS: usize = 64;

/// Returns the width and height of a page in points, cropped and rotated as it is displayed.
pub(super) fn size_of(document: &Document, page: ObjectId) -> Option<(f64, f64)> {
    let page = document.get_dictionary(page).ok()?;
    let dimensions =
        inherited(document, page, b"CropBox").or_else(|| inherited(document, page, b"MediaBox"))?;
    let (width, height) = dimensions_of(document, dimensions)?;
    let rotation =
        inherited(document, page, b"Rotate").and_then(|turn| turn.as_i64().ok()).unwrap_or_default();
    Some(if rotation.rem_euclid(180) == 90 { (height, width) } else { (width, height) })
}

/// Returns an entry of a page, or of the nearest ancestor that has it.
fn inherited<'a>(document: &'a Document, page: &'a Dictionary, key: &[u8]) -> Option<&'a Object> {
    let parent = |node: &&'a Dictionary| node.get_deref(b"Parent", document).ok()?.as_dict().ok();
    let mut nodes = std::iter::successors(Some(page), parent).take(MAX_ANCESTORS);
    nodes.find_map(|node| node.get_deref(key, document).ok())
}

fn dimensions_of(document: &Document, rectangle: &Object) -> Option<(f64, f64)> {
    let number = |corner: &Object| {
        let (_, corner) = document.dereference(corner).ok()?;
        corner.as_float().ok().map(f64::from)
    };
    let corners: Option<Vec<f64>> = rectangle.as_array().ok()?.iter().map(number).collect();
    let [x1, y1, x2, y2] = corners?.try_into().ok()?;
    let (width, height) = (f64::abs(x2 - x1), f64::abs(y2 - y1));
    (width.is_finite() && height.is_finite()).then_some((width, height))
}
