//! Our parser beside those of other projects, on the replies of `conformance/replies`.

use std::process::Command;

use crate::clients::node;
use crate::project::{Outcome, execute, programs, root};
use crate::test;
use crate::test::{Extent, python};

/// The parsers of json-repair and BAML; BAML's needs pydantic.
const PYTHON: &[&str] = &["json-repair==0.64.6", "baml-py==0.226.3", "pydantic==2.14.3"];
/// The parser of jsonrepair.
const NODE: &[&str] = &["jsonrepair@3.15.0"];

/// Prints how many replies each parser reads, and fails if cog reads one wrongly.
pub(crate) fn compare() -> Outcome {
    test::install(Extent::All)?;
    let interpreter = python(PYTHON)?;
    let modules = node(NODE)?;
    let cog = programs()?.join("cog");
    let mut command = Command::new(interpreter);
    command.arg(root().join("conformance/replies/compare.py")).arg("--cog").arg(cog);
    execute(command.env("NODE_PATH", modules).env("BAML_LOG", "off"))
}
