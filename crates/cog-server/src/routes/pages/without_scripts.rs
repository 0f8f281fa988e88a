//! The modules as plain HTML, for readers without JavaScript. Every name and description is escaped.

use std::fmt::{self, Display, Formatter, Write as _};

use cog_module::{ListedModule, Module};
use cog_spec::{ErrorBody, Manifest};

use crate::{offload, state::App};

/// The page, with a mark where the modules are.
const PAGE: &str = include_str!("../../../pages/index.html");
const MARK: &str = "<!--modules-->";
const NOTE: &str =
    "<p>Running a module here needs JavaScript. <a href=\"/openapi.json\">The API</a> does not.</p>";

/// Returns the workbench. Without JavaScript, it lists the modules, or shows this one.
pub(super) async fn workbench(app: &App, module: Option<&str>) -> String {
    // The page needs no token, so that it shows nothing that does.
    let modules = match (app.guard.access.has_tokens(), module) {
        (true, _) => {
            "<p>This server requires a token, which a browser can only send with JavaScript.</p>".to_owned()
        }
        (false, Some(name)) => match app.load(name).await {
            Ok(module) => described(&module),
            Err(error) => refused(&error),
        },
        (false, None) => {
            let runtime = app.runtime.clone();
            list(&offload::blocking(move || runtime.finder().list_offered()).await)
        }
    };
    PAGE.replacen(MARK, &format!("\n{modules}\n{NOTE}\n"), 1)
}

fn list(modules: &[ListedModule]) -> String {
    let mut html = "<h2>Modules</h2>\n<ul>\n".to_owned();
    for ListedModule { name, manifest, .. } in modules {
        let _ = write!(html, "<li><a href=\"/?module={}\">{}</a>", Escaped(&encoded(name)), Escaped(name));
        let _ = match manifest {
            Ok(manifest) => {
                writeln!(html, " ({}): {}</li>", facts(manifest), Escaped(&manifest.responsibility))
            }
            Err(_) => writeln!(html, ": its files cannot be loaded</li>"),
        };
    }
    html + "</ul>"
}

fn facts(manifest: &Manifest) -> String {
    let tier = manifest.tier.map(|tier| format!("{}, ", tier.as_str())).unwrap_or_default();
    format!("{tier}{}, {}", Escaped(&manifest.version), manifest.format.as_str())
}

fn described(module: &Module) -> String {
    let Module { manifest, contract, .. } = module;
    let mut html = format!(
        "<p><a href=\"/\">All modules</a></p>\n<h2>{}</h2>\n<p>{}</p>\n<p>{}</p>\n",
        Escaped(&manifest.name),
        Escaped(&manifest.responsibility),
        facts(manifest)
    );
    if !manifest.excludes.is_empty() {
        let _ = writeln!(html, "<p>Does not: {}</p>", Escaped(&manifest.excludes.join("; ")));
    }
    for (title, schema) in [("Input", contract.input_schema()), ("Data", contract.data_schema())] {
        if let Some(schema) = schema {
            let _ = writeln!(html, "<h3>{title}</h3>\n<pre>{}</pre>", Escaped(&format!("{schema:#}")));
        }
    }
    html
}

fn refused(error: &ErrorBody) -> String {
    format!(
        "<p><a href=\"/\">All modules</a></p>\n<p class=\"error\">{}: {}</p>",
        Escaped(error.code.as_str()),
        Escaped(&error.message)
    )
}

/// The value of a query parameter.
fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// Text in HTML, also in an attribute. Characters that hide or reorder text are replaced.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\n' | '\t' => f.write_char(character),
            _ if is_unsafe(character) => f.write_char('\u{fffd}'),
            _ => f.write_char(character),
        })
    }
}

/// Whether a character is a control character, separates lines, or changes the direction of the text after it.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
