//! `cog schema`: the JSON Schemas of the specification, and the OpenAPI document of the server.

use cog_spec::Schema;

use super::emit;
use crate::{
    args::{SchemaArgs, SchemaName},
    error::CliError,
    exit::Exit,
    output::Console,
};

/// Prints a schema.
pub(crate) fn schema(args: &SchemaArgs, console: &Console) -> Result<Exit, CliError> {
    let text = text(args.name);
    match &args.output {
        Some(path) => emit::file(path, text, console)?,
        None => console.print(text)?,
    }
    Ok(Exit::Ok)
}

fn text(name: SchemaName) -> &'static str {
    let schema = match name {
        SchemaName::Manifest => Schema::Manifest,
        SchemaName::Envelope => Schema::Envelope,
        SchemaName::Chunk => Schema::Chunk,
        SchemaName::Capabilities => Schema::Capabilities,
        SchemaName::Message => Schema::Message,
        SchemaName::Handoff => Schema::Handoff,
        SchemaName::Openapi => return cog_server::openapi(),
    };
    schema.text()
}
