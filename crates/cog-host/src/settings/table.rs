//! Every setting as rows, for `cog config`.

use std::time::Duration;

use cog_provider::vendors::{VENDORS, Vendor};

use super::{Row, Settings, Shown, Source, duration};

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
        let time = |length: &Duration| Shown::Text(duration::show(*length));
        let count = |count: &u32| Shown::Count(u64::from(*count));
        vec![
            Row::new("provider", &self.provider, |name| Shown::maybe(name.as_ref())),
            Row::new("model", &self.model, |name| Shown::maybe(name.as_ref())),
            Row::new("timeout", &self.timeout, time),
            Row::new("first_token_timeout", &self.first_token_timeout, time),
            Row::new("idle_timeout", &self.idle_timeout, time),
            Row::new("retries", &self.retries, count),
            Row::new("breaker_failures", &self.breaker_failures, count),
            Row::new("breaker_reset_timeout", &self.breaker_reset_timeout, time),
            Row::new("strict", &self.strict, |is_on| Shown::Switch(*is_on)),
            Row::new("trust", &self.trust, |is_on| Shown::Switch(*is_on)),
            Row::new("modules", &self.modules, |directories| {
                Shown::list(directories.iter().map(|directory| directory.display()))
            }),
            Row::new("detect_ollama", &self.detect_ollama, |url| match &url.0 {
                Some(url) => Shown::Text(url.clone()),
                None => Shown::Text("off".to_owned()),
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
                Some(Row { name: name.to_owned(), value: Shown::Text(value), source: self.source_of(name) })
            })
            .collect();
        rows.extend(self.model_row(vendor));
        rows
    }

    /// Returns the model that a file sets for a provider.
    pub(super) fn model_row(&self, vendor: &Vendor) -> Option<Row> {
        let name = format!("providers.{}.model", vendor.name);
        Some(Row::new(&name, &self.model_for(vendor)?, |model| Shown::Text(model.clone())))
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
pub(super) fn without_credentials(url: &str) -> String {
    let (url, query) = url.split_once('?').map_or((url, ""), |(url, _)| (url, "?***"));
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
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
    fn hides_credentials_in_urls() {
        assert_eq!(without_credentials("http://127.0.0.1:8000/v1"), "http://127.0.0.1:8000/v1");
        assert_eq!(without_credentials("https://me:pw@h/v1?key=1"), "https://***@h/v1?***");
        assert_eq!(without_credentials("me:pw@h:1"), "***@h:1");
    }
}
