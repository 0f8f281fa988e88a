//! `cog capabilities`: what this runtime can do (SPEC 8.1).

use cog_spec::{Capabilities, Modality};

use super::emit;
use crate::{args::CapabilitiesArgs, exit::Exit, fault::Fault, output::Console};

/// Prints the document that every runtime must be able to show.
pub(crate) fn capabilities(args: &CapabilitiesArgs, console: &Console) -> Result<Exit, Fault> {
    emit::json(&declared(), &args.output, console)?;
    Ok(Exit::Ok)
}

/// What is so now, and not what is planned.
fn declared() -> Capabilities {
    Capabilities {
        runtime: "cog".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        streaming: false,
        input: vec![Modality::Text],
        output: vec![Modality::Text],
        max_media_size_mb: 0,
        transports: Vec::new(),
    }
}
