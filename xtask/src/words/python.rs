//! The comments, docstrings and messages of a Python file.

use super::list::Place;
use super::{Line, without_code, without_placeholders};

/// Returns the comments and the strings of a file, line by line. A string of one word is a name or a key, and is left out.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(start) = rest.find(['#', '"', '\'']) {
        let (before, from) = rest.split_at(start);
        line += count_lines(before);
        let (place, content, after) = token(from);
        let parts = content.lines().enumerate().filter(|(_, part)| part.contains(' '));
        lines.extend(parts.map(|(offset, part)| (place, line + offset, readable(place, part))));
        line += count_lines(content);
        rest = after;
    }
    lines
}

/// The comment or string at the start of a text, and the text after it.
fn token(text: &str) -> (Place, &str, &str) {
    if text.starts_with('#') {
        let (comment, after) = text.split_at(text.find('\n').unwrap_or(text.len()));
        return (Place::Comment, comment, after);
    }
    for quote in ["\"\"\"", "'''"] {
        if let Some(inner) = text.strip_prefix(quote) {
            let (content, after) = split_at_quote(inner, quote);
            return (Place::Prose, content, after);
        }
    }
    let (quote, inner) = text.split_at(1);
    let (content, after) = split_at_quote(inner, quote);
    (Place::Message, content, after)
}

/// Splits after a string: before the first quote that is not escaped.
fn split_at_quote<'t>(text: &'t str, quote: &str) -> (&'t str, &'t str) {
    let mut quotes = text.match_indices(quote).map(|(at, _)| at);
    let end = quotes.find(|at| !text.get(..*at).is_some_and(|before| before.ends_with('\\')));
    let end = end.unwrap_or(text.len());
    (text.get(..end).unwrap_or_default(), text.get(end + quote.len()..).unwrap_or_default())
}

fn readable(place: Place, part: &str) -> String {
    if place == Place::Message { without_placeholders(part) } else { without_code(&part.replace("``", "`")) }
}

fn count_lines(text: &str) -> usize {
    text.matches('\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_comments_docstrings_and_messages() {
        let source = concat!(
            "\"\"\"First.\n\nWhat ``told us`` is # not one.\n\"\"\"\n",
            "key = 'told'  # a key\n",
            "raise ValueError(f\"say \\\"{told + ''}\\\" again\")\n",
        );
        let found = lines(source);
        let expected = [
            (Place::Prose, 3, "What `` is # not one."),
            (Place::Comment, 5, "# a key"),
            (Place::Message, 6, "say \\\"\\\" again"),
        ];
        assert_eq!(found, expected.map(|(place, line, text)| (place, line, text.to_owned())));
    }
}
