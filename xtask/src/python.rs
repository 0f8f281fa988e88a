//! `cargo xtask python`: the Python package as its users get it: a wheel in an environment of its own.

use std::path::Path;
use std::process::Command;

use crate::project::{Outcome, emptied, execute, say};
use crate::{clients, test};

/// Builds the wheel.
const BUILDER: &[&str] = &["maturin==1.16.0"];

/// Run and check the tests.
const CHECKERS: &[&str] = &["pytest==9.2.0", "mypy==2.4.1"];

/// Run notebooks.
const NOTEBOOKS: &[&str] = &["nbclient==0.11.0", "ipykernel==7.4.0"];

/// Have objects that inputs contain, and types that answers become.
const PEERS: &[&str] = &["attrs==26.1.0", "pillow==13.0.0", "pydantic==2.14.3"];

/// Checks types as editors do.
const PYRIGHT: &[&str] = &["pyright@1.1.414"];

/// The package, from the root.
const PACKAGE: &str = "crates/cog-py";

/// Its tests, from the root.
const TESTS: &str = "crates/cog-py/tests";

/// A program that uses all of it, from the root.
const TOUR: &str = "crates/cog-py/examples/tour.py";

/// The settings of its type checkers.
const SETTINGS: &str = "crates/cog-py/pyproject.toml";

/// Builds the wheel, installs it into an empty environment, and runs its tests there.
pub(crate) fn check() -> Outcome {
    let wheels = emptied("python/wheels")?;
    build(&wheels)?;
    let environment = emptied("python/environment")?;
    execute(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let interpreter = environment.join("bin/python");
    let install = ["-m", "pip", "install", "--quiet"];
    let mut tools = Command::new(&interpreter);
    execute(tools.args(install).args(CHECKERS).args(NOTEBOOKS).args(PEERS))?;
    let only_ours = ["--no-index", "--find-links"];
    execute(Command::new(&interpreter).args(install).args(only_ours).arg(&wheels).arg("cognitive"))?;
    check_types(&interpreter)?;
    let mut tests = Command::new(&interpreter);
    tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", TESTS]);
    execute(tests.env("PYTHONDONTWRITEBYTECODE", "1"))?;
    say(format_args!("python: the wheel passes its tests"));
    Ok(())
}

/// Checks the types of the package, its tests and its example, and that the stub has what the native module has.
fn check_types(interpreter: &Path) -> Outcome {
    let check = |module: &str, arguments: &[&str]| {
        execute(Command::new(interpreter).args(["-m", module]).args(arguments))
    };
    check("mypy", &["--config-file", SETTINGS, "--package", "cognitive"])?;
    check("mypy", &["--config-file", SETTINGS, TESTS, TOUR])?;
    check("mypy.stubtest", &["--mypy-config-file", SETTINGS, "cognitive"])?;
    let pyright = clients::node(PYRIGHT)?.join("pyright/index.js");
    let mut pyright_command = Command::new("node");
    pyright_command.arg(pyright).args(["--project", SETTINGS, "--pythonpath"]).arg(interpreter);
    execute(&mut pyright_command)
}

/// Builds the wheel of the development profile. The interpreter of the tools builds it; every later one can load it.
fn build(wheels: &Path) -> Outcome {
    let interpreter = test::python(BUILDER)?;
    let mut maturin = Command::new(&interpreter);
    maturin.args(["-m", "maturin", "build", "--profile", "dev", "--locked", "--compatibility", "linux"]);
    maturin.args(["--manifest-path", &format!("{PACKAGE}/Cargo.toml"), "--out"]).arg(wheels);
    execute(&mut maturin)
}
