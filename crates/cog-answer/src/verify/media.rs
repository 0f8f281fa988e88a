use cog_json::Node;
use cog_schema::Violation;

use super::{
    form::Form,
    violations::{absent, mistyped},
};

/// Checks the form of a media source or a generated media item (SPEC 4.2, 4.3). Its bytes are not decoded.
pub(super) fn check(item: Node<'_>, found: &mut Vec<Violation>) {
    if !item.is_object() {
        return found.push(mistyped(item, "", "an object"));
    }
    let Some(kind) = item.get("type") else { return found.push(absent("type", "type")) };
    let form = match kind.as_str() {
        Some("url") => Form::MediaUrl,
        Some("base64") => Form::MediaBase64,
        Some("file") => Form::MediaFile,
        Some("upload_ref") => Form::MediaUpload,
        _ => return found.push(mistyped(kind, "type", "`url`, `base64`, `file` or `upload_ref`")),
    };
    form.check(item, "", &[], found);
}
