//! Named checks of an answer: rules that a schema cannot express (docs/checks.md).

use std::cell::OnceCell;

use cog_json::{Node, Path};
use cog_schema::{Contract, Types};
use cog_spec::{CheckRule, CheckSeverity};

use crate::{
    condition::{Cases, Condition, Document, EvaluationError, FailedValue, Failure},
    cursor::{Cursor, TextError},
    grounding::{Grounding, TextSource},
    path::{AnyPath, ListPath, PathRoot, PathStep},
    static_type::StaticType,
    typing,
};

/// The named checks of a module, compiled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checks(Vec<Check>);

/// A named check.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Its name, unique in its module.
    pub name: String,
    /// Whether an answer that fails it is an error.
    pub severity: CheckSeverity,
    when: Option<Condition>,
    test: CheckTest,
    message: Option<String>,
    /// The values of the answer that it reads; none if it runs only on the complete answer.
    bases: Option<Vec<Path>>,
    reads_input: bool,
    reads_meta: bool,
}

/// What a check tests.
#[derive(Debug, Clone, PartialEq)]
enum CheckTest {
    That(Condition),
    Grounded(Grounding),
}

/// Why an answer fails a check.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckFailure {
    /// The name of the check.
    pub name: String,
    /// Whether it is an error.
    pub severity: CheckSeverity,
    /// What is wrong, with the values that decide.
    pub message: String,
    /// The paths that it read: `data.total`, `data.items[*].amount`.
    pub paths: Vec<String>,
    /// Single values at these paths.
    pub values: Vec<FailedValue>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The answer passes, or the check does not apply.
    Passed,
    /// The answer fails. `reads_null` is whether a value was null, which some dialects write for an omitted member.
    Failed {
        /// Why.
        failure: Box<CheckFailure>,
        /// Whether the result could change if nulls were left out.
        reads_null: bool,
    },
}

/// A problem of a check of the manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckFinding {
    /// The index of the check in the manifest.
    pub index: usize,
    /// The key with the problem: `that`, `when` or `grounded`.
    pub key: &'static str,
    /// What it is; the range is one of the text of the key.
    pub error: TextError,
    /// Whether the module loads nevertheless.
    pub is_warning: bool,
}

impl Checks {
    /// Compiles the checks of a manifest, and compares them with the schemas of input, data and meta, if there is a contract.
    ///
    /// A check with an error is left out.
    pub fn compile(rules: &[CheckRule], contract: Option<&Contract>) -> (Self, Vec<CheckFinding>) {
        let document = document_type(contract);
        let mut findings = Vec::new();
        let mut checks = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let mut compiler = Compiler { index, document: &document, findings: &mut findings };
            checks.extend(compiler.check(rule));
        }
        (Self(checks), findings)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the checks, in the order of the manifest.
    pub fn iter(&self) -> impl Iterator<Item = &Check> {
        self.0.iter()
    }
}

/// What is known about `$`: the input of the run, and data and meta of the answer.
fn document_type(contract: Option<&Contract>) -> StaticType<'_> {
    let part = |name: &str| contract.and_then(|contract| contract.shape(name)).map(StaticType::Schema);
    // A schema of meta may describe further members, and need not repeat these.
    let stated = StaticType::object([
        ("confidence", StaticType::Confidence),
        ("risk", StaticType::Any),
        ("explain", StaticType::Types(Types::STRING)),
    ]);
    let meta = match part("meta") {
        Some(own) => StaticType::either([own, stated]),
        None => stated,
    };
    StaticType::object([
        ("input", part("input").unwrap_or(StaticType::Any)),
        ("data", part("data").unwrap_or(StaticType::Any)),
        ("meta", meta),
    ])
}

/// One answer that is checked.
pub struct CheckedAnswer<'a> {
    input: Option<Node<'a>>,
    data: Node<'a>,
    meta: Option<Node<'a>>,
    texts: OnceCell<TextSource>,
}

impl<'a> CheckedAnswer<'a> {
    /// Creates it from the input of the run and the data of the answer.
    pub const fn new(input: Option<Node<'a>>, data: Node<'a>) -> Self {
        Self { input, data, meta: None, texts: OnceCell::new() }
    }

    /// Adds the meta of the answer.
    #[must_use]
    pub fn with_meta(self, meta: Node<'a>) -> Self {
        Self { meta: Some(meta), ..self }
    }

    /// Runs a check.
    pub fn run(&self, check: &Check) -> Verdict {
        let document = Document::Answer { input: self.input, data: Some(self.data), meta: self.meta };
        let mut reads_null = false;
        if let Some(when) = &check.when {
            match when.evaluate_noting_null(document) {
                (Ok(false), _) => return Verdict::Passed,
                (Ok(true), null) => reads_null = null,
                (Err(error), null) => return check.failed(failure_of(when, document), Some(&error), null),
            }
        }
        match &check.test {
            CheckTest::That(condition) => match condition.evaluate_noting_null(document) {
                (Ok(true), _) => Verdict::Passed,
                (Ok(false), null) => check.failed(condition.explain(document), None, reads_null || null),
                (Err(error), null) => {
                    check.failed(failure_of(condition, document), Some(&error), reads_null || null)
                }
            },
            CheckTest::Grounded(grounding) => {
                let texts = self.texts.get_or_init(|| TextSource::new(self.input));
                match grounding.failure(texts, document) {
                    None => Verdict::Passed,
                    Some(failure) => check.failed(failure, None, reads_null),
                }
            }
        }
    }

    /// Runs all checks, and returns those that fail.
    pub fn failures(&self, checks: &Checks) -> Vec<CheckFailure> {
        let failed = checks.iter().filter_map(|check| match self.run(check) {
            Verdict::Passed => None,
            Verdict::Failed { failure, .. } => Some(*failure),
        });
        failed.collect()
    }
}

/// Returns what a condition reads that cannot be evaluated.
fn failure_of(condition: &Condition, document: Document<'_>) -> Failure {
    Failure { detail: None, ..condition.explain(document) }
}

impl Check {
    /// Returns whether all values of the answer that it reads are complete, once the value at `path` is. `is_read` has an
    /// entry for each of them.
    pub fn note(&self, path: &Path, is_read: &mut Vec<bool>) -> bool {
        let Some(bases) = &self.bases else { return false };
        is_read.resize(bases.len(), false);
        for (base, is_read) in bases.iter().zip(is_read.iter_mut()) {
            *is_read |= base.starts_with(path);
        }
        is_read.iter().all(|is_read| *is_read)
    }

    /// Returns the maximum depth of the values that it waits for; 0 if it runs on the complete answer.
    pub fn depth(&self) -> usize {
        self.bases.iter().flatten().map(Path::depth).max().unwrap_or_default()
    }

    /// Returns whether it reads the input of the run.
    pub const fn reads_input(&self) -> bool {
        self.reads_input
    }

    /// Returns whether it reads the meta of the answer, which is only known at the end.
    pub const fn reads_meta(&self) -> bool {
        self.reads_meta
    }

    /// Returns what it tests, as it is written.
    pub fn text(&self) -> &str {
        match &self.test {
            CheckTest::That(condition) => condition.text(),
            CheckTest::Grounded(grounding) => grounding.text(),
        }
    }

    fn failed(&self, failure: Failure, error: Option<&EvaluationError>, reads_null: bool) -> Verdict {
        let said = match &self.message {
            Some(message) => message.trim_end().trim_end_matches('.').to_owned(),
            None => match &self.test {
                CheckTest::That(condition) => format!("`{}` is not true", condition.text()),
                CheckTest::Grounded(_) => "the text does not occur in the input".to_owned(),
            },
        };
        let message = match (error, &failure.detail) {
            (Some(error), _) => format!("{said} ({error})"),
            (None, Some(detail)) => format!("{said} ({detail})"),
            (None, None) => said,
        };
        let Failure { paths, values, .. } = failure;
        let failure =
            CheckFailure { name: self.name.clone(), severity: self.severity, message, paths, values };
        Verdict::Failed { failure: Box::new(failure), reads_null }
    }
}

// Compiles a check.

struct Compiler<'s, 'c, 'f> {
    index: usize,
    document: &'s StaticType<'c>,
    findings: &'f mut Vec<CheckFinding>,
}

impl Compiler<'_, '_, '_> {
    fn check(&mut self, rule: &CheckRule) -> Option<Check> {
        let when = rule.when.as_deref().map(|text| self.condition("when", text));
        let test = match (&rule.that, &rule.grounded) {
            (Some(that), _) => self.condition("that", that).map(CheckTest::That),
            (None, Some(path)) => self.grounding(path).map(CheckTest::Grounded),
            // The manifest reports a check without a test.
            (None, None) => None,
        }?;
        let when = match when {
            Some(when) => Some(when?),
            None => None,
        };
        let mut reads = match &test {
            CheckTest::That(condition) => condition.reads(),
            CheckTest::Grounded(grounding) => vec![grounding.path().clone()],
        };
        reads.extend(when.iter().flat_map(Condition::reads));
        let reads_meta = reads.iter().any(|path| is_of(path, "meta"));
        if !reads_meta && !reads.iter().any(|path| is_of(path, "data")) {
            let error = TextError::new(0..0, "the check reads nothing of the answer")
                .suggest("Read a value of the answer, such as `$.data.total`.");
            let key = if rule.that.is_some() { "that" } else { "grounded" };
            self.report(key, error, true);
        }
        if let CheckTest::That(condition) = &test {
            self.lint(condition, when.as_ref());
        }
        Some(Check {
            name: rule.name.clone(),
            severity: rule.severity,
            message: rule.message.clone(),
            bases: if reads_meta { None } else { bases(&reads) },
            reads_input: matches!(test, CheckTest::Grounded(_))
                || reads.iter().any(|path| is_of(path, "input")),
            reads_meta,
            when,
            test,
        })
    }

    /// Parses a condition and compares it with the schemas.
    fn condition(&mut self, key: &'static str, text: &str) -> Option<Condition> {
        let condition = match Condition::parse(text) {
            Ok(condition) => condition,
            Err(error) => {
                self.report(key, error, false);
                return None;
            }
        };
        let errors = typing::check(&condition, self.document);
        let is_valid = errors.is_empty();
        errors.into_iter().for_each(|error| self.report(key, error, false));
        is_valid.then_some(condition)
    }

    fn grounding(&mut self, text: &str) -> Option<Grounding> {
        match self.grounded_path(text) {
            Ok(path) => Some(Grounding::new(text, path)),
            Err(error) => {
                self.report("grounded", error, false);
                None
            }
        }
    }

    fn grounded_path(&self, text: &str) -> Result<ListPath, TextError> {
        let form = |error: TextError| error.suggest("Write a path such as `$.data.quotes[*].text`.");
        let mut cursor = Cursor::new(text);
        let path = match AnyPath::read(&mut cursor) {
            Some(Ok(AnyPath::List(path))) => path,
            Some(Ok(AnyPath::Value(path))) => ListPath::from(&path),
            Some(Err(error)) => return Err(error),
            None => return Err(form(TextError::new(cursor.next_range(), "expected a path"))),
        };
        if !cursor.is_at_end() {
            return Err(form(TextError::new(cursor.next_range(), "expected the end of the path")));
        }
        if !is_of(&path, "data") {
            return Err(form(TextError::new(0..text.len(), "the path is not one of the answer")));
        }
        let types = typing::text_types(&path, self.document).map_err(|absent| TextError {
            range: 0..text.len(),
            message: absent.message,
            suggestion: absent.suggestion,
        })?;
        if !types.meet(Types::STRING) {
            return Err(form(TextError::new(0..text.len(), format!("the value is {types}, not a text"))));
        }
        Ok(path)
    }

    /// Reports a check that always passes or never does.
    fn lint(&mut self, that: &Condition, when: Option<&Condition>) {
        let applies = when.map_or_else(Cases::every, |when| self.cases(when, true));
        let error = if applies.is_empty() {
            self.never("the check never applies: its condition is never true", when.unwrap_or(that))
        } else if applies.and(&self.cases(that, true)).is_empty() {
            self.never("no answer can pass the check", that)
        } else if applies.and(&self.cases(that, false)).is_empty() {
            self.never("every answer passes the check", that)
        } else {
            return;
        };
        self.report(if applies.is_empty() { "when" } else { "that" }, error, true);
    }

    fn cases(&self, condition: &Condition, value: bool) -> Cases {
        Cases::from_expression(condition.root(), value, &|operand| {
            (condition.name_of(operand), typing::values(self.document, &operand.content))
        })
    }

    fn never(&self, message: &str, condition: &Condition) -> TextError {
        let error = TextError::new(0..condition.text().len(), message);
        match condition.operands().as_slice() {
            [operand] => {
                let text = condition.text().get(operand.range.clone()).unwrap_or_default();
                let values = typing::values(self.document, &operand.content);
                error.suggest(format!("By the schema, `{text}` is {values}."))
            }
            _ => error.suggest("Compare it with the values that the schema allows."),
        }
    }

    fn report(&mut self, key: &'static str, error: TextError, is_warning: bool) {
        self.findings.push(CheckFinding { index: self.index, key, error, is_warning });
    }
}

fn is_of(path: &ListPath, part: &str) -> bool {
    path.root == PathRoot::Document
        && matches!(path.steps.first(), Some(Some(PathStep::Key(key))) if key.as_str() == part)
}

/// Returns the values of the answer that must be complete before a check can run; none if it needs the complete answer.
fn bases(reads: &[ListPath]) -> Option<Vec<Path>> {
    let mut bases: Vec<Path> = Vec::new();
    for read in reads.iter().filter(|read| is_of(read, "data")) {
        let mut base = Path::root();
        for step in &read.steps {
            match step {
                Some(PathStep::Key(key)) => base.push_key(key.as_str()),
                Some(PathStep::Index(index)) => match usize::try_from(*index) {
                    Ok(index) => base.push_index(index),
                    // It counts from an end that is not known before.
                    Err(_) => break,
                },
                None => break,
            }
        }
        // Insights over the limit are removed at the end.
        let is_late =
            base.depth() < 2 || base.segments().nth(1) == Some(cog_json::Segment::Key("extensions"));
        if is_late {
            return None;
        }
        if !bases.contains(&base) {
            bases.push(base);
        }
    }
    (!bases.is_empty()).then_some(bases)
}

#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;
