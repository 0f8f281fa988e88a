//! The interface of a tool: what host programs and crates that connect to other systems implement (docs/tools.md).

use std::{
    collections::HashMap,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use cog_harmony::{Part, ToolDefinition};
use cog_json::{Node, Value};
use cog_module::Module;
use cog_schema::{Contract, ForeignSchema, MemberCount, Rules, Violation, as_arguments};
use cog_spec::{Chunk, Code, Dialect, ErrorBody, ErrorCode, Format, Manifest, Progress, Tier, Usage};
use thiserror::Error;
use tokio::time::Instant;

use crate::{
    Cancellation,
    argument_names::ArgumentNames,
    call_model::CallModel,
    changes::{Change, with_changes},
    stream::ChunkQueue,
    trace_context::SpanContext,
};

/// A tool that a model may call: a function of the host program, a module, or a tool of another system.
///
/// [`ToolInfo::function`] creates one from a closure.
pub trait Tool: Send + Sync {
    /// Returns the name, the description, the schema of the arguments, and what a call may do.
    fn info(&self) -> &ToolInfo;

    /// Runs the tool. The arguments match its schema. Dropping the future cancels the call, which happens when its time
    /// limit has passed or the run is cancelled.
    ///
    /// The calls of a round run in the task of the run, so that a tool must not block.
    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a>;
}

/// The future of a call to a tool.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send + 'a>>;

/// The run that calls a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolContext {
    /// The identifier of the call, to which the result refers.
    pub call_id: String,
    /// The session of the run.
    pub session_id: String,
    /// The owner of the run, if runs have owners.
    pub owner: Option<String>,
    /// The time limit of the call.
    pub timeout: Duration,
    /// The maximum size of the result in bytes. A tool that reads its result from elsewhere stops there.
    pub max_result_bytes: usize,
    /// The cancellation of the run.
    pub cancellation: Cancellation,
    /// The span of the call, for a tool that passes the trace on. Without a listener that needs spans, it is the caller's span.
    pub span: Option<SpanContext>,
    /// The model of the run, for a tool that asks it something itself; none outside a run, and without a provider.
    pub model: Option<Arc<CallModel>>,
    /// Where the tool reports its progress.
    pub progress: ToolProgress,
}

/// Where a tool reports its progress, in the future of its call: a reader of the stream sees it. Outside a run, nothing does.
#[derive(Clone, Default)]
pub struct ToolProgress(Option<Reporting>);

#[derive(Clone)]
struct Reporting {
    tool: String,
    out: ChunkQueue,
    /// When the next report is shown.
    next: Arc<Mutex<Instant>>,
}

/// The shortest time between two reports of a call: a tool may report each byte.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// The maximum length of a report, in characters.
const MAX_PROGRESS: usize = 200;

impl ToolProgress {
    pub(crate) fn new(tool: &str, out: &ChunkQueue) -> Self {
        let next = Arc::new(Mutex::new(Instant::now()));
        Self(Some(Reporting { tool: tool.to_owned(), out: out.clone(), next }))
    }

    /// Reports how far the call is, in a short sentence. Reports that follow each other too quickly are dropped.
    pub fn report(&self, message: &str) {
        let Some(Reporting { tool, out, next }) = &self.0 else { return };
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now < *next {
            return;
        }
        *next = now + PROGRESS_INTERVAL;
        let message = message.chars().filter(|letter| !letter.is_control()).take(MAX_PROGRESS).collect();
        out.push(Chunk::Progress(Progress {
            percent: TOOLS_PERCENT,
            stage: Some("tool_call".to_owned()),
            message: Some(message),
            tool: Some(tool.clone()),
            ..Progress::default()
        }));
    }
}

impl fmt::Debug for ToolProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolProgress")
    }
}

/// The percentage of progress chunks between replies, whose number is unknown.
pub(crate) const TOOLS_PERCENT: u8 = 50;

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolOutput {
    /// The result as JSON. The model receives an object with `status: success` before its members, and any other value as
    /// `result`.
    pub value: Option<Value>,
    /// Images and other parts in addition to it, for a model that accepts them (appendix A.2.3).
    pub parts: Vec<Part>,
    /// The tokens that the tool spent on models; they count as tokens of the run.
    pub usage: Option<Usage>,
    /// The result has a high risk: from then on, every tool with side effects needs a confirmation.
    pub is_high_risk: bool,
}

impl From<Value> for ToolOutput {
    fn from(value: Value) -> Self {
        Self { value: Some(value), ..Self::default() }
    }
}

impl From<serde_json::Value> for ToolOutput {
    fn from(value: serde_json::Value) -> Self {
        Value::from(value).into()
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        serde_json::Value::from(text).into()
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Why a call failed. The model receives it as JSON and decides whether to call again (appendix A.2.2).
#[derive(Debug, Clone, PartialEq)]
pub struct ToolError {
    /// The kind of the error, a name such as `InvalidDateRange`.
    pub error_type: String,
    /// What happened, and what the model can do.
    pub message: String,
    /// The code, if the runtime or a module reports the error.
    pub code: Option<ErrorCode>,
    /// Details for the model.
    pub details: Option<Value>,
    /// Images and other parts that show the error, as in [`ToolOutput::parts`].
    pub parts: Vec<Part>,
    /// The tokens that the tool spent on models; they count as tokens of the run.
    pub usage: Option<Box<Usage>>,
}

impl ToolError {
    /// Creates an error of the tool.
    pub fn new(error_type: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            error_type: error_type.into(),
            message: message.into(),
            code: None,
            details: None,
            parts: Vec::new(),
            usage: None,
        }
    }

    /// Creates an error of the runtime, whose type is the name of the code.
    pub(crate) fn with_code(code: Code, message: impl Into<String>) -> Self {
        Self { code: Some(code.into()), ..Self::new(code.name(), message) }
    }
}

impl From<ErrorBody> for ToolError {
    fn from(error: ErrorBody) -> Self {
        let name = match &error.code {
            ErrorCode::Standard(code) => code.name().to_owned(),
            ErrorCode::Declared(code) => code.clone(),
        };
        Self { code: Some(error.code), details: error.details, ..Self::new(name, error.message) }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error_type, self.message)
    }
}

impl std::error::Error for ToolError {}

// A tool that is a function.

/// A tool that runs a function of the host program.
struct FunctionTool<F> {
    info: ToolInfo,
    function: F,
}

impl ToolInfo {
    /// Creates a tool that runs a function of the host program.
    ///
    /// ```
    /// use cog_run::{Value, tools::{ToolError, ToolInfo}};
    ///
    /// let parameters = Value::parse(r#"{
    ///     "type": "object", "required": ["celsius"], "properties": {"celsius": {"type": "number"}}
    /// }"#)?;
    /// let tool = ToolInfo::new("to_fahrenheit", "Converts a temperature.", &parameters)?.function(
    ///     async |arguments: Value, _| {
    ///         let celsius = arguments.get("celsius").and_then(|it| it.as_f64());
    ///         let celsius = celsius.ok_or_else(|| ToolError::new("OutOfRange", "Send a finite number."))?;
    ///         Ok(serde_json::json!({ "fahrenheit": celsius * 1.8 + 32.0 }))
    ///     },
    /// );
    /// # let _ = tool;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn function<F, R, O>(self, function: F) -> impl Tool + 'static
    where
        F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        FunctionTool { info: self, function }
    }
}

impl<F, R, O> Tool for FunctionTool<F>
where
    F: Fn(Value, ToolContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<O, ToolError>> + Send + 'static,
    O: Into<ToolOutput>,
{
    fn info(&self) -> &ToolInfo {
        &self.info
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> ToolFuture<'a> {
        let call = (self.function)(arguments, context.clone());
        Box::pin(async { call.await.map(Into::into) })
    }
}

/// Tools whose list may change while a program runs, such as the tools of a server.
pub trait ToolSource: Send + Sync {
    /// Returns how the names of its tools begin, such as `files__`.
    fn prefix(&self) -> &str;

    /// Returns the tools that exist now.
    ///
    /// # Errors
    /// Why there are none: a sentence for the user.
    fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, String>;
}

/// Returns whether a pattern in which `*` stands for any text matches a name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some((_, after)) = name.split_once(part) else { return false };
        name = after;
    }
    name.ends_with(last)
}

/// Returns whether a pattern may match a name that begins like this.
pub fn begins_like(pattern: &str, prefix: &str) -> bool {
    match pattern.split_once('*') {
        Some((first, _)) => first.starts_with(prefix) || prefix.starts_with(first),
        None => pattern.starts_with(prefix),
    }
}

/// The tools of a runtime. Each has its own name.
#[derive(Clone, Default)]
pub(crate) struct ToolList(Vec<Arc<dyn Tool>>);

impl ToolList {
    /// Adds a tool. One of the same name is replaced.
    pub(crate) fn add(&mut self, tool: Arc<dyn Tool>) {
        let name = &tool.info().name;
        self.0.retain(|other| other.info().name != *name);
        self.0.push(tool);
    }

    /// Returns these tools and further ones. A further one replaces the tool of the same name.
    pub(crate) fn with(&self, more: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let mut tools = self.clone();
        more.iter().for_each(|tool| tools.add(Arc::clone(tool)));
        tools.0
    }
}

impl fmt::Debug for dyn Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the tool {}", self.info().name)
    }
}

/// The maximum length of a tool's name, as vendors accept it.
const MAX_NAME: usize = 64;

/// The name of a tool, the schema of its arguments, and what a call may do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolInfo {
    /// The name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// What a call may do, which the policies of a module allow or deny.
    pub effects: ToolEffects,
    /// Whether a person must confirm each call (appendix A, exercise 2).
    pub needs_confirmation: bool,
    /// The time limit of a call, if it differs from the runtime's.
    pub timeout: Option<Duration>,
    /// Whether a call runs alone, in the order in which the model requests calls. Calls that change something always do.
    pub is_sequential: bool,
    pub(crate) schema: Arc<ArgumentsSchema>,
}

/// What a call of a tool may do (docs/spec/modules.md, `policies`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolEffects {
    /// It uses the network.
    pub network: bool,
    /// It writes files.
    pub filesystem_write: bool,
    /// It changes something outside the run.
    pub side_effects: bool,
    /// It runs code.
    pub code_execution: bool,
}

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidTool {
    /// The name is not one that vendors accept.
    #[error("`{name}` is not a valid tool name; use 1 to 64 letters, digits, `_` or `-`")]
    Name {
        /// The name.
        name: String,
    },
    /// The schema of the arguments is not a valid JSON Schema.
    #[error("the parameters of the tool `{name}` are not a valid schema: {problems}")]
    Parameters {
        /// The name of the tool.
        name: String,
        /// Every problem with its location.
        problems: String,
    },
}

impl ToolInfo {
    /// Describes a tool without effects. `parameters` is the JSON Schema of the arguments, which are an object; it is
    /// compiled once.
    ///
    /// # Errors
    /// A name that vendors do not accept, or a schema that is not valid.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: &Value,
    ) -> Result<Self, InvalidTool> {
        let name = name.into();
        if !is_name(&name) {
            return Err(InvalidTool::Name { name });
        }
        let schema = ArgumentsSchema::compile(&parameters.to_serde());
        let schema = schema.map_err(|problems| InvalidTool::Parameters { name: name.clone(), problems })?;
        Ok(Self::with_schema(name, description.into(), schema))
    }

    /// Describes a module as a tool: its input is the arguments.
    pub(crate) fn from_module(module: &Module) -> Self {
        let manifest: &Manifest = &module.manifest;
        let schema = ArgumentsSchema::from_contract(Arc::clone(&module.contract));
        Self {
            effects: ToolEffects::from(manifest),
            ..Self::with_schema(manifest.name.clone(), manifest.responsibility.clone(), schema)
        }
    }

    fn with_schema(name: String, description: String, schema: ArgumentsSchema) -> Self {
        Self {
            name,
            description,
            effects: ToolEffects::default(),
            needs_confirmation: false,
            timeout: None,
            is_sequential: false,
            schema: Arc::new(schema),
        }
    }

    /// Sets what a call may do.
    #[must_use]
    pub fn with_effects(mut self, effects: ToolEffects) -> Self {
        self.effects = effects;
        self
    }

    /// Requires that a person confirms each call.
    #[must_use]
    pub fn with_confirmation(mut self) -> Self {
        self.needs_confirmation = true;
        self
    }

    /// Returns the definition as a provider with this dialect receives it.
    pub fn definition_for(&self, dialect: Dialect) -> ToolDefinition {
        let definition = self.definition(dialect, |_| true);
        if dialect == Dialect::Anthropic { self.with_plain_arguments(definition) } else { definition }
    }

    /// Returns a definition whose arguments have names that each vendor accepts.
    pub(crate) fn with_plain_arguments(&self, definition: ToolDefinition) -> ToolDefinition {
        let parameters = self.schema.names.sent(definition.parameters);
        ToolDefinition { parameters, ..definition }
    }

    /// Returns the definition for a provider, in the dialect of its schemas. `is_strict` decides about a schema with these members
    /// that the provider could enforce.
    pub(crate) fn definition(
        &self,
        dialect: Dialect,
        is_strict: impl FnOnce(MemberCount) -> bool,
    ) -> ToolDefinition {
        let projected = self.schema.projected(dialect);
        let strict = dialect.adds_nulls() && projected.is_some_and(|it| is_strict(it.members));
        let sent = projected.filter(|_| strict || !dialect.adds_nulls()).map(|projected| &projected.schema);
        ToolDefinition {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: sent.unwrap_or(&self.schema.written).clone(),
            strict,
        }
    }
}

impl ToolEffects {
    /// Returns whether a call can change anything.
    pub const fn changes_something(self) -> bool {
        self.filesystem_write || self.side_effects || self.code_execution
    }
}

/// A module may do what its own tools may do.
impl From<&Manifest> for ToolEffects {
    fn from(manifest: &Manifest) -> Self {
        let policies = &manifest.policies;
        Self {
            network: manifest.allows_network(),
            filesystem_write: policies.filesystem_write_allowed,
            side_effects: manifest.allows_side_effects(),
            code_execution: policies.code_execution_allowed,
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_letter)
}

// The schema of a tool's arguments: checked locally, and sent in the dialect of each provider.

/// The compiled schema of a tool's arguments.
#[derive(Debug)]
pub(crate) struct ArgumentsSchema {
    /// A contract whose input is the arguments.
    contract: Arc<Contract>,
    /// The schema as it was written.
    written: Value,
    /// The arguments that have another name for some vendors.
    pub(crate) names: ArgumentNames,
    /// The projection to each dialect, created on first use; none where it would exclude arguments that the tool accepts.
    projected: Vec<OnceLock<Option<ProjectedArguments>>>,
}

/// The schema of arguments in a dialect.
#[derive(Debug)]
struct ProjectedArguments {
    schema: Value,
    members: MemberCount,
}

impl ArgumentsSchema {
    /// Compiles a schema of any draft.
    ///
    /// # Errors
    /// Every problem of the schema with its location.
    pub(crate) fn compile(parameters: &serde_json::Value) -> Result<Self, String> {
        let ForeignSchema { sent, document } = ForeignSchema::read(parameters);
        let manifest = Manifest::with_defaults("tool", Format::V25, Some(Tier::Exploration));
        let contract = Contract::compile(&document, &Rules::from(&manifest)).map_err(|problems| {
            problems.iter().map(|problem| problem.to_string()).collect::<Vec<_>>().join("; ")
        })?;
        Ok(Self::new(Arc::new(contract), &sent))
    }

    /// Returns the schema of a module's input.
    pub(crate) fn from_contract(contract: Arc<Contract>) -> Self {
        let written = contract.project_input(Dialect::JsonSchema).schema.unwrap_or_default();
        Self::new(contract, &written)
    }

    fn new(contract: Arc<Contract>, written: &serde_json::Value) -> Self {
        let projected = Dialect::ALL.iter().map(|_| OnceLock::new()).collect();
        let written = Value::from(as_arguments(written));
        Self { contract, names: ArgumentNames::find(&written), written, projected }
    }

    /// Returns the schema in a dialect; none if it is sent as it was written.
    fn projected(&self, dialect: Dialect) -> Option<&ProjectedArguments> {
        let index = Dialect::ALL.iter().position(|known| *known == dialect)?;
        self.projected.get(index)?.get_or_init(|| self.project(dialect)).as_ref()
    }

    fn project(&self, dialect: Dialect) -> Option<ProjectedArguments> {
        let projection = self.contract.project_input(dialect);
        let is_own = projection.dialect == dialect && dialect != Dialect::JsonSchema;
        if !is_own || projection.is_narrower {
            return None;
        }
        let members = projection.members();
        // A choice at the root has no type: vendors refuse it.
        let schema =
            projection.schema.filter(|schema| schema.get("type").is_some_and(|kind| kind == "object"))?;
        Some(ProjectedArguments { schema: Value::from(schema), members })
    }

    /// Returns every violation of the arguments, with paths from `arguments`.
    pub(crate) fn check(&self, arguments: Node<'_>) -> Vec<Violation> {
        let mut violations = self.contract.check_input(arguments);
        for violation in &mut violations {
            if let Some(path) = violation.path.strip_prefix("input") {
                violation.path = format!("arguments{path}");
            }
        }
        violations
    }

    /// Returns the arguments without the nulls that stand for omitted members; none if there are no such nulls.
    pub(crate) fn without_nulls(&self, arguments: Node<'_>) -> Option<Value> {
        let nulls = self.contract.added_nulls("input", arguments);
        let omitted = nulls.iter().map(|path| {
            let pointer = path.pointer();
            Some((pointer.strip_prefix("/input")?.to_owned(), Change::Omit))
        });
        let omitted: HashMap<String, Change> = omitted.collect::<Option<_>>()?;
        (!omitted.is_empty()).then(|| with_changes(arguments, &omitted))
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::Format;
    use serde_json::json;

    use super::*;

    fn info(name: &str, parameters: serde_json::Value) -> Result<ToolInfo, InvalidTool> {
        ToolInfo::new(name, "Adds.", &Value::from(parameters))
    }

    #[test]
    fn tool_with_a_pattern_of_another_engine_is_offered() {
        let look_ahead = r"^(?!\.)[a-z]+@[a-z.]+$";
        let parameters = json!({
            "type": "object",
            "properties": { "mail": { "type": "string", "pattern": look_ahead, "description": "Who." } },
            "patternProperties": { "^(?=x)": { "type": "integer" } },
            "additionalProperties": false,
        });
        let info = info("send", parameters).unwrap();
        let sent = info.definition(Dialect::JsonSchema, |_| true).parameters.to_string();
        assert!(
            sent.contains("Who. The tool checks it against a pattern.") && !sent.contains("(?!"),
            "{sent}"
        );
        let arguments = Value::parse(r#"{"mail": "a@b.c", "x1": 1}"#).unwrap();
        assert_eq!(info.schema.check(arguments.node()), []);
        let arguments = Value::parse(r#"{"mail": 7}"#).unwrap();
        assert_eq!(info.schema.check(arguments.node()).len(), 1);
    }

    #[test]
    fn star_in_a_pattern_stands_for_any_text() {
        for pattern in ["fs__read", "fs__*", "*", "fs__*d", "*__*", "f*_r*ad", "fs__read*"] {
            assert!(matches(pattern, "fs__read"), "{pattern}");
        }
        for pattern in ["fs__rea", "fs", "g*", "*_write", "fs__read*d", "f*x*d", ""] {
            assert!(!matches(pattern, "fs__read"), "{pattern}");
        }
    }

    #[test]
    fn rejects_names_that_vendors_do_not_accept() {
        let long = "x".repeat(65);
        for name in ["", "a b", "a.b", "ä", "a/b", long.as_str()] {
            assert!(matches!(info(name, json!({})), Err(InvalidTool::Name { .. })), "{name}");
        }
        assert!(info(&"x".repeat(64), json!({})).is_ok());
    }

    #[test]
    fn module_has_no_effect_that_its_constraints_forbid() {
        let mut manifest = Manifest::with_defaults("m", Format::V1, None);
        (manifest.policies.network_allowed, manifest.policies.side_effects_allowed) = (true, true);
        let side_effects = ToolEffects { side_effects: true, ..ToolEffects::default() };
        assert_eq!(ToolEffects::from(&manifest), ToolEffects { network: true, ..side_effects });
        manifest.constraints.no_network = true;
        assert_eq!(ToolEffects::from(&manifest), side_effects);
        manifest.constraints.no_side_effects = true;
        assert_eq!(ToolEffects::from(&manifest), ToolEffects::default());
    }

    #[test]
    fn rejects_invalid_schema_with_its_location() {
        let error = info("add", json!({ "type": "objekt" })).unwrap_err();
        assert!(error.to_string().contains("type"), "{error}");
    }

    #[test]
    fn definition_is_in_the_dialect_of_the_provider() {
        let parameters = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
        let info = info("add", parameters.clone()).unwrap();
        let strict = info.definition(Dialect::OpenAiStrict, |_| true);
        assert!(strict.strict);
        assert_eq!(strict.parameters.to_serde()["required"], json!(["a"]));
        for dialect in [Dialect::JsonSchema, Dialect::Prompt, Dialect::JsonObject] {
            let plain = info.definition(dialect, |_| true);
            assert!(!plain.strict);
            assert_eq!(plain.parameters.to_serde(), parameters);
        }
    }

    /// Returns what a model is sent of a property's schema, and whether the provider enforces it.
    fn sent(dialect: Dialect, property: &serde_json::Value, is_strict: bool) -> (serde_json::Value, bool) {
        let parameters = json!({ "type": "object", "properties": { "p": property } });
        let definition = info("t", parameters).unwrap().definition(dialect, |_| is_strict);
        (definition.parameters.to_serde()["properties"]["p"].clone(), definition.strict)
    }

    #[test]
    fn what_a_strict_dialect_would_exclude_is_sent_as_written() {
        let text = json!({ "type": "string" });
        let json_value = json!({ "$ref": "#/properties/p", "type": "object" });
        let narrowed = [
            json!({ "type": "object", "additionalProperties": text }),
            json!({ "type": "object", "properties": { "a": text }, "additionalProperties": true }),
            json!({ "type": "object", "patternProperties": { "^S_": text }, "additionalProperties": false }),
            json!({}),
            json!({ "type": "array" }),
            json!({ "anyOf": [text, { "type": "object", "additionalProperties": json_value }] }),
            json!({ "type": "array", "prefixItems": [text] }),
            json!({ "type": ["string", "null"] }),
        ];
        for property in &narrowed {
            assert_eq!(sent(Dialect::OpenAiStrict, property, true), (property.clone(), false));
        }
        for property in &narrowed[..5] {
            assert_eq!(sent(Dialect::Anthropic, property, true), (property.clone(), false));
        }
        for property in &narrowed[3..6] {
            assert_eq!(sent(Dialect::Gemini, property, true), (property.clone(), false));
        }
        let tuple = json!({ "type": "array", "prefixItems": [text, text], "items": false });
        for property in [text.clone(), json!({ "type": ["string", "null"], "default": null }), tuple] {
            assert!(sent(Dialect::OpenAiStrict, &property, true).1, "{property}");
            assert!(sent(Dialect::Anthropic, &property, true).1, "{property}");
            assert_eq!(sent(Dialect::OpenAiStrict, &property, false), (property.clone(), false));
        }
    }

    #[test]
    fn schema_that_contains_itself_in_all_of_is_sent_as_written() {
        let node = json!({ "type": "object", "properties": {
            "left": { "allOf": [{ "$ref": "#/$defs/node" }], "description": "The one." },
            "right": { "$ref": "#/$defs/node", "minProperties": 1 },
        } });
        let parameters = json!({ "type": "object", "properties": { "root": { "$ref": "#/$defs/node" } }, "$defs": { "node": node } });
        let info = info("tree", parameters.clone()).unwrap();
        for dialect in Dialect::ALL {
            let sent = info.definition(*dialect, |_| true);
            assert_eq!((sent.parameters.to_serde(), sent.strict), (parameters.clone(), false), "{dialect}");
        }
    }

    #[test]
    fn choice_of_objects_is_one_object() {
        let a = json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
        let b = json!({ "type": "object", "properties": { "b": { "type": "integer" } }, "required": ["b"] });
        let info =
            info("either", json!({ "oneOf": [a, { "$ref": "#/$defs/B" }], "$defs": { "B": b } })).unwrap();
        for dialect in Dialect::ALL {
            let sent = info.definition(*dialect, |_| true).parameters.to_serde();
            assert_eq!(sent["properties"], json!({ "a": { "type": "string" }, "b": { "type": "integer" } }));
            assert!(sent.get("oneOf").is_none() && sent["description"].as_str().unwrap().contains("oneOf"));
        }
        let both = Value::parse(r#"{"a": "", "b": 1}"#).unwrap();
        assert_eq!(info.schema.check(both.node()).len(), 1);
    }

    #[test]
    fn definitions_of_the_schema_resolve() {
        let parameters = json!({ "type": "object", "properties": { "at": { "$ref": "#/$defs/point" } },
            "$defs": { "point": { "type": "array", "items": { "type": "number" } } } });
        let info = info("draw", parameters).unwrap();
        let valid = Value::parse(r#"{"at": [1, 2]}"#).unwrap();
        let invalid = Value::parse(r#"{"at": ["x"]}"#).unwrap();
        assert!(info.schema.check(valid.node()).is_empty());
        assert_eq!(info.schema.check(invalid.node())[0].path, "arguments.at[0]");
    }
}
