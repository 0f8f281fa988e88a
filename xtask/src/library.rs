//! The library as its users get it: each set of features, the packages, a program outside the workspace.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::project::{
    Outcome, capture, cargo, emptied, execute, read, root, say, target_directory, write_new,
};

/// The sets of features that are compiled for each change, in addition to the one of the tests: cog-run and the program with
/// none, and the program with its defaults.
const CHECKS: [&[&str]; 3] = [
    &["--package", "cog-run", "--no-default-features"],
    &["--package", "cogn", "--package", "cog-host", "--package", "cog-batch", "--no-default-features"],
    &["--package", "cogn"],
];

/// The features of cog-run, the public library, that `cargo xtask test --all` compiles alone.
const ALONE: [&str; 4] = ["media", "offline", "providers", "tokenizers"];

/// What the program outside the workspace prints.
const EXPECTED: &str = "billing\nwritten\n";

/// The packages that are not published.
const UNPUBLISHED: [&str; 2] = ["cog-py", "xtask"];

/// The page with the number of crates for each feature of cog-run.
const COUNTS: &str = "crates/cog-run/README.md";

/// Compiles the sets of features, and compares the numbers of crates with the page that lists them.
pub(crate) fn features() -> Outcome {
    for set in CHECKS {
        execute(cargo().args(["check", "--quiet", "--locked"]).args(set))?;
    }
    let rows = counted_features(&read(COUNTS)?);
    if rows.is_empty() {
        return Err(format!("{COUNTS}: no row of a feature with its number of crates"));
    }
    for (feature, listed) in rows {
        let counted = count_crates(&feature)?;
        if counted != listed {
            return Err(format!("{COUNTS}: `{feature}` lists {listed} crates; the tree has {counted}"));
        }
    }
    say(format_args!("features: the numbers of crates are those of {COUNTS}"));
    Ok(())
}

/// Returns the rows of the table of features that end with a number: the feature and the number.
fn counted_features(page: &str) -> Vec<(String, usize)> {
    page.lines().filter_map(counted_feature).collect()
}

fn counted_feature(line: &str) -> Option<(String, usize)> {
    let mut cells = line.strip_prefix('|')?.trim_end().strip_suffix('|')?.split('|');
    let feature = cells.next()?.trim().trim_matches('`').to_owned();
    Some((feature, cells.next_back()?.trim().parse().ok()?))
}

/// Returns the number of crates that cog-run and its dependencies are with one feature, `none` or `default`.
fn count_crates(feature: &str) -> Outcome<usize> {
    let mut tree = cargo();
    tree.args(["tree", "--package", "cog-run", "--locked", "--edges", "normal", "--prefix", "none"]);
    match feature {
        "default" => {}
        "none" => drop(tree.arg("--no-default-features")),
        feature => drop(tree.args(["--no-default-features", "--features", feature])),
    }
    let printed = capture(&mut tree)?;
    let crates: BTreeSet<&str> = printed.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    Ok(crates.len())
}

/// Compiles cog-run with each feature alone.
pub(crate) fn each_feature() -> Outcome {
    for feature in ALONE {
        let alone = ["--package", "cog-run", "--no-default-features", "--features", feature];
        execute(cargo().args(["check", "--quiet", "--locked"]).args(alone))?;
    }
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
    for file in ["modules.rs", "main.rs"] {
        std::fs::copy(root().join("examples/outside").join(file), source.join(file))?;
    }
    Ok(())
}

fn run_program(directory: &Path) -> Outcome<String> {
    let manifest = directory.join("Cargo.toml").display().to_string();
    let target = target_directory()?;
    capture(cargo().args(["run", "--quiet", "--manifest-path", &manifest, "--target-dir"]).arg(target))
}

/// Packages every crate that is published, and checks that the packages compile, with the files that they contain.
///
/// The packages form a workspace of their own, with our versions of the dependencies and our profiles: so each
/// dependency that is already compiled is used again.
pub(crate) fn package() -> Outcome {
    let archives = emptied("package")?;
    let excluded = UNPUBLISHED.iter().flat_map(|name| ["--exclude", name]);
    let pack = ["package", "--workspace", "--allow-dirty", "--no-verify", "--quiet"];
    execute(cargo().args(pack).args(excluded))?;
    let directory = emptied("packages")?;
    let packages = unpack(&archives, &directory)?;
    write_workspace(&packages, &directory)?;
    let mut check = cargo();
    check.args(["check", "--quiet", "--workspace", "--manifest-path"]).arg(directory.join("Cargo.toml"));
    execute(check.arg("--target-dir").arg(target_directory()?))?;
    say(format_args!("package: {} packages compile", packages.len()));
    Ok(())
}

/// A package, such as `cog-run-0.1.0`.
struct Package(String);

impl Package {
    fn name(&self) -> &str {
        self.0.rsplit_once('-').map_or(&self.0, |(name, _)| name)
    }
}

/// Unpacks the archives that Cargo has made.
fn unpack(archives: &Path, directory: &Path) -> Outcome<Vec<Package>> {
    let listed = std::fs::read_dir(archives).map_err(|error| format!("{}: {error}", archives.display()))?;
    std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut packages = Vec::new();
    for entry in listed.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "crate") {
            execute(Command::new("tar").arg("-xzf").arg(&path).arg("-C").arg(directory))?;
            packages.extend(path.file_stem().map(|name| Package(name.to_string_lossy().into_owned())));
        }
    }
    packages.sort_by(|one, other| one.0.cmp(&other.0));
    if packages.is_empty() { Err("cargo made no package".to_owned()) } else { Ok(packages) }
}

/// Writes the manifest of the workspace whose members are the packages.
fn write_workspace(packages: &[Package], directory: &Path) -> Outcome {
    let ours = read("Cargo.toml")?;
    let profiles = ours.find("[profile.dev]").zip(ours.find("[profile.release]"));
    let profile = profiles.and_then(|(start, end)| ours.get(start..end)).unwrap_or_default();
    let mut patches = String::new();
    for package in packages {
        let _ = writeln!(patches, "{} = {{ path = {:?} }}", package.name(), package.0);
    }
    let workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n";
    write_new(
        directory.join("Cargo.toml"),
        &format!("{workspace}\n[patch.crates-io]\n{patches}\n{profile}"),
    )?;
    write_new(directory.join("Cargo.lock"), &read("Cargo.lock")?)
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
