//! The columns that results have in Parquet and Arrow.

use cog_batch::Columns;
use cog_json::{ToJson, Writer};
use cog_module::Module;

/// Returns the columns as text, below the name of their module if there are several.
pub(super) fn text(modules: &[Module]) -> String {
    let columns = |module: &Module| Columns::from_contract(&module.contract).to_string();
    if let [only] = modules {
        return columns(only);
    }
    let texts = modules.iter().map(|module| format!("# {}\n{}", module.manifest.name, columns(module)));
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the columns as JSON: an object with those of each module.
pub(super) fn json(modules: &[Module]) -> String {
    format!("{}\n", All(modules).to_json_pretty())
}

struct All<'a>(&'a [Module]);

impl ToJson for All<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for module in self.0 {
                w.field(&module.manifest.name, &Columns::from_contract(&module.contract));
            }
        });
    }
}
