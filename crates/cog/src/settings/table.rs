//! Every setting as rows, for `cog config`.

use std::time::Duration;

use cog_json::{ToJson, Writer};
use cog_provider::vendors::{VENDORS, Vendor};

use super::{Setting, Settings, Shown, Source, duration};

/// One setting as it is shown. A key is never part of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// The setting: `model`, `OPENAI_API_KEY`.
    pub(crate) name: String,
    /// Its value; `***` for a key.
    pub(crate) value: Shown,
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
        let time = |length: &Duration| Shown::Text(duration::show(*length));
        let count = |count: &u32| Shown::Count(u64::from(*count));
        let mut rows = vec![
            row("provider", &self.provider, |name| Shown::maybe(name.as_ref())),
            row("model", &self.model, |name| Shown::maybe(name.as_ref())),
            row("timeout", &self.timeout, time),
            row("first_token", &self.first_token, time),
            row("stall", &self.stall, time),
            row("retries", &self.retries, count),
            row("breaker_failures", &self.breaker_failures, count),
            row("breaker_pause", &self.breaker_pause, time),
            row("strict", &self.strict, |is_on| Shown::Switch(*is_on)),
            row("modules", &self.modules, |folders| {
                Shown::list(folders.iter().map(|folder| folder.display()))
            }),
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
                Some(Row { name: name.to_owned(), value: Shown::Text(value), source: self.source_of(name) })
            })
            .collect();
        let model = self.model_for(vendor);
        rows.extend(model.map(|model| {
            row(&format!("providers.{}.model", vendor.name), &model, |model| Shown::Text(model.clone()))
        }));
        rows
    }

    fn source_of(&self, variable: &'static str) -> Source {
        match &self.operator {
            Some(file) if self.environment.get(variable).is_none() => Source::File(file.path.clone()),
            _ => Source::Variable(variable),
        }
    }
}

pub(super) fn row<T>(name: &str, setting: &Setting<T>, show: impl Fn(&T) -> Shown) -> Row {
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
