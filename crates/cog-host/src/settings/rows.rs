//! Every setting as rows, for `cog config`.

use std::{fmt, path::Path, time::Duration};

use cog_json::{ToJson, Writer};
use cog_provider::vendors::{VENDORS, Vendor};

use super::{Setting, Settings, Source, values};

/// One setting as `cog config` shows it, with keys hidden.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name: `model`, `OPENAI_API_KEY`.
    pub name: String,
    /// Its value; `***` for a key.
    pub value: DisplayValue,
    /// Its source.
    pub source: Source,
}

/// Written by hand: the source is written as text.
impl ToJson for Row {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.field("value", &self.value);
            w.field("source", &self.source.to_string());
        });
    }
}

impl Row {
    /// Creates the row of a setting.
    pub(super) fn new<T>(name: &str, setting: &Setting<T>, show: impl Fn(&T) -> DisplayValue) -> Self {
        Self { name: name.to_owned(), value: show(&setting.value), source: setting.source.clone() }
    }
}

/// The value of a setting: as text in the form in which it is set, in JSON with its own type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisplayValue {
    /// Not set: `-`, null.
    Nothing,
    /// A switch.
    Switch(bool),
    /// A number.
    Count(u64),
    /// A text, also one with a unit: `30s`, `256MiB`.
    Text(String),
    /// A list; `-` and `[]` if it is empty.
    List(Vec<String>),
}

impl DisplayValue {
    /// Returns the text of a value, if it is set.
    pub(super) fn maybe(text: Option<impl ToString>) -> Self {
        text.map_or(Self::Nothing, |text| Self::Text(text.to_string()))
    }

    /// Returns the text of a path, if it is set.
    pub(super) fn path(path: Option<impl AsRef<Path>>) -> Self {
        Self::maybe(path.map(|path| path.as_ref().display().to_string()))
    }

    /// Returns a duration in the form in which it is set: `30s`.
    pub(super) fn duration(length: &Duration) -> Self {
        Self::Text(values::show_duration(*length))
    }

    /// Returns a size in the form in which it is set: `256MiB`.
    pub(super) fn bytes(size: &usize) -> Self {
        Self::Text(values::show_bytes(*size))
    }

    /// Returns a switch.
    pub(super) fn switch(is_on: &bool) -> Self {
        Self::Switch(*is_on)
    }

    /// Returns the texts of several values.
    pub(super) fn list(items: impl IntoIterator<Item = impl ToString>) -> Self {
        Self::List(items.into_iter().map(|item| item.to_string()).collect())
    }
}

impl fmt::Display for DisplayValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("-"),
            Self::Switch(is_on) => is_on.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::List(items) if items.is_empty() => f.write_str("-"),
            Self::List(items) => f.write_str(&items.join(", ")),
        }
    }
}

/// Written by hand: a value without a name for its variant.
impl ToJson for DisplayValue {
    fn write_json(&self, w: &mut Writer<'_>) {
        match self {
            Self::Nothing => w.null(),
            Self::Switch(is_on) => is_on.write_json(w),
            Self::Count(count) => count.write_json(w),
            Self::Text(text) => text.write_json(w),
            Self::List(items) => items.write_json(w),
        }
    }
}

impl Settings {
    /// Returns every setting; of the providers, only the settings that are set.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = self.main_rows();
        rows.extend(self.generation.rows());
        rows.extend(self.media.rows());
        rows.extend(self.logs.rows());
        rows.extend(self.tools.rows());
        rows.extend(self.budget.rows());
        rows.extend(self.cache.rows());
        rows.extend(self.nats.rows());
        rows.extend(VENDORS.iter().flat_map(|vendor| self.provider_rows(vendor)));
        rows
    }

    /// Returns the settings without a section.
    pub(super) fn main_rows(&self) -> Vec<Row> {
        vec![
            Row::new("provider", &self.provider, |name| DisplayValue::maybe(name.as_ref())),
            Row::new("model", &self.model, |name| DisplayValue::maybe(name.as_ref())),
            Row::new("timeout", &self.timeout, DisplayValue::duration),
            Row::new("first_token_timeout", &self.first_token_timeout, DisplayValue::duration),
            Row::new("idle_timeout", &self.idle_timeout, DisplayValue::duration),
            Row::new("retries", &self.retries, |number| DisplayValue::Count(u64::from(*number))),
            Row::new("breaker_failures", &self.breaker_failures, |number| {
                DisplayValue::Count(u64::from(*number))
            }),
            Row::new("breaker_reset_timeout", &self.breaker_reset_timeout, DisplayValue::duration),
            Row::new("strict", &self.strict, DisplayValue::switch),
            Row::new("trust", &self.trust, DisplayValue::switch),
            Row::new("modules", &self.modules, |directories| {
                DisplayValue::list(directories.iter().map(|directory| directory.display()))
            }),
            Row::new("detect_ollama", &self.detect_ollama, |url| match &url.0 {
                Some(url) => DisplayValue::Text(url.clone()),
                None => DisplayValue::Text("off".to_owned()),
            }),
        ]
    }

    fn provider_rows(&self, vendor: &Vendor) -> Vec<Row> {
        let keys = vendor.key_vars.iter().map(|name| (*name, true));
        let others = vendor.base_url_vars.iter().copied().chain(vendor.protocol_var);
        let others = others.map(|name| (name, false));
        let mut rows: Vec<Row> = keys
            .chain(others)
            .filter_map(|(name, is_key)| {
                let value = self.variable(name)?;
                let value = if is_key { "***".to_owned() } else { without_credentials(&value) };
                Some(Row {
                    name: name.to_owned(),
                    value: DisplayValue::Text(value),
                    source: self.source_of(name),
                })
            })
            .collect();
        rows.extend(self.model_row(vendor));
        rows.extend(self.price_rows(vendor));
        rows
    }

    /// Returns the prices that the operator's file sets for the models of a provider.
    fn price_rows(&self, vendor: &Vendor) -> Vec<Row> {
        let Some(file) = &self.operator else { return Vec::new() };
        let content = file.content.providers.get(vendor.name).into_iter();
        content
            .flat_map(|content| &content.prices)
            .map(|(model, price)| Row {
                name: format!("providers.{}.prices.{model}", vendor.name),
                value: DisplayValue::Text(price.to_string()),
                source: Source::File(file.path.clone()),
            })
            .collect()
    }

    /// Returns the model that a variable or a file sets for a provider.
    pub(super) fn model_row(&self, vendor: &Vendor) -> Option<Row> {
        let name = format!("providers.{}.model", vendor.name);
        Some(Row::new(&name, &self.model_for(vendor)?, |model| DisplayValue::Text(model.clone())))
    }

    /// Returns where a provider's variable is set.
    pub fn source_of(&self, variable: &'static str) -> Source {
        match &self.operator {
            Some(file) if self.environment.get(variable).is_none() => Source::File(file.path.clone()),
            _ => Source::variable(variable),
        }
    }
}

/// Removes user name, password and query from a URL.
pub fn without_credentials(url: &str) -> String {
    let (url, query) = url.split_once('?').map_or((url, ""), |(url, _)| (url, "?***"));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = rest.find('/').unwrap_or(rest.len());
    // The last `@`, as in the rules for URLs: a password may contain one.
    let shown = match rest.get(..host).and_then(|host| host.rfind('@')) {
        Some(at) => format!("***{}", rest.get(at..).unwrap_or_default()),
        None => rest.to_owned(),
    };
    if scheme.is_empty() { format!("{shown}{query}") } else { format!("{scheme}://{shown}{query}") }
}

/// The keys that change what runs cost.
const COSTLY_KEYS: [&str; 4] = ["model", "retries", "effort", "service_tier"];

impl Settings {
    /// Returns a note about each value in the project's `cog.toml` that changes what runs cost: its author is not the one who
    /// pays. Empty if the environment or flags set other values.
    pub fn costly_notes(&self) -> Vec<String> {
        let Some(project) = &self.project else { return Vec::new() };
        let own = Source::File(project.path.clone());
        let models = VENDORS.iter().filter_map(|vendor| self.model_row(vendor));
        let others = self.main_rows().into_iter().chain(self.generation.rows());
        let costly = others.filter(|row| COSTLY_KEYS.contains(&row.name.as_str())).chain(models);
        costly
            .filter(|row| row.source == own)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_credentials_in_urls() {
        assert_eq!(without_credentials("http://127.0.0.1:8000/v1"), "http://127.0.0.1:8000/v1");
        assert_eq!(without_credentials("https://me:pw@h/v1?key=1"), "https://***@h/v1?***");
        assert_eq!(without_credentials("me:pw@h:1"), "***@h:1");
    }
}
