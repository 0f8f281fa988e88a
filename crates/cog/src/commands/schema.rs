//! `cog schema`, `cog capabilities` and `cog errors`: what the specification and this runtime define.

use cog_json::{Array, ToJson, Writer};
use cog_spec::{Code, Recoverable, Schema};

use super::emit;
use crate::{
    args::{CapabilitiesArgs, ErrorsArgs, SchemaArgs, SchemaName},
    error::CliError,
    exit::Exit,
    output::{Console, Table, wrap},
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

/// Prints the capabilities document.
pub(crate) fn capabilities(args: &CapabilitiesArgs, console: &Console) -> Result<Exit, CliError> {
    emit::json(&cog_server::capabilities(), &args.output, console)?;
    Ok(Exit::Ok)
}

/// Prints the table, or the details of one code.
pub(crate) fn errors(args: &ErrorsArgs, console: &Console) -> Result<Exit, CliError> {
    match (args.code, args.format.is_json()) {
        (Some(code), true) => console.print_json(&ErrorEntry(code))?,
        (None, true) => {
            console.print_json(&Array(&Code::ALL.iter().copied().map(ErrorEntry).collect::<Vec<_>>()))?;
        }
        (Some(code), false) => console.print(&explain(code, console))?,
        (None, false) => console.print(&table(console))?,
    }
    Ok(Exit::Ok)
}

fn table(console: &Console) -> String {
    let mut table = Table::new(["code", "name", "meaning"]);
    for code in Code::ALL {
        table.row([code.as_str(), code.name(), code.meaning()].map(str::to_owned));
    }
    table.render(console.out().palette, console.out_columns())
}

fn explain(code: Code, console: &Console) -> String {
    let palette = console.out().palette;
    let mut text = format!("{} {}\n", palette.error(code), palette.bold(code.name()));
    for line in [code.meaning(), code.advice()].into_iter().flat_map(|part| wrap(part, console.width())) {
        text += &format!("{line}\n");
    }
    for fact in facts(code) {
        text += &format!("  {}\n", palette.dim(fact));
    }
    text
}

fn facts(code: Code) -> Vec<String> {
    let mut facts = vec![
        format!("category: {}", code.category().as_str()),
        format!("retryable: {}", recoverable(code)),
        format!("HTTP status: {}", code.http_status()),
    ];
    let legacy = code.legacy().filter(|legacy| *legacy != code.name());
    facts.extend(legacy.map(|legacy| format!("legacy text code: {legacy}")));
    facts
}

const fn recoverable(code: Code) -> &'static str {
    match code.recoverable() {
        Recoverable::Yes => "yes",
        Recoverable::No => "no",
        Recoverable::Maybe => "maybe",
    }
}

struct ErrorEntry(Code);

/// Written by hand: all members are computed.
impl ToJson for ErrorEntry {
    fn write_json(&self, w: &mut Writer<'_>) {
        let code = self.0;
        w.object(|w| {
            w.field("code", code.as_str());
            w.field("name", code.name());
            w.field("category", code.category().as_str());
            w.field("recoverable", recoverable(code));
            w.field("http_status", &u32::from(code.http_status()));
            w.optional("legacy", &code.legacy());
            w.field("meaning", code.meaning());
            w.field("advice", code.advice());
        });
    }
}
