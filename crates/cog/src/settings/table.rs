//! Every setting as rows, for `cog config`.

use cog_json::{ToJson, Writer};
use cog_provider::vendors::{VENDORS, Vendor};

use super::{Setting, Settings, Source, duration};

/// One setting as it is shown. A key is never part of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The setting: `model`, `OPENAI_API_KEY`.
    pub(crate) name: String,
    /// Its value; `***` for a key.
    pub(crate) value: String,
    /// Where it came from.
    pub(crate) source: Source,
}

impl ToJson for Row {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.name);
            w.field("value", &self.value);
            w.field("source", &self.source.to_string());
        });
    }
}

impl Settings {
    /// Every setting, and of the vendors those that somebody set.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let folders = |folders: &Vec<std::path::PathBuf>| {
            let shown: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
            if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
        };
        let mut rows = vec![
            row("provider", &self.provider, or_none),
            row("model", &self.model, or_none),
            row("timeout", &self.timeout, |length| duration::show(*length)),
            row("first_token", &self.first_token, |length| duration::show(*length)),
            row("stall", &self.stall, |length| duration::show(*length)),
            row("retries", &self.retries, u32::to_string),
            row("breaker_failures", &self.breaker_failures, u32::to_string),
            row("breaker_pause", &self.breaker_pause, |length| duration::show(*length)),
            row("strict", &self.strict, bool::to_string),
            row("modules", &self.modules, folders),
        ];
        rows.extend(self.media.rows());
        rows.extend(VENDORS.iter().flat_map(|vendor| self.rows_of(vendor)));
        rows
    }

    fn rows_of(&self, vendor: &Vendor) -> Vec<Row> {
        let keys = vendor.key_vars.iter().map(|name| (*name, true));
        let addresses = vendor.base_url_vars.iter().map(|name| (*name, false));
        let mut rows: Vec<Row> = keys
            .chain(addresses)
            .filter_map(|(name, is_key)| {
                let value = self.variable(name)?;
                let value = if is_key { "***".to_owned() } else { without_credentials(&value) };
                Some(Row { name: name.to_owned(), value, source: self.source_of(name) })
            })
            .collect();
        let model = self.model_for(vendor);
        rows.extend(
            model.map(|model| row(&format!("providers.{}.model", vendor.name), &model, String::clone)),
        );
        rows
    }

    fn source_of(&self, variable: &'static str) -> Source {
        match &self.operator {
            Some(file) if self.environment.get(variable).is_none() => Source::File(file.path.clone()),
            _ => Source::Variable(variable),
        }
    }
}

pub(super) fn row<T>(name: &str, setting: &Setting<T>, show: impl Fn(&T) -> String) -> Row {
    Row { name: name.to_owned(), value: show(&setting.value), source: setting.source.clone() }
}

/// An address without the name and password that somebody may have put into it, and without its query.
fn without_credentials(address: &str) -> String {
    let (address, query) = address.split_once('?').map_or((address, ""), |(address, _)| (address, "?***"));
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let host = rest.find('/').unwrap_or(rest.len());
    let shown = match rest.get(..host).and_then(|host| host.rfind('@')) {
        Some(at) => format!("***{}", rest.get(at..).unwrap_or_default()),
        None => rest.to_owned(),
    };
    if scheme.is_empty() { format!("{shown}{query}") } else { format!("{scheme}://{shown}{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_is_secret_in_it() {
        assert_eq!(without_credentials("http://127.0.0.1:8000/v1"), "http://127.0.0.1:8000/v1");
        assert_eq!(without_credentials("https://me:pw@h/v1?key=1"), "https://***@h/v1?***");
        assert_eq!(without_credentials("me:pw@h:1"), "***@h:1");
    }
}
