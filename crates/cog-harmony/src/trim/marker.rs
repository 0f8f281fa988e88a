//! The texts that replace media.

use crate::{Part, media_text::media_text};

/// Returns the text that replaces a media part; none for a part that is not one.
pub(crate) fn marker(part: &Part) -> Option<String> {
    media_text(part).map(|(kind, text)| format!("[{kind} removed: {text}]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_describe_the_part() {
        let image = Part::image_at("https://x.test/a.png");
        assert_eq!(marker(&image).as_deref(), Some("[image removed: https://x.test/a.png]"));
        assert_eq!(marker(&Part::text("a")), None);
    }
}
