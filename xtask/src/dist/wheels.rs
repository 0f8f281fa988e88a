//! The wheels of a release: the Python package, and one that has only the programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Platform;
use super::{PROFILE, VERSION, WHEEL, files, size, within};
use crate::project::{Outcome, capture, emptied, execute, say};
use crate::python::{BUILDER, PACKAGE};

/// Links the wheel of Linux against an old glibc, so that it loads on machines that have a later one.
const LINKER: &str = "ziglang==0.15.2";

/// Changes the tags of a wheel.
const TAGS: &str = "wheel==0.48.0";

/// The oldest Linux on which both wheels work: that of glibc 2.17.
const OLDEST: [&str; 2] = ["--compatibility", "manylinux2014"];

/// The package of the programs.
pub(crate) const PROGRAMS: &str = "crates/cog";

/// An interpreter without a global lock. It cannot load the wheel of the others.
const FREE_THREADED: &str = "python3.14t";

/// The interpreter of the machine.
pub(super) const PYTHON: &str = if cfg!(windows) { "python" } else { "python3" };

/// Where an environment has its programs.
const BIN: &str = if cfg!(windows) { "Scripts" } else { "bin" };

/// What a user runs first.
const FIRST: &str = "from cognitive import CognitiveRuntime\n\
     result = CognitiveRuntime(provider='offline').execute('code-reviewer', {'code': 'eval(input())'})\n\
     print(type(result.raise_for_error().data['verdict']).__name__)";

/// Builds the wheels into the directory, installs each into an empty environment, and uses it there.
pub(super) fn build(platform: &Platform, directory: &Path) -> Outcome {
    let builder = environment("dist-builder", PYTHON)?;
    pip(&builder, &[BUILDER, &[LINKER, TAGS]].concat())?;
    execute(platform.make_static(&mut maturin(&builder, platform, PROGRAMS, directory)))?;
    add_musl(&builder, platform, directory)?;
    check_programs(directory)?;
    build_package(&builder, platform, directory, PYTHON)?;
    if Command::new(FREE_THREADED).arg("--version").output().is_ok() {
        return build_package(&builder, platform, directory, FREE_THREADED);
    }
    say(format_args!("dist: without {FREE_THREADED}, there is no wheel for free-threaded Python"));
    Ok(())
}

/// Builds the wheel of the Python package for one interpreter, and checks it.
fn build_package(builder: &Path, platform: &Platform, directory: &Path, interpreter: &str) -> Outcome {
    let mut build = maturin(builder, platform, PACKAGE, directory);
    build.args(platform.is_linux().then_some("--zig"));
    // maturin looks for zig in this environment.
    build.env("CARGO_ZIGBUILD_PYTHON_PATH", builder.join("python"));
    execute(build.args(["--interpreter", interpreter]))?;
    check_package(directory, interpreter)
}

/// Builds a wheel of a package.
fn maturin(builder: &Path, platform: &Platform, package: &str, directory: &Path) -> Command {
    let mut maturin = Command::new(builder.join("python"));
    maturin.args(["-m", "maturin", "build", "--locked", "--profile", PROFILE, "--target", platform.target]);
    maturin.args(["--manifest-path", &format!("{package}/Cargo.toml"), "--out"]).arg(directory);
    // The tags of other systems follow from the target.
    maturin.args(platform.is_linux().then_some(OLDEST).into_iter().flatten());
    maturin
}

/// Adds the tag of musl to the wheel of the static programs. maturin sets no tag of another C library than that of the target.
fn add_musl(builder: &Path, platform: &Platform, directory: &Path) -> Outcome {
    if !platform.is_linux() {
        return Ok(());
    }
    let architecture = platform.target.split('-').next().unwrap_or_default();
    let tag = format!("+musllinux_1_1_{architecture}");
    let wheels = files(directory)?.into_iter().filter(|path| name(path).starts_with("cognitive_cli-"));
    let mut tags = Command::new(builder.join("python"));
    execute(tags.args(["-m", "wheel", "tags", "--remove", "--platform-tag", &tag]).args(wheels))
}

/// The programs start.
pub(crate) fn check_programs(directory: &Path) -> Outcome {
    let programs = environment("dist-programs", PYTHON)?;
    install(&programs, directory, "cognitive-cli")?;
    for name in ["cog", "cogn"] {
        let version = capture(Command::new(programs.join(name)).arg("--version"))?;
        if version.trim() != format!("cog {VERSION}") {
            return Err(format!("{name} of the wheel says {version:?}"));
        }
    }
    Ok(())
}

/// A program in Python runs a module, and the wheels are not too large.
fn check_package(directory: &Path, interpreter: &str) -> Outcome {
    let package = environment("dist-package", interpreter)?;
    install(&package, directory, "cognitive")?;
    let printed = capture(Command::new(package.join("python")).args(["-c", FIRST]))?;
    if printed.trim() != "str" {
        return Err(format!("the wheel has no answer: {printed:?}"));
    }
    let wheels = files(directory)?.into_iter().filter(|path| name(path).starts_with("cognitive-"));
    wheels.into_iter().try_for_each(|wheel| within(&name(&wheel), size(&wheel)?, WHEEL))
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Creates an empty environment, and returns the directory of its programs.
fn environment(name: &str, interpreter: &str) -> Outcome<PathBuf> {
    let environment = emptied(&format!("python/{name}"))?;
    execute(Command::new(interpreter).args(["-m", "venv"]).arg(&environment))?;
    Ok(environment.join(BIN))
}

fn install(environment: &Path, wheels: &Path, package: &str) -> Outcome {
    let wheels = wheels.to_string_lossy();
    pip(environment, &["--no-index", "--find-links", &wheels, package])
}

fn pip(environment: &Path, arguments: &[&str]) -> Outcome {
    let mut pip = Command::new(environment.join("python"));
    execute(pip.args(["-m", "pip", "install", "--quiet"]).args(arguments))
}
