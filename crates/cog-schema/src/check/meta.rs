use cog_json::{Node, Path, ToJson, Value, Writer};
use cog_spec::{Code, EnumStrategy, Meta, RUNTIME_KEYS, Risk, Tier};

use super::{absent, answer_code, below, mistyped, root, unreported};
use crate::contract::Contract;
use crate::finding::{counted, found};
use crate::violation::Violation;
use crate::words::{either, nearest, quoted};

impl Contract {
    /// Checks the meta of an answer, with paths from `meta`: the specification's own rules (SPEC 6.1), then the
    /// module's meta schema. The runtime's own keys are seen by neither (ruling R27).
    pub fn check_meta(&self, meta: Node<'_>) -> Vec<Violation> {
        let path = root("meta");
        if !meta.is_object() {
            return vec![mistyped(&path, meta, "an object")];
        }
        let mut violations: Vec<Violation> =
            [check_confidence(meta), self.check_risk(meta), check_explain(meta)]
                .into_iter()
                .flatten()
                .collect();
        let own = self.check_own_schema(meta, &path);
        violations.extend(unreported(own, &violations));
        violations
    }

    /// The module's schema, without the keys that it must not judge.
    fn check_own_schema(&self, meta: Node<'_>, path: &Path) -> Vec<Violation> {
        let Some(part) = self.meta.as_ref().filter(|part| !self.accepts(part.shape, meta)) else {
            return Vec::new();
        };
        let own_risk = meta.get("risk").filter(|risk| risk.is_object() && self.allows_custom_risk());
        let seen = Seen { meta, without_risk: own_risk.is_some() };
        let Ok(seen) = Value::parse(&seen.to_json()) else { return Vec::new() };
        let mut violations =
            self.violations(&self.errors(part.shape, seen.node()), (path, seen.node()), answer_code);
        if own_risk.is_some() {
            violations.retain(|one| one.path != "meta.risk");
        }
        violations
    }

    /// A word of the order, `{custom, reason}` where that is allowed, or whatever the module's schema names.
    fn check_risk(&self, meta: Node<'_>) -> Option<Violation> {
        let path = || below_meta("risk");
        let Some(risk) = meta.get("risk") else { return Some(absent(&path(), "risk")) };
        if risk.is_object() {
            let path = path();
            return match self.allows_custom_risk() {
                true => self.check_custom(risk, &path).err(),
                false => Some(Violation::new(
                    &path,
                    "extensible_enum",
                    Code::InvalidEnum,
                    self.why_no_custom_risk(),
                )),
            };
        }
        let is_known = |word: &str| word.parse::<Risk>().is_ok() || self.facts.names_risk;
        match risk.as_str() {
            Some(word) if is_known(word) => None,
            word => Some(unknown_risk(risk, word, &path())),
        }
    }

    /// Supplement R20.
    fn allows_custom_risk(&self) -> bool {
        self.rules.enums.strategy == EnumStrategy::Extensible && self.rules.tier != Some(Tier::Exec)
    }

    fn why_no_custom_risk(&self) -> &'static str {
        if self.rules.tier == Some(Tier::Exec) {
            "found an object; tier exec allows only `none`, `low`, `medium` or `high`"
        } else {
            "found an object; `enums.strategy: strict` allows only the values of the enum"
        }
    }
}

/// Meta as the module's schema sees it.
struct Seen<'a> {
    meta: Node<'a>,
    without_risk: bool,
}

impl ToJson for Seen<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let is_seen = |key: &str| !(RUNTIME_KEYS.contains(&key) || self.without_risk && key == "risk");
        w.object(|w| {
            let seen = self.meta.members().filter(|(key, _)| is_seen(key));
            for (key, value) in seen {
                w.field(key, &value);
            }
        });
    }
}

fn unknown_risk(risk: Node<'_>, word: Option<&str>, path: &Path) -> Violation {
    let allowed = either(Risk::WORDS.iter().map(|word| quoted(word)));
    let Some(word) = word else { return mistyped(path, risk, &allowed) };
    let message = format!("found {}; allowed: {allowed}", found(risk));
    let violation = Violation::new(path, "enum", Code::InvalidEnum, message);
    match nearest(word, Risk::WORDS.iter().copied()) {
        Some(near) => violation.suggest(format!("Did you mean {}?", quoted(near))),
        None => violation,
    }
}

fn check_confidence(meta: Node<'_>) -> Option<Violation> {
    let path = || below_meta("confidence");
    let Some(confidence) = meta.get("confidence") else { return Some(absent(&path(), "confidence")) };
    let rule = match confidence.as_f64() {
        Some(number) if (0.0..=1.0).contains(&number) => return None,
        Some(number) if number < 0.0 => "minimum",
        Some(_) => "maximum",
        None => "type",
    };
    let message = format!("found {}; allowed: a number from 0 to 1", found(confidence));
    Some(Violation::new(&path(), rule, Code::OutputSchemaViolation, message))
}

fn check_explain(meta: Node<'_>) -> Option<Violation> {
    let path = || below_meta("explain");
    let Some(explain) = meta.get("explain") else { return Some(absent(&path(), "explain")) };
    let most = Meta::MAX_EXPLAIN;
    match explain.as_str() {
        Some(text) if text.len() <= most || text.chars().count() <= most => None,
        Some(text) => {
            let message =
                format!("found {}; allowed: at most {most}", counted(text.chars().count(), "character"));
            Some(Violation::new(&path(), "maxLength", Code::OutputSchemaViolation, message))
        }
        None => Some(mistyped(&path(), explain, "a string")),
    }
}

fn below_meta(key: &str) -> Path {
    below(&root("meta"), key)
}
