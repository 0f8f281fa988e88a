use cog_json::{Node, Path, ToJson, Value, Writer};
use cog_spec::{Code, EnumStrategy, Meta, RUNTIME_KEYS, Risk, Tier};

use super::{absent, answer_code, below, mistyped, root, unreported};
use crate::contract::Contract;
use crate::finding::{counted, found};
use crate::violation::Violation;
use crate::wording::{either, nearest, quoted};

impl Contract {
    /// Checks the meta of an answer, with paths from `meta`: first the rules of the specification (SPEC 6.1), then the
    /// module's meta schema. Keys that the runtime adds are not checked (ruling R27).
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

    /// Checks the module's schema, without the keys that it must not check.
    fn check_own_schema(&self, meta: Node<'_>, path: &Path) -> Vec<Violation> {
        // The copy without the runtime's keys is made only if the schema rejects the meta with them.
        let Some(part) = self.meta.as_ref().filter(|part| !self.accepts(part.id, meta)) else {
            return Vec::new();
        };
        let own_risk = meta.get("risk").filter(|risk| risk.is_object() && self.allows_custom_risk());
        let checked = CheckedMeta { meta, without_risk: own_risk.is_some() };
        let Ok(checked) = Value::parse(&checked.to_json()) else { return Vec::new() };
        let errors = self.errors(part.id, checked.node());
        let mut violations = self.violations(&errors, path, checked.node(), answer_code);
        if own_risk.is_some() {
            violations.retain(|one| one.path != "meta.risk");
        }
        violations
    }

    /// Checks that the risk is a known level, `{custom, reason}` if that is allowed, or a value of the module's schema.
    fn check_risk(&self, meta: Node<'_>) -> Option<Violation> {
        let Some(risk) = meta.get("risk") else { return Some(absent(&below_meta("risk"), "risk")) };
        if risk.is_object() {
            let path = below_meta("risk");
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
        match risk.as_str() {
            // The module's own schema decides about other levels if it has the field.
            Some(level) if level.parse::<Risk>().is_ok() || self.facts.names_risk => None,
            level => Some(unknown_risk(risk, level, &below_meta("risk"))),
        }
    }

    /// Returns whether a custom risk is allowed (ruling R20).
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

/// The members of meta that the module's schema checks.
struct CheckedMeta<'a> {
    meta: Node<'a>,
    without_risk: bool,
}

/// Written by hand: a meta without some of its members.
impl ToJson for CheckedMeta<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for (key, value) in self.meta.members() {
                let is_left_out = RUNTIME_KEYS.contains(&key) || self.without_risk && key == "risk";
                if !is_left_out {
                    w.field(key, &value);
                }
            }
        });
    }
}

fn unknown_risk(risk: Node<'_>, level: Option<&str>, path: &Path) -> Violation {
    let allowed = either(Risk::NAMES.iter().map(|level| quoted(level)));
    let Some(level) = level else { return mistyped(path, risk, &allowed) };
    let message = format!("found {}; allowed: {allowed}", found(risk));
    let violation = Violation::new(path, "enum", Code::InvalidEnum, message);
    match nearest(level, Risk::NAMES.iter().copied()) {
        Some(near) => violation.suggest(format!("Did you mean {}?", quoted(near))),
        None => violation,
    }
}

fn check_confidence(meta: Node<'_>) -> Option<Violation> {
    let Some(confidence) = meta.get("confidence") else {
        return Some(absent(&below_meta("confidence"), "confidence"));
    };
    let rule = match confidence.as_f64() {
        Some(number) if (0.0..=1.0).contains(&number) => return None,
        Some(number) if number < 0.0 => "minimum",
        Some(_) => "maximum",
        None => "type",
    };
    let message = format!("found {}; allowed: a number from 0 to 1", found(confidence));
    Some(Violation::new(&below_meta("confidence"), rule, Code::OutputSchemaViolation, message))
}

fn check_explain(meta: Node<'_>) -> Option<Violation> {
    let Some(explain) = meta.get("explain") else { return Some(absent(&below_meta("explain"), "explain")) };
    let max = Meta::MAX_EXPLAIN;
    match explain.as_str() {
        Some(text) if text.len() <= max || text.chars().count() <= max => None,
        Some(text) => {
            let message =
                format!("found {}; allowed: at most {max}", counted(text.chars().count(), "character"));
            Some(Violation::new(&below_meta("explain"), "maxLength", Code::OutputSchemaViolation, message))
        }
        None => Some(mistyped(&below_meta("explain"), explain, "a string")),
    }
}

fn below_meta(key: &str) -> Path {
    below(&root("meta"), key)
}
