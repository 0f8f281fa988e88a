//! `cog list`: the available modules.

use cog_host::settings::Environment;
use cog_json::{Array, ToJson, Writer};
use cog_module::ListedModule;
use cog_spec::Manifest;

use super::targets::{default_finder, location};
use crate::{
    args::ListArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Table},
};

/// Prints one line per module; for a module that does not load, the error.
pub(crate) fn list(args: &ListArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let listed = default_finder(environment)?.list();
    if args.format.is_json() {
        console.print_json(&Array(&listed.iter().map(Entry).collect::<Vec<_>>()))?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(["name", "version", "format", "tier", "location", "description"]);
    for module in &listed {
        table.row(cells(module));
    }
    console.print(&table.render(console.out().palette, console.out_columns()))?;
    Ok(Exit::Ok)
}

fn cells(module: &ListedModule) -> [String; 6] {
    let (version, format, tier, what) = match &module.manifest {
        Ok(manifest) => {
            let Manifest { version, format, tier, responsibility, .. } = manifest;
            let tier = tier.map_or("-", |tier| tier.as_str());
            (version.as_str(), format.as_str(), tier, responsibility.clone())
        }
        Err(error) => ("-", "-", "-", error.to_string()),
    };
    [&module.name, version, format, tier, &location(&module.origin), &what].map(str::to_owned)
}

struct Entry<'a>(&'a ListedModule);

/// Written by hand: a module that does not load has only an error.
impl ToJson for Entry<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let ListedModule { name, origin, manifest, .. } = self.0;
        w.object(|w| {
            w.field("name", name);
            w.field("path", origin.path_of("").to_string_lossy().as_ref());
            match manifest {
                Ok(manifest) => {
                    w.field("version", &manifest.version);
                    w.field("format", manifest.format.as_str());
                    w.optional("tier", &manifest.tier.map(|tier| tier.as_str()));
                    w.field("responsibility", &manifest.responsibility);
                }
                Err(error) => {
                    w.field("error", &error.to_string());
                }
            }
        });
    }
}
