//! `cog schema`: the JSON Schemas of what the specification describes.

use super::emit;
use crate::{
    args::{SchemaArgs, SchemaName},
    exit::Exit,
    fault::Fault,
    output::Console,
};

/// Prints a schema as it stands in the repository.
pub(crate) fn schema(args: &SchemaArgs, console: &Console) -> Result<Exit, Fault> {
    let text = text(args.name);
    match &args.output {
        Some(path) => emit::file(path, text, console)?,
        None => console.print(text)?,
    }
    Ok(Exit::Ok)
}

const fn text(name: SchemaName) -> &'static str {
    match name {
        SchemaName::Manifest => include_str!("../../schemas/manifest.schema.json"),
        SchemaName::Envelope => include_str!("../../schemas/envelope.schema.json"),
        SchemaName::Chunk => include_str!("../../schemas/chunk.schema.json"),
        SchemaName::Message => include_str!("../../schemas/message.schema.json"),
        SchemaName::Handoff => include_str!("../../schemas/handoff.schema.json"),
    }
}
