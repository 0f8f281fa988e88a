//! The price lists in `crates/cog-provider/prices`: an extract of the data of the crate `genai-prices`.
//!
//! The complete data take tens of milliseconds to decode, and most of them are for vendors without a row.

use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Map, Value, json};

use crate::project::{Outcome, capture, cargo, tracked};

const LISTS: &str = "crates/cog-provider/prices";
/// Returns the price lists that are in the directory, and the date on which prices were verified last, with their paths. A
/// new list begins as an empty file with the vendor's name in the data.
pub(crate) fn pages() -> Outcome<Vec<(String, String)>> {
    let data = data()?;
    let mut pages = vec![(format!("{LISTS}/verified"), verified(&data)?)];
    for path in tracked(LISTS, ".json")? {
        let vendor = Path::new(&path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut providers = data.as_array().into_iter().flatten();
        let found = providers.find(|provider| text(provider, "id") == Some(&vendor));
        let found = found.ok_or_else(|| format!("genai-prices has no prices of {vendor}"))?;
        pages.push((path, list(&vendor, found)));
    }
    Ok(pages)
}

/// The data of the version in the lock file.
#[expect(clippy::disallowed_methods, reason = "a file of a dependency, which has no limits")]
fn data() -> Outcome<Value> {
    let metadata = capture(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let package =
        elements(&metadata, "packages").find(|package| text(package, "name") == Some("genai-prices"));
    let manifest =
        package.and_then(|package| text(package, "manifest_path")).ok_or("genai-prices is absent")?;
    let path = PathBuf::from(manifest).with_file_name("data").join("prices.json");
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

/// The latest date on which the data say that a price was verified.
fn verified(data: &Value) -> Outcome<String> {
    let said = Regex::new(r"(?i)(?:verified|checked|confirmed)[^.]{0,40}?(\d{4}-\d{2}-\d{2})")
        .map_err(|error| error.to_string())?;
    let models = data.as_array().into_iter().flatten().flat_map(|provider| elements(provider, "models"));
    let comments = models.filter_map(|model| text(model, "price_comments"));
    let dates =
        comments.flat_map(|comment| said.captures_iter(comment).map(|found| found.extract::<1>().1.concat()));
    dates.max().ok_or_else(|| "the data name no date".to_owned())
}

/// The prices of tokens of one vendor, with one line for each model.
fn list(vendor: &str, provider: &Value) -> String {
    let models = elements(provider, "models").filter_map(model);
    let lines: Vec<String> = models.map(|model| model.to_string()).collect();
    format!(
        "[{{\"id\":\"{vendor}\",\"name\":\"{vendor}\",\"api_pattern\":\"unused\",\"models\":[\n{}\n]}}]\n",
        lines.join(",\n")
    )
}

/// One model without its texts; none if it has no price for tokens.
fn model(model: &Value) -> Option<Value> {
    let prices = model.get("prices")?;
    let mut dated = prices.as_array().into_iter().flatten();
    if !has_rate(prices) && !dated.any(|dated| dated.get("prices").is_some_and(has_rate)) {
        return None;
    }
    let mut reduced = Map::new();
    for key in ["id", "match", "prices"] {
        reduced.insert(key.to_owned(), model.get(key)?.clone());
    }
    if let Some(window) = model.get("context_window").filter(|window| window.is_u64()) {
        reduced.insert("context_window".to_owned(), window.clone());
    }
    let classes: Vec<&Value> = elements(model, "price_variants")
        .filter(|variant| variant.get("when").is_some_and(has_class))
        .collect();
    if !classes.is_empty() {
        reduced.insert("price_variants".to_owned(), json!(classes));
    }
    Some(Value::Object(reduced))
}

fn has_rate(prices: &Value) -> bool {
    prices.get("input_mtok").is_some()
}

/// Whether a price is for a class of service.
fn has_class(when: &Value) -> bool {
    when.get("service_tier").or(when.get("processing")).is_some()
}

fn elements<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}
