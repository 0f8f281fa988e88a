//! `cog schema`: the JSON Schemas of what the specification describes.

use cog_spec::Schema;

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
        SchemaName::Manifest => Schema::Manifest.text(),
        SchemaName::Envelope => Schema::Envelope.text(),
        SchemaName::Chunk => Schema::Chunk.text(),
        SchemaName::Capabilities => Schema::Capabilities.text(),
        SchemaName::Message => Schema::Message.text(),
        SchemaName::Handoff => Schema::Handoff.text(),
    }
}
