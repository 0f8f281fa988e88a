//! `cargo xtask dist`: what a release has for the machine that builds it, in `target/distribution/`.

pub(crate) mod bare;
pub(crate) mod wheels;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use sha2::{Digest as _, Sha256};

use crate::{
    docs,
    project::{Outcome, capture, cargo, emptied, execute, say, target_directory, write_new},
};

/// The profile in `Cargo.toml`.
const PROFILE: &str = "dist";

/// The features of the program of a release.
const FEATURES: &str = "cogn/nats";

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
    let metadata = metadata(&platform)?;
    let notices = notices(&platform, &metadata)?;
    sbom(&platform, &metadata, &directory)?;
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
    build.args(["--package", "cogn", "--bin", "cog", "--features", FEATURES]);
    execute(platform.make_static(&mut build))?;
    Ok(target_directory()?.join(platform.target).join(PROFILE).join(platform.program()))
}

/// Writes what Cargo knows about everything that is part of the program.
fn metadata(platform: &Platform) -> Outcome<PathBuf> {
    let path = emptied("dist-metadata")?.join("metadata.json");
    let mut about = cargo();
    about.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", platform.target]);
    write_new(&path, &capture(about.args(["--features", FEATURES]))?)?;
    Ok(path)
}

/// Writes the licences of everything that is part of the program.
fn notices(platform: &Platform, metadata: &Path) -> Outcome<PathBuf> {
    let notices = metadata.with_file_name("THIRD-PARTY.txt");
    let mut print = Command::new(wheels::PYTHON);
    print.args(["xtask/src/dist/notices.py", platform.target, "cogn"]).arg(metadata);
    write_new(&notices, &capture(&mut print)?)?;
    Ok(notices)
}

/// Writes the bill of materials (SBOM) of the program, in the format CycloneDX.
fn sbom(platform: &Platform, metadata: &Path, directory: &Path) -> Outcome {
    let mut print = Command::new(wheels::PYTHON);
    print
        .args(["xtask/src/dist/sbom.py", platform.target, "cogn", VERSION, commit_time()?.trim()])
        .arg(metadata);
    let name = format!("cog-{VERSION}-{}.cdx.json", platform.name);
    write_new(directory.join(name), &capture(&mut print)?)
}

/// The time of the commit, in seconds since 1970.
fn commit_time() -> Outcome<String> {
    capture(Command::new("git").args(["log", "-1", "--format=%ct"]))
}

/// Packs the programs with the README, the licences, and the pages that `cog docs` opens.
fn archive(platform: &Platform, program: &Path, notices: &Path, directory: &Path) -> Outcome {
    let name = format!("cog-{VERSION}-{}", platform.name);
    let archive = directory.join(format!("{name}.{}", platform.archive()));
    let time = commit_time()?;
    let mut pack = Command::new(wheels::PYTHON);
    pack.arg("xtask/src/dist/pack.py").arg(archive).args([&name, time.trim()]).arg(program);
    pack.args(["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"]).arg(notices);
    execute(pack.arg(format!("docs={}", docs::build()?.display())))
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

// The platforms of a release.

/// A platform for which a release has an archive.
#[derive(Debug)]
pub(crate) struct Platform {
    /// The target of the compiler.
    target: &'static str,
    /// Its name in the names of archives, and in `install.sh`.
    name: &'static str,
    /// The architecture of its image, as Docker names it.
    image: Option<&'static str>,
}

const PLATFORMS: [Platform; 5] = [
    Platform { target: "x86_64-unknown-linux-gnu", name: "linux-x86_64", image: Some("amd64") },
    Platform { target: "aarch64-unknown-linux-gnu", name: "linux-arm64", image: Some("arm64") },
    Platform { target: "x86_64-apple-darwin", name: "macos-x86_64", image: None },
    Platform { target: "aarch64-apple-darwin", name: "macos-arm64", image: None },
    Platform { target: "x86_64-pc-windows-msvc", name: "windows-x86_64", image: None },
];

impl Platform {
    /// That of the compiler.
    fn host() -> Outcome<Self> {
        let about = capture(Command::new("rustc").arg("-vV"))?;
        let host = about.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or("rustc names no host")?;
        let platform = PLATFORMS.into_iter().find(|platform| platform.target == host);
        platform.ok_or_else(|| {
            format!(
                "a release has nothing for {host}, only for {}",
                PLATFORMS.map(|one| one.target).join(", ")
            )
        })
    }

    fn is_linux(&self) -> bool {
        self.target.contains("linux")
    }

    /// Has the C library linked into the binary.
    fn make_static<'a>(&self, build: &'a mut Command) -> &'a mut Command {
        let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", self.target.to_uppercase().replace('-', "_"));
        build.env(variable, self.flags().join(" "))
    }

    fn flags(&self) -> &'static [&'static str] {
        const STATIC: &str = "-Ctarget-feature=+crt-static";
        // By default, the crate looks for this function among the shared libraries, and needs /dev/urandom without them.
        const RANDOM: &str = r#"--cfg=getrandom_backend="linux_getrandom""#;
        // Linux on x86-64 is linked with LLD: it packs relative relocations, and keeps one of equal functions.
        const PACKED: &str = "-Clink-args=-Wl,-z,pack-relative-relocs,--icf=all";
        if self.target == "x86_64-unknown-linux-gnu" {
            &[STATIC, RANDOM, PACKED]
        } else if self.is_linux() {
            &[STATIC, RANDOM]
        } else if self.is_windows() {
            &[STATIC]
        } else {
            // The libraries of macOS cannot be linked into a program.
            &[]
        }
    }

    /// The file name of the program.
    fn program(&self) -> &'static str {
        if self.is_windows() { "cog.exe" } else { "cog" }
    }

    /// The file extension of its archive.
    fn archive(&self) -> &'static str {
        if self.is_windows() { "zip" } else { "tar.gz" }
    }

    fn is_windows(&self) -> bool {
        self.target.contains("windows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::read;

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
    fn bill_of_materials_names_what_is_part_of_the_program() {
        let [linux, ..] = &PLATFORMS;
        let directory = tempfile::tempdir().unwrap();
        sbom(linux, &metadata(linux).unwrap(), directory.path()).unwrap();
        let bom = read(directory.path().join(format!("cog-{VERSION}-linux-x86_64.cdx.json"))).unwrap();
        let bom: serde_json::Value = serde_json::from_str(&bom).unwrap();
        assert_eq!((&bom["bomFormat"], &bom["specVersion"]), (&"CycloneDX".into(), &"1.6".into()));
        let components = bom["components"].as_array().unwrap();
        let has = |name: &str| components.iter().any(|component| component["name"] == name);
        // A feature of releases, and the C library; but no macro, and nothing that only tests use.
        assert!(has("async-nats") && has("glibc") && !has("serde_derive") && !has("insta"));
        for component in components {
            assert!(component["licenses"].is_array(), "{component}");
        }
    }

    #[test]
    fn what_is_larger_than_its_limit_fails() {
        assert_eq!(within("the image", 10, 10), Ok(()));
        assert_eq!(within("the image", 11, 10), Err("the image has 11 bytes, more than 10".to_owned()));
    }

    #[test]
    fn script_and_workflow_know_the_platforms() {
        let (script, workflow) =
            (read("install.sh").unwrap(), read(".github/workflows/release.yml").unwrap());
        for platform in PLATFORMS {
            assert!(workflow.contains(platform.target), "{}", platform.target);
            assert_eq!(script.contains(&format!("echo {} ;;", platform.name)), !platform.is_windows());
        }
    }

    #[test]
    fn flags_of_the_compiler_depend_on_the_platform() {
        let flags = |platform: &Platform| {
            let mut command = Command::new("cargo");
            let mut variables = platform.make_static(&mut command).get_envs();
            let (name, value) = variables.next().unwrap();
            format!("{}={}", name.display(), value.unwrap().display())
        };
        let [linux, arm, macos, ..] = &PLATFORMS;
        let random = r#"--cfg=getrandom_backend="linux_getrandom""#;
        let packed = "-Clink-args=-Wl,-z,pack-relative-relocs,--icf=all";
        assert_eq!(
            flags(linux),
            format!(
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+crt-static {random} {packed}"
            )
        );
        assert_eq!(
            flags(arm),
            format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+crt-static {random}")
        );
        assert_eq!(flags(macos), "CARGO_TARGET_X86_64_APPLE_DARWIN_RUSTFLAGS=");
    }
}
