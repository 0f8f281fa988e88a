//! The settings of a project's file that change what runs cost.

use cog_provider::vendors::VENDORS;

use super::{Row, Settings, Source};

/// The keys that change what runs cost.
const KEYS: [&str; 4] = ["model", "retries", "effort", "service_tier"];

impl Settings {
    /// Returns a note about each value in the project's `cog.toml` that changes what runs cost: its author is not the one who
    /// pays. Empty if the environment or flags set other values.
    pub fn costly_notes(&self) -> Vec<String> {
        let Some(project) = &self.project else { return Vec::new() };
        let own = Source::File(project.path.clone());
        let is_costly = |row: &Row| {
            let is_model = row.name.starts_with("providers.") && row.name.ends_with(".model");
            row.source == own && (KEYS.contains(&row.name.as_str()) || is_model)
        };
        let models = VENDORS.iter().filter_map(|vendor| self.model_row(vendor));
        let rows = self.main_rows().into_iter().chain(self.generation.rows()).chain(models);
        rows.filter(is_costly)
            .map(|row| {
                format!(
                    "{} sets {} = {}, which changes what runs cost",
                    project.path.display(),
                    row.name,
                    row.value
                )
            })
            .collect()
    }
}
