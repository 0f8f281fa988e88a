//! `cargo xtask python`: the Python package as its users get it: a wheel in an environment of its own.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist::wheels::{PROGRAMS, check_programs};
use crate::project::{FEATURES, Outcome, cargo, emptied, execute, say, target_directory};
use crate::test::Extent;
use crate::{clients, test};

/// Builds the wheel.
pub(crate) const BUILDER: &[&str] = &["maturin==1.16.0"];

/// Run and check the tests.
const CHECKERS: &[&str] = &["pytest==9.2.0", "mypy==2.4.1"];

/// Run notebooks.
const NOTEBOOKS: &[&str] = &["nbclient==0.11.0", "ipykernel==7.4.0"];

/// Have objects that inputs contain, and types that answers become.
const PEERS: &[&str] = &[
    "attrs==26.1.0",
    "fastapi==0.165.0",
    "gevent==26.9.0",
    "httpx==0.28.1",
    "numpy==2.4.6",
    "pandas==3.1.1",
    "pillow==13.0.0",
    "polars==2.1.0",
    "pydantic==2.14.3",
    "tqdm==4.70.1",
    "trio==0.35.0",
    "uvicorn==0.54.0",
];

/// Run modules over tables. Daft runs on Ray up to this version.
pub(crate) const ENGINES: &[&str] = &["daft==0.7.26", "ray[data]==2.59.0"];

/// Do the same extraction as the package.
const CONTENDERS: &[&str] = &["instructor==1.17.0", "pydantic-ai-slim[openai]==2.38.0", "baml-py==0.226.3"];

/// Checks types as editors do.
const PYRIGHT: &[&str] = &["pyright@1.1.414"];

/// The package, from the root.
pub(crate) const PACKAGE: &str = "crates/cog-py";

/// Its tests, from the root.
const TESTS: &str = "crates/cog-py/tests";

/// Its examples, from the root.
const EXAMPLES: &str = "crates/cog-py/examples";

/// Copies the sources of the package and its native module to where the interpreter looks for packages.
const COPY: &str = "import shutil, sys, sysconfig\n\
     package = sysconfig.get_path('purelib') + '/cognitive'\n\
     shutil.copytree(sys.argv[1], package, ignore=shutil.ignore_patterns('__pycache__', '_cognitive.*.so'))\n\
     shutil.copy(sys.argv[2], package + '/_cognitive.abi3.so')";

/// Writes the programs of two pages into a directory, each into a file.
const EXTRACT: &str = "import pathlib, re, sys\n\
     for page in ('cookbook', 'migration'):\n\
    \x20   text = pathlib.Path(f'docs/python-{page}.md').read_text()\n\
    \x20   for number, code in enumerate(re.findall(r'```python\\n(.*?)```', text, re.DOTALL)):\n\
    \x20       pathlib.Path(sys.argv[1], f'{page}_{number}.py').write_text(code)";

/// The settings of its type checkers.
const SETTINGS: &str = "crates/cog-py/pyproject.toml";

/// Installs the package into an empty environment, and runs its tests there. With [`Extent::All`] it is the wheel that is
/// installed, and the wheel of the programs, the tests on Ray and Daft, and the types are checked too.
pub(crate) fn check(extent: Extent) -> Outcome {
    let mut packages = [CHECKERS, NOTEBOOKS, PEERS, &[test::PYARROW], test::MCP].concat();
    if extent != Extent::All {
        let interpreter = environment("python/environment", &packages)?;
        install_built(&interpreter)?;
        execute(tests(&interpreter).arg(format!("--ignore={TESTS}/test_engines.py")))?;
        say(format_args!("python: the package passes its tests"));
        return Ok(());
    }
    let wheels = emptied("python/wheels")?;
    build(&wheels, PROGRAMS, "dev")?;
    check_programs(&wheels)?;
    packages.extend(ENGINES);
    build(&wheels, PACKAGE, "dev")?;
    let interpreter = install(&wheels, "python/environment", &packages)?;
    check_types(&interpreter)?;
    execute(&mut tests(&interpreter))?;
    say(format_args!("python: the wheel passes its tests"));
    Ok(())
}

fn tests(interpreter: &Path) -> Command {
    let mut tests = Command::new(interpreter);
    tests.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", TESTS]);
    tests.env("PYTHONDONTWRITEBYTECODE", "1");
    tests
}

/// Copies the package with the native module that the workspace builds. A wheel compiles it again with fewer features: a minute.
fn install_built(interpreter: &Path) -> Outcome {
    // With `--tests`, the features of dependencies are those of the tests, and nothing is compiled again.
    execute(
        cargo().args(["build", "--workspace", "--lib", "--tests", "--locked", "--quiet"]).args(FEATURES),
    )?;
    let built = format!("{DLL_PREFIX}_cognitive{DLL_SUFFIX}");
    let built = target_directory()?.join("debug").join(built);
    let mut copy = Command::new(interpreter);
    copy.args(["-c", COPY, &format!("{PACKAGE}/python/cognitive")]).arg(built);
    execute(&mut copy)
}

/// Measures the wheel of the release profile, beside the Rust call and the packages that do the same.
pub(crate) fn bench() -> Outcome {
    let wheels = emptied("python/release")?;
    build(&wheels, PACKAGE, "release")?;
    let package = ["--package", "cog-py", "--example", "python-reference"];
    execute(cargo().args(["build", "--release", "--locked"]).args(package))?;
    execute(cargo().args(["build", "--release", "--locked", "--package", "cog-testkit"]))?;
    let interpreter = install(&wheels, "python/bench", CONTENDERS)?;
    let programs = target_directory()?.join("release");
    let mut bench = Command::new(interpreter);
    bench.arg(format!("{PACKAGE}/benches/bench.py")).arg(programs.join("cog-mock"));
    execute(bench.arg(programs.join("examples/python-reference")).arg(wheels))
}

/// Installs the wheel and other packages into an empty environment, and returns its interpreter.
fn install(wheels: &Path, name: &str, packages: &[&str]) -> Outcome<PathBuf> {
    let interpreter = environment(name, packages)?;
    let only_ours = ["-m", "pip", "install", "--quiet", "--no-index", "--find-links"];
    execute(Command::new(&interpreter).args(only_ours).arg(wheels).arg("cognitive"))?;
    Ok(interpreter)
}

/// Creates an environment with these packages, and returns its interpreter.
fn environment(name: &str, packages: &[&str]) -> Outcome<PathBuf> {
    let environment = emptied(name)?;
    execute(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    let interpreter = environment.join("bin/python");
    execute(Command::new(&interpreter).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
    Ok(interpreter)
}

/// Checks the types of the package, its tests, its examples and the programs of its pages, and that the stub has what the native
/// module has.
fn check_types(interpreter: &Path) -> Outcome {
    let programs = emptied("python/programs")?;
    execute(Command::new(interpreter).args(["-c", EXTRACT]).arg(&programs))?;
    let mut mypy = Command::new(interpreter);
    execute(mypy.args(["-m", "mypy", "--config-file", SETTINGS]).arg(&programs))?;
    let checks: [&[&str]; 3] = [
        &["mypy", "--config-file", SETTINGS, "--package", "cognitive"],
        &["mypy", "--config-file", SETTINGS, TESTS, EXAMPLES],
        &["mypy.stubtest", "--mypy-config-file", SETTINGS, "cognitive"],
    ];
    for check in checks {
        execute(Command::new(interpreter).arg("-m").args(check))?;
    }
    let pyright = clients::node(PYRIGHT)?.join("pyright/index.js");
    execute(
        Command::new("node").arg(&pyright).args(["--project", SETTINGS, "--pythonpath"]).arg(interpreter),
    )?;
    execute(Command::new("node").arg(&pyright).arg("--pythonpath").arg(interpreter).arg(programs))
}

/// Builds a wheel without the symbols of debuggers. The interpreter of the tools builds it; every later one can load it.
fn build(wheels: &Path, package: &str, profile: &str) -> Outcome {
    let interpreter = test::python(BUILDER)?;
    let mut maturin = Command::new(&interpreter);
    maturin.args(["-m", "maturin", "build", "--profile", profile, "--locked", "--compatibility", "linux"]);
    maturin.args(["--strip", "--manifest-path", &format!("{package}/Cargo.toml"), "--out"]).arg(wheels);
    execute(&mut maturin)
}
