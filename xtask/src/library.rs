//! The library as its users get it: each set of features, the packages, a program outside the workspace.

use std::path::Path;

use crate::project::{Outcome, capture, cargo, execute, read, root, say, target_directory};

/// The libraries with features of their own, with their features.
const FEATURES: [(&str, &[&str]); 3] = [
    ("cog-run", &["media", "offline", "providers", "tokenizers"]),
    ("cog-batch", &["arrow", "nats"]),
    ("cog-host", &["mcp", "server"]),
];

/// What the program outside the workspace prints.
const EXPECTED: &str = "billing\nwritten\n";

/// The packages that are not published.
const UNPUBLISHED: [&str; 3] = ["cog-py", "cog-testkit", "xtask"];

/// Compiles each library with each set of its features.
pub(crate) fn features() -> Outcome {
    FEATURES.iter().try_for_each(|(package, features)| compile_sets(package, features))
}

fn compile_sets(package: &str, features: &[&str]) -> Outcome {
    for set in 0..1_u32 << features.len() {
        let chosen: Vec<&str> = features
            .iter()
            .enumerate()
            .filter_map(|(bit, feature)| (set >> bit & 1 == 1).then_some(*feature))
            .collect();
        let chosen = chosen.join(",");
        let arguments = ["check", "--quiet", "--locked", "--package", package, "--no-default-features"];
        execute(cargo().args(arguments).args(["--features", &chosen]))?;
    }
    say(format_args!("features: {package} compiles with each of {} sets", 1 << features.len()));
    Ok(())
}

/// Compiles and runs a program that uses cog-run by its path, in a directory outside the workspace.
pub(crate) fn outside() -> Outcome {
    let directory = std::env::temp_dir().join(format!("cog-outside-{}", std::process::id()));
    let written = write_program(&directory).map_err(|error| format!("{}: {error}", directory.display()));
    let printed = written.and_then(|()| run_program(&directory));
    let _ = std::fs::remove_dir_all(&directory);
    match printed? {
        printed if printed == EXPECTED => {
            say(format_args!("outside: the program printed {EXPECTED:?}"));
            Ok(())
        }
        printed => Err(format!("the program outside the workspace printed {printed:?}, not {EXPECTED:?}")),
    }
}

#[expect(clippy::disallowed_methods, reason = "the program is written to a temporary directory")]
fn write_program(directory: &Path) -> std::io::Result<()> {
    let source = directory.join("src");
    std::fs::create_dir_all(&source)?;
    let library = root().join("crates/cog-run");
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         cog-run = {{ path = {library:?} }}\nserde = {{ version = \"1\", features = [\"derive\"] }}\nserde_json = \"1\"\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt\"] }}\n"
    );
    std::fs::write(directory.join("Cargo.toml"), manifest)?;
    std::fs::copy(root().join("Cargo.lock"), directory.join("Cargo.lock"))?;
    let copy = |file| std::fs::copy(root().join("examples/outside").join(file), source.join(file)).map(drop);
    copy("modules.rs").and_then(|()| copy("main.rs"))
}

fn run_program(directory: &Path) -> Outcome<String> {
    let manifest = directory.join("Cargo.toml").display().to_string();
    let target = target_directory()?;
    capture(cargo().args(["run", "--quiet", "--manifest-path", &manifest, "--target-dir"]).arg(target))
}

/// Packages every crate that is published, and builds each package as its users get it.
///
/// All packages share one build directory, so that each dependency is compiled once. It is a new one in each run: Cargo
/// stores the sources of a package by the path of this directory, and would build the others against older ones.
pub(crate) fn package() -> Outcome {
    let target = target_directory()?;
    let directory = tempfile::Builder::new().prefix("packages-").tempdir_in(&target);
    let directory = directory.map_err(|error| format!("{}: {error}", target.display()))?;
    let excluded = UNPUBLISHED.iter().flat_map(|name| ["--exclude", name]);
    let mut package = cargo();
    package.args(["package", "--workspace", "--allow-dirty", "--quiet"]).args(excluded);
    execute(package.env("CARGO_TARGET_DIR", directory.path()))
}

/// Compares the public interface of cog-run with the version that was published last.
pub(crate) fn semver() -> Outcome {
    let version =
        |line: &str| line.strip_prefix("version = ").map(|version| version.trim_matches('"').to_owned());
    let version = read("Cargo.toml")?.lines().find_map(version).unwrap_or_default();
    // Outside the workspace, where `cargo info` does not take the crate of that name in it.
    let mut info = cargo();
    info.args(["info", "--quiet", "cog-run"]).current_dir(std::env::temp_dir());
    let found = info.output().map_err(|error| error.to_string())?;
    let message = String::from_utf8_lossy(&found.stderr);
    if message.contains("could not find `cog-run`") {
        say(format_args!("semver: no version of cog-run is published yet; {version} will be the first"));
        return Ok(());
    }
    if !found.status.success() {
        return Err(format!("the registry cannot be read: {message}"));
    }
    execute(cargo().args(["semver-checks", "--package", "cog-run"]))
}
