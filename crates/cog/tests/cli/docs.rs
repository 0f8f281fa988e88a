//! `cog docs`, with the pages where a release has them.

#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::support::{stderr, stdout};

/// The directory of the pages, as a release names it.
const NAMED: &str = concat!("cog/cog-", env!("CARGO_PKG_VERSION"), "-docs");

/// A program in `bin`, and the home directory of a user. The program is another name of the one that is tested: pages that were
/// built in this clone are not next to it.
struct Installed {
    directory: TempDir,
}

impl Installed {
    fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        std::fs::create_dir(directory.path().join("bin")).unwrap();
        std::fs::hard_link(env!("CARGO_BIN_EXE_cog"), directory.path().join("bin/cog")).unwrap();
        Self { directory }
    }

    /// Puts pages into a directory.
    fn with(self, directory: &str, pages: &[&str]) -> Self {
        for page in pages.iter().chain(&["index.html"]) {
            let path = self.path(directory).join(page);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "<h1>A page</h1>").unwrap();
        }
        self
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(path)
    }

    fn cog(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.path("bin/cog"));
        command.args(args).env_clear().env("HOME", self.path("home"));
        command
    }

    fn docs(&self, args: &[&str]) -> Output {
        self.cog(&[&["docs"], args].concat()).output().unwrap()
    }
}

fn line(path: &Path) -> String {
    format!("{}\n", path.display())
}

#[test]
fn pages_are_found_where_a_release_or_a_user_puts_them() {
    let share = format!("share/{NAMED}");
    let own = format!("home/.local/share/{NAMED}");
    for place in ["bin/docs", &share, &own, "docs/book"] {
        let installed = Installed::new().with(place, &[]);
        let output = installed.docs(&[]);
        assert_eq!(stdout(&output), line(&installed.path(place).join("index.html")), "{}", stderr(&output));
    }
    let installed = Installed::new().with(&format!("data/{NAMED}"), &[]);
    let output = installed.cog(&["docs"]).env("XDG_DATA_HOME", installed.path("data")).output().unwrap();
    assert_eq!(stdout(&output), line(&installed.path("data").join(NAMED).join("index.html")));
}

#[test]
fn missing_pages_are_an_error_that_says_where_to_put_them() {
    let installed = Installed::new().with("home/.local/share/cog/cog-0.0.1-docs", &[]);
    let output = installed.docs(&[]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("the documentation is not installed"), "{text}");
    assert!(text.contains(&installed.path("home/.local/share/cog").display().to_string()), "{text}");
}

#[test]
fn pages_have_the_names_of_their_files_and_commands() {
    let pages = [
        "testing.html",
        "batch.html",
        "cli/batch.html",
        "cli/run.html",
        "spec/index.html",
        "project/SECURITY.html",
    ];
    let installed = Installed::new().with("bin/docs", &pages);
    for (name, page) in [
        ("testing", "testing.html"),
        ("docs/testing.md", "testing.html"),
        ("Testing.html", "testing.html"),
        ("batch", "batch.html"),
        ("cli/batch", "cli/batch.html"),
        ("run", "cli/run.html"),
        ("spec", "spec/index.html"),
        ("security", "project/SECURITY.html"),
    ] {
        let output = installed.docs(&["--path", name]);
        assert_eq!(
            stdout(&output),
            line(&installed.path("bin/docs").join(page)),
            "{name}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn unknown_page_names_the_nearest() {
    let installed = Installed::new().with("bin/docs", &["testing.html", "cli/run.html"]);
    for (name, help) in [
        ("tesing", "Did you mean `testing`?"),
        ("cli/rnu", "Did you mean `cli/run`?"),
        ("../../etc/passwd", "`cog docs` opens the list of all pages."),
        ("billing", "`cog docs` opens the list of all pages."),
    ] {
        let output = installed.docs(&[name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(help), "{name}: {}", stderr(&output));
    }
}

#[test]
fn browser_opens_the_page_and_gets_no_key() {
    let installed = Installed::new().with("bin/docs", &["testing.html"]);
    let browser = installed.path("browser");
    let script = format!("#!/bin/sh\necho \"$@ $OPENAI_API_KEY\" > {}\n", installed.path("opened").display());
    std::fs::write(&browser, script).unwrap();
    std::fs::set_permissions(&browser, PermissionsExt::from_mode(0o755)).unwrap();
    let page = installed.path("bin/docs/testing.html");
    for (variable, arguments) in [
        ("BROWSER:other", format!("{} \n", page.display())),
        ("BROWSER --new %s", format!("--new {} \n", page.display())),
    ] {
        let variable = variable.replace("BROWSER", &browser.display().to_string());
        let mut command = installed.cog(&["docs", "testing"]);
        let output = command.env("BROWSER", variable).env("OPENAI_API_KEY", "sk-canary").output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), String::new()), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(installed.path("opened")).unwrap(), arguments);
    }
}

#[test]
fn path_is_printed_if_the_browser_does_not_start() {
    let installed = Installed::new().with("bin/docs", &[]);
    let output = installed.cog(&["docs"]).env("BROWSER", "/no/such/browser").output().unwrap();
    assert_eq!(stdout(&output), line(&installed.path("bin/docs/index.html")));
    assert_eq!(stderr(&output), "note: the browser could not be started\n");
}
