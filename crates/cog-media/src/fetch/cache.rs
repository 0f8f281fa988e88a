//! What was fetched, for the next time: a run that is tried again does not fetch again (SPEC 4.2.1).
//!
//! Kept as [`Stored`] is: what is large lies on disk, in files without names, gone with the process. Only what the server
//! lets be kept is, and only as long as it says, or as a validator proves that it is still the same.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use reqwest::{
    Url,
    header::{
        AGE, CACHE_CONTROL, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    },
    header::{LAST_MODIFIED, VARY},
};

use super::Fetched;

/// The most answers that are kept, however small: what stands in memory stays below 64 MiB.
const MAX: usize = 64;

/// The longest that is believed without asking again.
const MAX_LEN: Duration = Duration::from_secs(3600);

/// Answers by their URL, the longest unused first.
pub(super) struct Cache {
    bytes: u64,
    kept: Mutex<VecDeque<(Url, Known)>>,
}

/// An answer that is known.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) fetched: Fetched,
    until: Instant,
    condition: Option<(HeaderName, HeaderValue)>,
}

impl Known {
    /// The answer, where the server need not be asked.
    pub(super) fn fresh(&self) -> Option<Fetched> {
        (Instant::now() < self.until).then(|| self.fetched.clone())
    }

    /// The header that asks whether it is still the same.
    pub(super) fn condition(&self) -> Option<(HeaderName, HeaderValue)> {
        self.condition.clone()
    }
}

impl Cache {
    /// A cache of so many bytes.
    pub(super) fn within(bytes: usize) -> Self {
        Self { bytes: bytes as u64, kept: Mutex::default() }
    }

    /// What is known of a URL.
    pub(super) fn get(&self, url: &Url) -> Option<Known> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(own, _)| own == url)?;
        let entry = kept.remove(at)?;
        let known = entry.1.clone();
        kept.push_back(entry);
        Some(known)
    }

    /// Keeps an answer, where its headers let it be kept and it fits.
    pub(super) fn keep(&self, url: &Url, headers: &HeaderMap, fetched: &Fetched) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(own, _)| own != url);
        let Some((lifetime, condition)) = keepable(headers) else { return };
        if fetched.stored.len() > self.bytes {
            return;
        }
        let mut fetched = fetched.clone();
        // The same content under another URL is kept once.
        if let Some((_, same)) = kept.iter().find(|(_, known)| is_same(&known.fetched, &fetched)) {
            fetched.stored = same.fetched.stored.clone();
        }
        kept.push_back((url.clone(), Known { fetched, until: Instant::now() + lifetime, condition }));
        while kept.len() > MAX
            || kept.iter().map(|(_, known)| known.fetched.stored.len()).sum::<u64>() > self.bytes
        {
            kept.pop_front();
        }
    }
}

fn is_same(one: &Fetched, other: &Fetched) -> bool {
    one.stored.sha256() == other.stored.sha256()
}

/// How long an answer holds, and how to ask whether it still does; none where it may not be kept or neither is known.
fn keepable(headers: &HeaderMap) -> Option<(Duration, Option<(HeaderName, HeaderValue)>)> {
    // The next request has the same headers; only `*` says that its answer may differ all the same.
    let varies = headers.get_all(VARY).iter().any(|value| value == "*");
    let rules = directives(headers);
    let has = |name: &str| rules.iter().any(|rule| rule == name);
    if varies || has("no-store") {
        return None;
    }
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let max_age = number(rules.iter().find_map(|rule| rule.strip_prefix("max-age=")));
    let age = number(headers.get(AGE).and_then(|value| value.to_str().ok())).unwrap_or_default();
    let lifetime = max_age.filter(|_| !has("no-cache")).unwrap_or_default().saturating_sub(age).min(MAX_LEN);
    let by = |header: HeaderName, name: HeaderName| headers.get(header).map(|value| (name, value.clone()));
    let condition = by(ETAG, IF_NONE_MATCH).or_else(|| by(LAST_MODIFIED, IF_MODIFIED_SINCE));
    (!lifetime.is_zero() || condition.is_some()).then_some((lifetime, condition))
}

fn directives(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(|rule| rule.trim().to_ascii_lowercase()).collect()
}
