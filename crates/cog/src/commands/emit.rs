//! Writes output to stdout or to a file, and annotations of files for GitHub Actions: lines on stdout that the runner shows in the
//! diff.

use std::{
    fmt::{self, Display, Formatter},
    path::Path,
};

use cog_json::ToJson;
use cog_module::files::{self, FileError};

use crate::{args::OutputArgs, error::CliError, output::Console};

/// Writes a value as JSON to the file of the arguments or to stdout; indented on a terminal, otherwise on one line.
pub(crate) fn json(
    value: &(impl ToJson + ?Sized),
    args: &OutputArgs,
    console: &Console,
) -> Result<(), CliError> {
    match args.output.as_deref().filter(|path| !is_stdout(path)) {
        Some(path) => file(path, &text(value, args.pretty), console),
        None => Ok(console.print(&text(value, args.pretty || console.out().is_terminal))?),
    }
}

/// Writes a text file atomically.
pub(crate) fn file(path: &Path, text: &str, console: &Console) -> Result<(), CliError> {
    let text = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    bytes(path, text.as_bytes(), console)
}

/// Writes a binary file atomically.
pub(crate) fn bytes(path: &Path, bytes: &[u8], console: &Console) -> Result<(), CliError> {
    files::write_atomic(path, bytes).map_err(|source| unwritable(path, source))?;
    written(path, console);
    Ok(())
}

/// Reports the path of the output on a terminal.
pub(crate) fn written(path: &Path, console: &Console) {
    if console.err().is_terminal {
        console.note(&format!("written to {}", path.display()));
    }
}

/// Checks before the work begins whether the output file can be written.
pub(crate) fn check(output: Option<&Path>) -> Result<(), CliError> {
    let Some(path) = output.filter(|path| !is_stdout(path)) else { return Ok(()) };
    files::check_writable(path).map_err(|source| unwritable(path, source))
}

/// Whether the path is `-`.
pub(crate) fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Creates the error of a file that cannot be written.
pub(crate) fn unwritable(path: &Path, source: FileError) -> CliError {
    CliError::File { what: "cannot write the file", path: path.to_owned(), source }
}

fn text(value: &(impl ToJson + ?Sized), pretty: bool) -> String {
    if pretty { value.to_json_pretty() } else { value.to_json() }
}

/// One annotation. It is displayed as a workflow command on one line, `::error file=a.yaml,line=2::Text`.
#[derive(Debug)]
pub(super) struct Annotation<'a> {
    /// `error`, `warning` or `notice`.
    pub(super) level: &'static str,
    /// The file, if there is one.
    pub(super) file: Option<&'a Path>,
    /// The line, and the first and the last column.
    pub(super) range: Option<(u32, u32, u32)>,
    /// The title.
    pub(super) title: &'a str,
    /// The text.
    pub(super) message: &'a str,
}

impl Display for Annotation<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "::{} ", self.level)?;
        if let Some(file) = self.file {
            write!(f, "file={},", property(&relative(file)))?;
        }
        if let Some((line, column, end)) = self.range {
            write!(f, "line={line},col={column},endColumn={end},")?;
        }
        write!(f, "title={}::{}", property(self.title), data(self.message))
    }
}

/// Returns a path as the repository names it: relative to the working directory, with slashes.
pub(super) fn relative(path: &Path) -> String {
    let here = std::env::current_dir().ok();
    let path = here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path);
    let path = path.to_string_lossy().replace('\\', "/");
    path.strip_prefix("./").unwrap_or(&path).to_owned()
}

/// Escapes the text of a command, so that none begins another one.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_begin_a_command() {
        let annotation = Annotation {
            level: "error",
            file: Some(Path::new("./a,b:c/module.yaml")),
            range: Some((3, 1, 5)),
            title: "key: unknown",
            message: "100 %\r\n::add-mask::x",
        };
        let expected = "::error file=a%2Cb%3Ac/module.yaml,line=3,col=1,endColumn=5,title=key%3A unknown::100 %25%0D%0A\
                        ::add-mask::x";
        assert_eq!(annotation.to_string(), expected);
    }
}
