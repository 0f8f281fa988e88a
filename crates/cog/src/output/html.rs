//! HTML pages without scripts and other files.

use std::fmt::{self, Display, Formatter, Write as _};

use super::text::{Table, is_unsafe};

/// The style that all pages share.
const STYLE: &str = include_str!("page.css");
/// Nothing may be loaded, not even if some text were not escaped.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Formats a page. `title` is plain text; `style` and `body` are CSS and HTML.
pub(crate) fn page(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}{style}</style>\n<main>\n{body}</main>\n</html>\n",
        Escaped(title)
    )
}

/// Formats a table.
pub(crate) fn table(table: &Table) -> String {
    let mut html = "<table>\n<tr>".to_owned();
    table.header().iter().for_each(|name| html += &format!("<th>{}", Escaped(name)));
    for row in table.rows() {
        html += "\n<tr>";
        row.iter().for_each(|cell| html += &format!("<td>{}", Escaped(cell)));
    }
    html + "\n</table>\n"
}

/// Text in HTML, also in an attribute. Characters that hide or reorder text are replaced.
pub(crate) struct Escaped<'a>(pub(crate) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\n' | '\t' => f.write_char(character),
            // HTML reads it as another line break.
            '\r' => Ok(()),
            _ if is_unsafe(character) => f.write_char('\u{fffd}'),
            _ => f.write_char(character),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_markup_and_replaces_what_hides_text() {
        let text = "<b a=\"1\">&\u{202e}\u{1b}[8m\0\r\n\té";
        let expected = "&lt;b a=&quot;1&quot;&gt;&amp;\u{fffd}\u{fffd}[8m\u{fffd}\n\té";
        assert_eq!(Escaped(text).to_string(), expected);
    }

    #[test]
    fn page_has_a_policy_and_an_escaped_title() {
        let page = page("</title>", "", "<p>x</p>\n");
        assert!(page.contains("<title>&lt;/title&gt;</title>"), "{page}");
        assert!(page.contains("default-src 'none'"), "{page}");
    }
}
