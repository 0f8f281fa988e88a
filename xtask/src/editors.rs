//! `cargo xtask editors`: the extension for Visual Studio Code, tested in Node and packaged.

use std::process::Command;

use crate::project::{Outcome, cargo, emptied, execute, root, say, target_directory};

/// The program that packages an extension.
const VSCE: &str = "@vscode/vsce@3.6.0";

/// Tests the extension with the `cog` of this tree, and writes its package.
pub(crate) fn check() -> Outcome {
    let extension = root().join("editors/vscode");
    execute(cargo().args(["build", "--locked", "-p", "cogn", "--bin", "cog"]))?;
    let program = target_directory()?.join("debug/cog");
    execute(Command::new("node").args(["--test", "test/"]).env("COG", program).current_dir(&extension))?;
    // What the package contains is installed there, and not in the sources.
    let staged = emptied("tmp/vscode")?;
    std::fs::create_dir_all(&staged).map_err(|error| format!("{}: {error}", staged.display()))?;
    for name in ["package.json", "extension.js", "README.md", ".vscodeignore"] {
        execute(Command::new("cp").arg(extension.join(name)).arg(&staged))?;
    }
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        execute(Command::new("cp").arg(root().join(license)).arg(&staged))?;
    }
    execute(
        Command::new("npm").args(["install", "--omit=dev", "--no-audit", "--no-fund"]).current_dir(&staged),
    )?;
    let package = staged.join("cognitive-modules.vsix");
    let mut vsce = Command::new("npm");
    vsce.args([
        "exec",
        "--yes",
        "--package",
        VSCE,
        "--",
        "vsce",
        "package",
        "--skip-license",
        "--allow-missing-repository",
    ]);
    execute(vsce.arg("--out").arg(&package).current_dir(&staged))?;
    say(format_args!("editors: {}", package.display()));
    Ok(())
}
