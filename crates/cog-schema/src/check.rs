//! Checks the four parts of a run against the contract.

mod data;
mod live;

use cog_json::{Node, Path, ToJson, Value, Writer};
use cog_spec::{Code, EnumStrategy, ErrorCode, Meta, RUNTIME_KEYS, Risk, Tier};

use crate::{
    contract::Contract,
    engine::EngineError,
    finding::{Finding, counted, findings, found},
    locate::{Locator, context_pointer},
    violation::{Violation, rooted},
    wording::{either, nearest, quoted},
};

pub use self::data::{DataCheck, ExcessInsights};

impl Contract {
    /// Checks the input of a caller, with paths from `input` (SPEC 2.3).
    ///
    /// The code is E1002 for a missing required field, E1003 for a wrong type, E1004 for an unsupported value, E1010 for an
    /// unsupported media type, and E1001 for everything else.
    pub fn check_input(&self, input: Node<'_>) -> Vec<Violation> {
        let Some(part) = &self.input else { return Vec::new() };
        let path = root("input");
        self.violations(&self.errors(part.id, input), &path, input, |finding| self.input_code(finding))
    }

    fn input_code(&self, finding: &Finding) -> Code {
        match finding.rule.as_str() {
            "required" => Code::MissingRequiredField,
            "type" => Code::TypeMismatch,
            "enum" | "const" => Code::UnsupportedValue,
            "pattern" if self.is_media_type(&finding.schema) => Code::UnsupportedMediaType,
            _ => Code::InvalidInput,
        }
    }

    /// Returns whether a keyword of the document belongs to the `media_type` of a media input.
    fn is_media_type(&self, schema: &str) -> bool {
        schema.ends_with("/media_type/pattern")
            && self
                .document
                .media
                .iter()
                .any(|media| schema.strip_prefix(media.as_str()).is_some_and(|inner| inner.starts_with('/')))
    }

    /// Returns the errors of a value at `base` as violations, with the codes that `code` returns.
    fn violations(
        &self,
        errors: &[EngineError],
        base: &Path,
        node: Node<'_>,
        code: impl Fn(&Finding) -> Code,
    ) -> Vec<Violation> {
        if errors.is_empty() {
            return Vec::new();
        }
        let locator = Locator::new(node);
        findings(errors, &locator, self.document())
            .into_iter()
            .map(|finding| {
                let code = code(&finding);
                let path = locator.path(base, &finding.at);
                rooted(finding, &path, code)
            })
            .collect()
    }
}

/// Returns the path of a part of the envelope.
fn root(part: &str) -> Path {
    let mut path = Path::root();
    path.push_key(part);
    path
}

/// Returns the path of a member.
fn below(path: &Path, key: &str) -> Path {
    let mut path = path.clone();
    path.push_key(key);
    path
}

/// Returns the violation of a missing required field.
fn absent(path: &Path, key: &str) -> Violation {
    Violation::new(path, "required", Code::OutputSchemaViolation, format!("`{key}` is required but missing"))
}

/// Returns the violation of a field with the wrong type.
fn mistyped(path: &Path, node: Node<'_>, allowed: &str) -> Violation {
    let message = format!("found {}; allowed: {allowed}", found(node));
    Violation::new(path, "type", Code::OutputSchemaViolation, message)
}

/// Returns the new violations whose path has no violation yet.
fn unreported(mut new: Vec<Violation>, reported: &[Violation]) -> Vec<Violation> {
    new.retain(|one| !reported.iter().any(|other| other.path == one.path));
    new
}

/// Returns the code of a finding in a model's answer (ruling R30).
fn answer_code(finding: &Finding) -> Code {
    match finding.rule.as_str() {
        "enum" => Code::InvalidEnum,
        _ => Code::OutputSchemaViolation,
    }
}

impl Contract {
    /// Checks a context that the module reads, with paths from `input._context` (docs/spec/context.md).
    pub fn check_context(&self, name: &str, node: Node<'_>) -> Vec<Violation> {
        let base = path(&["input", "_context", name]);
        self.check_at_pointer(&context_pointer("accepts", name), &base, node, Code::InvalidInput)
    }

    /// Checks a context that the module emits, with paths from `_emitted_context`.
    pub fn check_emitted(&self, name: &str, node: Node<'_>) -> Vec<Violation> {
        let base = path(&["_emitted_context", name]);
        self.check_at_pointer(&context_pointer("emits", name), &base, node, Code::OutputSchemaViolation)
    }

    /// Checks a value against the schema at a pointer of the document, if there is one.
    fn check_at_pointer(&self, pointer: &str, base: &Path, node: Node<'_>, code: Code) -> Vec<Violation> {
        let Some(id) = self.graph.at(pointer) else { return Vec::new() };
        self.violations(&self.errors(id, node), base, node, |_| code)
    }
}

fn path(keys: &[&str]) -> Path {
    let mut path = Path::root();
    keys.iter().for_each(|key| path.push_key(key));
    path
}

// Extensible enums: `{custom, reason}` instead of a listed value (rulings R20, R22).

/// The maximum length of a custom value, in characters.
const MAX_LEN: usize = 32;

impl Contract {
    /// Checks an object that replaces a listed value.
    fn check_custom(&self, object: Node<'_>, path: &Path) -> Result<(), Violation> {
        if self.rules.enums.strategy == EnumStrategy::Strict {
            let message = "found an object; `enums.strategy: strict` allows only the values of the enum";
            return Err(Violation::new(path, "extensible_enum", Code::InvalidEnum, message));
        }
        let tag = self.rules.enums.unknown_tag.as_str();
        let value = text_of(object, tag, path)?;
        text_of(object, "reason", path)?;
        let length = value.chars().count();
        if length <= MAX_LEN {
            return Ok(());
        }
        let message = format!("found {}; allowed: at most {MAX_LEN}", counted(length, "character"));
        Err(Violation::new(&below(path, tag), "maxLength", Code::OutputSchemaViolation, message))
    }
}

fn text_of<'a>(object: Node<'a>, key: &str, path: &Path) -> Result<&'a str, Violation> {
    let node = object.get(key).ok_or_else(|| absent(&below(path, key), key))?;
    node.as_str().ok_or_else(|| mistyped(&below(path, key), node, "a string"))
}

impl Contract {
    /// Checks the error of an answer, with paths from `error`, after its code was normalised (ruling R31): first the rules
    /// of the specification (SPEC 2.3), then the module's error schema if `failure.must_return_error_schema` is set.
    /// Every violation has the code E3001.
    pub fn check_error(&self, error: Node<'_>) -> Vec<Violation> {
        let path = root("error");
        if !error.is_object() {
            return vec![mistyped(&path, error, "an object")];
        }
        let mut violations: Vec<Violation> = [
            self.check_code(error, &path),
            check_string(error, &path, "message"),
            check_optional(error, &path, "recoverable", "true or false", |node| node.as_bool().is_some()),
            check_optional(error, &path, "suggestion", "a string", |node| node.is_string()),
            check_optional(error, &path, "details", "an object", |node| node.is_object()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let part = self.error.as_ref().filter(|_| self.rules.enforce_error_schema);
        let errors = part.map(|part| self.errors(part.id, error)).unwrap_or_default();
        let own = self.violations(&errors, &path, error, |_| Code::OutputSchemaViolation);
        violations.extend(unreported(own, &violations));
        violations
    }

    /// Returns whether the module's error schema names `code` and allows this one, so that it is never unknown (ruling R31). A code
    /// that a manifest can declare must be declared, or listed.
    pub fn allows_code(&self, text: &str) -> bool {
        let Some(error) = &self.error else { return false };
        let schemas = self.graph.members(error.id, "code");
        let code = Value::from(serde_json::Value::from(text));
        let is_allowed = !schemas.is_empty() && schemas.iter().all(|id| self.accepts(*id, code.node()));
        is_allowed && !ErrorCode::is_declarable(text) || self.lists_code(text)
    }

    /// Returns whether a branch of the error schema lists a code.
    fn lists_code(&self, text: &str) -> bool {
        let Some(error) = &self.error else { return false };
        let schemas = self.graph.all_possible(&self.graph.members(error.id, "code"));
        schemas.into_iter().any(|id| {
            let schema = self.graph.get(id);
            let listed = self.keyword(schema, "enum").and_then(serde_json::Value::as_array);
            let constant = self.keyword(schema, "const");
            listed.into_iter().flatten().chain(constant).any(|value| value == text)
        })
    }

    fn check_code(&self, error: Node<'_>, path: &Path) -> Option<Violation> {
        let mistyped = check_string(error, path, "code");
        if mistyped.is_some() {
            return mistyped;
        }
        let text = error.get("code")?.as_str()?;
        let mut declared = self.rules.error_codes.iter();
        if is_specified(text) || declared.any(|declared| declared == text) || self.allows_code(text) {
            return None;
        }
        let message = if ErrorCode::is_declarable(text) {
            format!("the manifest does not declare the code `{text}`")
        } else {
            format!(
                "found {}; allowed: E1000 to E4999, or a code that the manifest declares",
                found(error.get("code")?)
            )
        };
        Some(Violation::new(&below(path, "code"), "error_code", Code::OutputSchemaViolation, message))
    }
}

/// Returns whether a code matches `^E[1-4][0-9]{3}$` or is a text code of v2.2.
fn is_specified(text: &str) -> bool {
    let has_form = matches!(text.as_bytes(), [b'E', b'1'..=b'4', rest @ ..] if rest.len() == 3 && rest.iter().all(u8::is_ascii_digit));
    has_form || Code::from_text(text).is_some()
}

/// Checks a required member that is a string.
fn check_string(error: Node<'_>, path: &Path, key: &str) -> Option<Violation> {
    match error.get(key) {
        Some(_) => check_optional(error, path, key, "a string", |node| node.is_string()),
        None => Some(absent(&below(path, key), key)),
    }
}

/// Checks a member, if it is present; `allowed` describes what fits.
fn check_optional(
    error: Node<'_>,
    path: &Path,
    key: &str,
    allowed: &str,
    fits: impl Fn(Node<'_>) -> bool,
) -> Option<Violation> {
    let node = error.get(key)?;
    (!fits(node)).then(|| mistyped(&below(path, key), node, allowed))
}

// The meta of an answer.

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
        let Ok(checked) = Value::parse(&CheckedMeta { meta }.to_json()) else { return Vec::new() };
        let errors = self.errors(part.id, checked.node());
        let mut violations = self.violations(&errors, path, checked.node(), answer_code);
        if meta.get("risk").is_some_and(Node::is_object) {
            // Only the schema that names `risk` says whether it may be an object (ruling R20).
            for violation in violations.iter_mut().filter(|one| one.path == "meta.risk") {
                violation.code = Code::InvalidEnum;
            }
        }
        violations
    }

    /// Checks by the rules of the specification that the risk of a meta is a known level, or `{custom, reason}` if that is
    /// allowed. Other levels are left to the module's schema if it has the field.
    pub fn check_risk(&self, meta: Node<'_>) -> Option<Violation> {
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
            Some(level) if level.parse::<Risk>().is_ok() || self.facts.names_risk => None,
            level => Some(unknown_risk(risk, level, &below_meta("risk"))),
        }
    }

    /// Returns whether the manifest allows a custom risk (ruling R20). The module's schema decides too, if it names `risk`.
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
}

/// Written by hand: a meta without some of its members.
impl ToJson for CheckedMeta<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            for (key, value) in self.meta.members().filter(|(key, _)| !RUNTIME_KEYS.contains(key)) {
                w.field(key, &value);
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

#[cfg(test)]
mod tests;
