use cog_json::{Path, ToJson, Tolerated, Value};
use cog_spec::{Repair, RepairRule};

use crate::place;

/// Every repair of one answer (ruling R26).
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    entries: Vec<Repair>,
}

impl Ledger {
    /// What the parser let pass. Paths of data that stand alone start at `data`.
    pub(crate) fn of_reading(tolerated: &[Tolerated], is_bare: bool) -> Self {
        Self { entries: tolerated.iter().filter_map(|one| entry(one, is_bare)).collect() }
    }

    /// A repair of meta, with what stood there and what stands there now.
    pub(crate) fn note_meta(&mut self, rule: RepairRule, key: &str, before: Option<Value>, after: Value) {
        self.entries.push(Repair { rule, path: format!("meta.{key}"), before, after: Some(after) });
    }

    /// A repair elsewhere, with its sizes in bytes.
    pub(crate) fn note_sizes(&mut self, rule: RepairRule, path: &str, before: usize, after: usize) {
        self.entries.push(Repair {
            rule,
            path: path.to_owned(),
            before: Some(size(before)),
            after: Some(size(after)),
        });
    }

    /// A repair of the reply as a whole.
    pub(crate) fn note_whole(&mut self, rule: RepairRule) {
        self.entries.push(Repair { rule, path: String::new(), before: None, after: None });
    }

    pub(crate) fn entries(&self) -> &[Repair] {
        &self.entries
    }

    pub(crate) fn into_entries(self) -> Vec<Repair> {
        self.entries
    }
}

/// A rule of the parser that the ledger does not know cannot be: both lists are the specification's.
fn entry(tolerated: &Tolerated, is_bare: bool) -> Option<Repair> {
    let rule: RepairRule = tolerated.rule.as_str().parse().ok()?;
    let path = match tolerated.path.parse::<Path>() {
        Ok(path) if is_bare && !path.is_root() => place::below_data(&path).to_string(),
        _ => tolerated.path.clone(),
    };
    Some(Repair { rule, path, before: Some(size(tolerated.before)), after: Some(size(tolerated.after)) })
}

fn size(bytes: usize) -> Value {
    Value::parse(&bytes.to_json()).unwrap_or_default()
}
