//! `cargo xtask dist`: what a release has for the machine that builds it, in `target/distribution/`.

pub(crate) mod bare;
mod platform;
pub(crate) mod wheels;

use std::path::{Path, PathBuf};
use std::process::Command;

use platform::Platform;
use sha2::{Digest as _, Sha256};

use crate::project::{Outcome, capture, cargo, emptied, execute, say, target_directory, write_new};

/// The profile in `Cargo.toml`.
const PROFILE: &str = "dist";

/// The version of every package.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The largest image, in bytes.
const IMAGE: u64 = 40_000_000;

/// The largest wheel of the Python package, in bytes.
const WHEEL: u64 = 15_000_000;

/// The certificates of public authorities, which the image contains beside the program. They have about this many bytes.
const CERTIFICATES: u64 = 250_000;

/// Builds and checks the binaries, their archive, what the image needs, and the wheels.
pub(crate) fn run() -> Outcome {
    let platform = Platform::host()?;
    // Not `dist`, where Cargo has what it compiles with the profile of this name.
    let directory = emptied("distribution")?;
    let program = build(&platform)?;
    bare::start(&platform, &program)?;
    let notices = notices(&platform)?;
    image(&platform, &program, &notices, &directory)?;
    wheels::build(&platform, &directory)?;
    archive(&platform, &program, &notices, &directory)?;
    let sums = checksums(&directory)?;
    say(format_args!("dist: {} has\n{sums}", directory.display()));
    Ok(())
}

/// Builds the binary. `cogn` is a second name of the same program.
fn build(platform: &Platform) -> Outcome<PathBuf> {
    let mut build = cargo();
    build.args(["build", "--locked", "--profile", PROFILE, "--target", platform.target]);
    build.args(["--package", "cogn", "--bin", "cog", "--features", "nats"]);
    execute(platform.make_static(&mut build))?;
    Ok(target_directory()?.join(platform.target).join(PROFILE).join(platform.program()))
}

/// Writes the licences of everything that is part of the program.
fn notices(platform: &Platform) -> Outcome<PathBuf> {
    let directory = emptied("dist-notices")?;
    let metadata = directory.join("metadata.json");
    let notices = directory.join("THIRD-PARTY.txt");
    let about = ["metadata", "--format-version", "1", "--locked", "--filter-platform", platform.target];
    write_new(&metadata, &capture(cargo().args(about))?)?;
    let mut print = Command::new(wheels::PYTHON);
    print.args(["xtask/src/dist/notices.py", platform.target, "cogn"]).arg(metadata);
    write_new(&notices, &capture(&mut print)?)?;
    Ok(notices)
}

/// Packs the programs with the README and the licences.
fn archive(platform: &Platform, program: &Path, notices: &Path, directory: &Path) -> Outcome {
    let name = format!("cog-{VERSION}-{}", platform.name);
    let archive = directory.join(format!("{name}.{}", platform.archive()));
    let time = capture(Command::new("git").args(["log", "-1", "--format=%ct"]))?;
    let mut pack = Command::new(wheels::PYTHON);
    pack.arg("xtask/src/dist/pack.py").arg(archive).args([&name, time.trim()]).arg(program);
    execute(pack.args(["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]).arg(notices))
}

/// Copies the program and the licences to where the Dockerfile expects them.
fn image(platform: &Platform, program: &Path, notices: &Path, directory: &Path) -> Outcome {
    let Some(architecture) = platform.image else { return Ok(()) };
    let place = directory.join("image").join(architecture);
    let copy = place.join("THIRD-PARTY.txt");
    std::fs::create_dir_all(&place)
        .and_then(|()| std::fs::copy(program, place.join("cog")))
        .and_then(|_| std::fs::copy(notices, &copy))
        .map_err(|error| format!("{}: {error}", place.display()))?;
    execute(Command::new("gzip").args(["--best", "--no-name"]).arg(&copy))?;
    let notices = size(&place.join("THIRD-PARTY.txt.gz"))?;
    within("the image", size(program)? + notices + CERTIFICATES, IMAGE)
}

/// Writes SHA256SUMS, and returns its lines with the sizes.
fn checksums(directory: &Path) -> Outcome<String> {
    let mut sums = String::new();
    let mut sizes = String::new();
    for path in files(directory)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        sums.push_str(&format!("{}  {name}\n", sha256(&path)?));
        sizes.push_str(&format!("{:>12} bytes  {name}\n", size(&path)?));
    }
    write_new(directory.join("SHA256SUMS"), &sums)?;
    Ok(sizes)
}

/// The files of a directory, sorted.
fn files(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let listed = std::fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut files: Vec<_> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

#[expect(
    clippy::disallowed_methods,
    reason = "chores read the files of this workspace, which have no limits"
)]
fn sha256(path: &Path) -> Outcome<String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

fn size(path: &Path) -> Outcome<u64> {
    let metadata = std::fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(metadata.len())
}

/// Fails if something is larger than its limit.
fn within(what: &str, bytes: u64, limit: u64) -> Outcome {
    say(format_args!("dist: {what} has {bytes} bytes (limit {limit})"));
    if bytes <= limit { Ok(()) } else { Err(format!("{what} has {bytes} bytes, more than {limit}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_have_the_form_of_sha256sum() {
        let directory = tempfile::tempdir().unwrap();
        write_new(directory.path().join("b.whl"), "hello\n").unwrap();
        write_new(directory.path().join("a.zip"), "").unwrap();
        let sizes = checksums(directory.path()).unwrap();
        assert_eq!(sizes, "           0 bytes  a.zip\n           6 bytes  b.whl\n");
        let sums = crate::project::read(directory.path().join("SHA256SUMS")).unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a.zip\n";
        let hello = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03  b.whl\n";
        assert_eq!(sums, format!("{empty}{hello}"));
    }

    #[test]
    fn what_is_larger_than_its_limit_fails() {
        assert_eq!(within("the image", 10, 10), Ok(()));
        assert_eq!(within("the image", 11, 10), Err("the image has 11 bytes, more than 10".to_owned()));
    }
}
