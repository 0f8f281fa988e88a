use cog_json::{Deviation, Node, Path, ToJson, Value};
use cog_spec::{Repair, RepairRule};

use crate::place;

/// The maximum number of dropped members with an entry of their own.
const MAX_DROPPED: usize = 8;

/// The maximum length of their keys, in bytes.
const MAX_KEY: usize = 1024;

/// All repairs of one answer (ruling R26).
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    entries: Vec<Repair>,
}

impl Ledger {
    /// Creates the ledger from what the parser tolerated. Paths of bare data start at `data`.
    pub(crate) fn new(tolerated: &[Deviation], is_bare: bool) -> Self {
        Self { entries: tolerated.iter().filter_map(|one| entry(one, is_bare)).collect() }
    }

    /// Records a repair of meta, with the old and the new value.
    pub(crate) fn note_meta(&mut self, rule: RepairRule, key: &str, before: Option<Value>, after: Value) {
        self.entries.push(Repair { rule, path: format!("meta.{key}"), before, after: Some(after) });
    }

    /// Records another repair, with the old and the new size in bytes.
    pub(crate) fn note_sizes(&mut self, rule: RepairRule, path: &str, before: usize, after: usize) {
        self.entries.push(Repair {
            rule,
            path: path.to_owned(),
            before: Some(size(before)),
            after: Some(size(after)),
        });
    }

    /// Records members that are not part of the answer. Those after the first eight share one entry.
    pub(crate) fn note_dropped<'a>(&mut self, members: impl Iterator<Item = (&'a str, Node<'a>)>) {
        let mut rest = 0;
        for (at, (key, member)) in members.enumerate() {
            let (mut path, size) = (Path::root(), member.to_json().len());
            path.push_key(key);
            match at < MAX_DROPPED && key.len() <= MAX_KEY {
                true => self.note_sizes(RepairRule::DropMember, &path.to_string(), size, 0),
                false => rest += size,
            }
        }
        if rest > 0 {
            self.note_sizes(RepairRule::DropMember, "", rest, 0);
        }
    }

    /// Records a repair of the complete reply.
    pub(crate) fn note_reply(&mut self, rule: RepairRule) {
        self.entries.push(Repair { rule, path: String::new(), before: None, after: None });
    }

    pub(crate) fn entries(&self) -> &[Repair] {
        &self.entries
    }

    pub(crate) fn into_entries(self) -> Vec<Repair> {
        self.entries
    }
}

/// Converts what the parser tolerated. Both lists of rules are the specification's, so every rule is known.
fn entry(tolerated: &Deviation, is_bare: bool) -> Option<Repair> {
    let rule: RepairRule = tolerated.rule.as_str().parse().ok()?;
    let path = match tolerated.path.parse::<Path>() {
        Ok(path) if is_bare && !path.is_root() => place::from_bare(&path).to_string(),
        _ => tolerated.path.clone(),
    };
    Some(Repair { rule, path, before: Some(size(tolerated.before)), after: Some(size(tolerated.after)) })
}

fn size(bytes: usize) -> Value {
    Value::parse(&bytes.to_json()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the path and the size of each entry for dropped members with these keys, whose values have three bytes.
    fn dropped(keys: &[String]) -> Vec<(String, String)> {
        let value = Value::parse("123").unwrap();
        let mut ledger = Ledger::default();
        ledger.note_dropped(keys.iter().map(|key| (key.as_str(), value.node())));
        let entries = ledger.into_entries().into_iter();
        entries.map(|one| (one.path, one.before.unwrap_or_default().to_string())).collect()
    }

    fn own(key: &str) -> (String, String) {
        (key.to_owned(), "3".to_owned())
    }

    #[test]
    fn first_eight_dropped_members_have_an_entry_of_their_own() {
        let keys: Vec<String> = (0..10).map(|number| format!("k{number}")).collect();
        let first: Vec<_> = keys[..8].iter().map(|key| own(key)).collect();
        assert_eq!(dropped(&keys[..8]), first);
        assert_eq!(dropped(&keys), [first, vec![(String::new(), "6".to_owned())]].concat());
    }

    #[test]
    fn dropped_member_with_a_long_key_is_one_of_the_rest() {
        let keys = ["a".repeat(MAX_KEY), "b".repeat(MAX_KEY + 1), "c".to_owned()];
        assert_eq!(dropped(&keys), [own(&keys[0]), own("c"), own("")]);
    }
}
