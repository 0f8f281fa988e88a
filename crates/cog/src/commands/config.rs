//! `cog config` and `cog trust`: what the operator has set.

use std::path::Path;

use cog_host::{
    TrustError, TrustStore,
    settings::{Environment, Flags, Row, ServeSettings, Settings},
};
use cog_json::{Array, ToJson, Writer};

use crate::{
    args::{ConfigArgs, TrustArgs},
    error::CliError,
    exit::Exit,
    output::{Console, Table},
};

/// Prints every setting. A key is shown as `***`.
pub(crate) fn config(
    args: &ConfigArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let (_, of_server) = ServeSettings::read(&settings, |_| None)?;
    let mut rows = settings.rows();
    rows.extend(of_server);
    if args.format.is_json() {
        console.print_json(&Report { settings: &rows })?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(["setting", "value", "source"]);
    for Row { name, value, source } in &rows {
        table.row([name.clone(), value.to_string(), source.to_string()]);
    }
    console.print(&table.render(console.out().palette, None))?;
    Ok(Exit::Ok)
}

struct Report<'a> {
    settings: &'a [Row],
}

/// Written by hand: its rows are written by hand.
impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("settings", &Array(self.settings));
        });
    }
}

/// Trusts a directory, stops trusting it, or lists the trusted ones.
pub(crate) fn trust(args: &TrustArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let settings = Settings::read(Flags::default(), environment)?;
    let store = TrustStore::new(&settings).ok_or_else(|| CliError::Usage {
        message: "trust needs a home directory".to_owned(),
        suggestion: Some("Set HOME, or use --trust for one command.".to_owned()),
    })?;
    if args.list {
        let directories = store.directories().map_err(|error| failed(&error))?;
        let directories: Vec<String> = directories.iter().map(|path| path.display().to_string()).collect();
        if args.format.is_json() {
            console.print_json(&directories)?;
        } else {
            console.print(&directories.join("\n"))?;
        }
        return Ok(Exit::Ok);
    }
    let path = args.path.as_deref().unwrap_or(Path::new("."));
    if args.remove {
        if store.remove(path).map_err(|error| failed(&error))? {
            console.note(&format!("{} is no longer trusted", path.display()));
            return Ok(Exit::Ok);
        }
        return Err(CliError::Usage {
            message: format!("`{}` is not trusted", path.display()),
            suggestion: Some("`cog trust --list` shows the trusted directories.".to_owned()),
        });
    }
    let directory = store.add(path).map_err(|error| failed(&error))?;
    console.note(&format!("modules in {} may call tools", directory.display()));
    Ok(Exit::Ok)
}

fn failed(error: &TrustError) -> CliError {
    CliError::Usage { message: error.to_string(), suggestion: Some(error.suggestion()) }
}
