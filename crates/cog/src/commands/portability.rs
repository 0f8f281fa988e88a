//! `cog portability`: what each provider enforces of a module's contract.

use cog_host::settings::Environment;
use cog_json::{Array, ToJson, Writer};
use cog_provider::vendors::{VENDORS, Vendor};
use cog_schema::{EnforcedBy, Enforcement, Portability, PortableConstraint};

use super::runtime::default_finder;
use crate::{
    args::PortabilityArgs,
    error::{CliError, Exit},
    output::{Console, wrap},
};

/// Prints where each constraint of a module is enforced, for each provider.
pub(crate) fn portability(
    args: &PortabilityArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let module = cog_module::load(&default_finder(environment)?.find(&args.module)?)?;
    let found: Vec<Row> = VENDORS
        .iter()
        .filter(|vendor| args.provider.as_deref().is_none_or(|name| vendor.name == name))
        .map(|vendor| {
            let engine = vendor.engine.and_then(Enforcement::by_engine);
            Row { vendor, engine, found: module.contract.portability(vendor.dialect, engine) }
        })
        .collect();
    if args.format.is_json() {
        console.print_json(&Array(&found))?;
    } else {
        console.print(&describe(&found, console))?;
    }
    Ok(Exit::Ok)
}

/// The result for one provider.
struct Row {
    vendor: &'static Vendor,
    engine: Option<&'static Enforcement>,
    found: Portability,
}

impl Row {
    fn enforced_by(&self, by: EnforcedBy) -> impl Iterator<Item = &PortableConstraint> {
        self.found.constraints.iter().filter(move |constraint| constraint.enforced_by == by)
    }

    /// Whether both providers enforce the same.
    fn is_like(&self, other: &Row) -> bool {
        self.found == other.found && self.vendor.engine == other.vendor.engine
    }
}

/// Formats the providers, those with the same result together.
fn describe(found: &[Row], console: &Console) -> String {
    let palette = console.out().palette;
    let mut text = String::new();
    for (index, row) in found.iter().enumerate() {
        if found.iter().take(index).any(|before| before.is_like(row)) {
            continue;
        }
        let same = found.iter().filter(|other| other.is_like(row));
        let names: Vec<&str> = same.map(|other| other.vendor.name).collect();
        let measured = row.engine.map_or_else(String::new, |engine| {
            format!(", measured with {} on {}", engine.version, engine.date)
        });
        let dialect = format!("({}{measured})", row.found.dialect);
        let heading = format!("{} {}", palette.bold(names.join(", ")), palette.dim(dialect));
        text += &format!("{}{heading}\n", if text.is_empty() { "" } else { "\n" });
        let total = row.found.constraints.len();
        let enforced = row.enforced_by(EnforcedBy::Provider).count();
        text += &format!("  enforced by the provider: {enforced} of {total} constraints\n");
        if row.enforced_by(EnforcedBy::Words).count() == total {
            text += "  only in words: all of them\n";
            continue;
        }
        text += &match enforced {
            0 => "  only in words: all except the following\n".to_owned(),
            _ => list("only in words", row.enforced_by(EnforcedBy::Words), console),
        };
        text += &list("only checked by cog", row.enforced_by(EnforcedBy::Check), console);
    }
    text
}

/// Lists constraints, grouped by field.
fn list<'a>(title: &str, listed: impl Iterator<Item = &'a PortableConstraint>, console: &Console) -> String {
    let mut fields: Vec<(&str, Vec<String>)> = Vec::new();
    for constraint in listed {
        let keyword = shown(constraint);
        match fields.iter_mut().find(|(path, _)| *path == constraint.path) {
            Some((_, keywords)) => keywords.push(keyword),
            None => fields.push((&constraint.path, vec![keyword])),
        }
    }
    if fields.is_empty() {
        return String::new();
    }
    let mut text = format!("  {title}:\n");
    for (path, keywords) in fields {
        let line = format!("{} {}", console.out().palette.name(path), keywords.join(", "));
        text += &format!("    {}\n", wrap(&line, console.width().saturating_sub(6)).join("\n      "));
    }
    text
}

/// The maximum length of a value in text.
const MAX_VALUE: usize = 40;

fn shown(constraint: &PortableConstraint) -> String {
    let value = constraint.value.to_string();
    match value.chars().count() {
        ..=MAX_VALUE => format!("{} {value}", constraint.keyword),
        _ => constraint.keyword.clone(),
    }
}

/// Written by hand: its constraints are counted.
impl ToJson for Row {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("provider", self.vendor.name);
            w.field("dialect", self.found.dialect.as_str());
            w.optional("engine", &self.vendor.engine);
            w.optional("measured", &self.engine.map(|engine| engine.date));
            w.field("by_provider", &self.enforced_by(EnforcedBy::Provider).count());
            w.field("in_words", &self.enforced_by(EnforcedBy::Words).count());
            w.field("by_check", &self.enforced_by(EnforcedBy::Check).count());
            w.field("constraints", &self.found.constraints);
        });
    }
}
