//! `cog config`: every setting with its source.

use cog_host::settings::{Environment, Flags, Row, ServeSettings, Settings};
use cog_json::{Array, ToJson, Writer};

use crate::{
    args::ConfigArgs,
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
