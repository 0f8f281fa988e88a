//! Other people's programs that the tests speak with.

use std::io::ErrorKind;
use std::process::Command;

use crate::project::{Outcome, execute, say};
use crate::test::Extent;

/// Each program that `cargo xtask test` needs, and the Debian package that holds it.
const TOOLS: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("compare", "imagemagick"),
    ("curl", "curl"),
    ("exiftool", "libimage-exiftool-perl"),
    ("ffmpeg", "ffmpeg"),
    ("fish", "fish"),
    ("git", "git"),
    ("jq", "jq"),
    ("man", "man-db"),
    ("pdftoppm", "poppler-utils"),
    ("pdftotext", "poppler-utils"),
    ("python3", "python3-venv"),
    ("script", "bsdutils"),
    ("wget", "wget"),
    ("zsh", "zsh"),
];

/// What `cargo xtask test --all` needs too: a browser, and Node.
const LARGE_TOOLS: &[(&str, &str)] =
    &[("chromedriver", "chromium-driver"), ("chromium", "chromium"), ("node", "nodejs"), ("npm", "npm")];

/// Installs missing packages with `apt-get` if that is possible; otherwise lists them.
pub(crate) fn install(extent: Extent) -> Outcome {
    let large = if extent == Extent::All { LARGE_TOOLS } else { &[] };
    let missing: Vec<_> = TOOLS.iter().chain(large).filter(|(program, _)| is_missing(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let programs: Vec<_> = missing.iter().map(|(program, _)| *program).collect();
    let packages: Vec<_> = missing.iter().map(|(_, package)| *package).collect();
    say(format_args!("test: installing {}", packages.join(" ")));
    let install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends"];
    let update = ["apt-get", "update", "--quiet"];
    as_root(&update).and_then(|()| as_root(&[&install, packages.as_slice()].concat())).map_err(|reason| {
        let programs = programs.join(", ");
        let packages = packages.join(" ");
        format!("{reason}\nthe tests need {programs}; install them (Debian: apt-get install {packages})")
    })
}

fn is_missing(program: &str) -> bool {
    let tried = Command::new(program).arg("--version").output();
    tried.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Runs a command as root: directly, or with `sudo` if it needs no password.
fn as_root(command: &[&str]) -> Outcome {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    execute(Command::new(program).args(arguments))
        .or_else(|_| execute(Command::new("sudo").arg("--non-interactive").args(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_missing() {
        assert!(is_missing("no-program-has-this-name"));
        assert!(!is_missing("cargo"));
    }
}
