//! The names of attributes, events and metrics.
//!
//! Those that begin with `gen_ai.` and `error.` are of the conventions for generative AI, which have no release yet: their
//! repository is `open-telemetry/semantic-conventions-genai`, and the constants of the crate `opentelemetry-semantic-conventions`
//! are deprecated. Those that begin with `cog.` are our own.

/// The schema of the names.
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev";

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const WORKFLOW: &str = "gen_ai.workflow.name";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const OUTPUT_TYPE: &str = "gen_ai.output.type";
pub(crate) const ERROR_TYPE: &str = "error.type";

pub(crate) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(crate) const REQUEST_TEMPERATURE: &str = "gen_ai.request.temperature";
pub(crate) const REQUEST_MAX_TOKENS: &str = "gen_ai.request.max_tokens";
pub(crate) const REQUEST_SEED: &str = "gen_ai.request.seed";
pub(crate) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(crate) const RESPONSE_ID: &str = "gen_ai.response.id";
pub(crate) const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
pub(crate) const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";

pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const CACHE_CREATION_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(crate) const COST_AMOUNT: &str = "gen_ai.usage.cost.amount";
pub(crate) const COST_CURRENCY: &str = "gen_ai.usage.cost.currency";
pub(crate) const COST_SOURCE: &str = "gen_ai.usage.cost.source";

pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

pub(crate) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";

pub(crate) const EVALUATION: &str = "gen_ai.evaluation.result";
pub(crate) const EVALUATION_NAME: &str = "gen_ai.evaluation.name";
pub(crate) const EVALUATION_VALUE: &str = "gen_ai.evaluation.score.value";
pub(crate) const EVALUATION_LABEL: &str = "gen_ai.evaluation.score.label";
pub(crate) const EVALUATION_EXPLANATION: &str = "gen_ai.evaluation.explanation";

pub(crate) const MODULE_VERSION: &str = "cog.module.version";
pub(crate) const MODULE_TIER: &str = "cog.module.tier";
pub(crate) const OK: &str = "cog.ok";
pub(crate) const RISK: &str = "cog.risk";
pub(crate) const MODEL: &str = "cog.model";
pub(crate) const ATTEMPTS: &str = "cog.attempts";
pub(crate) const REPAIRS: &str = "cog.repairs";
pub(crate) const FALLBACKS: &str = "cog.fallbacks";
pub(crate) const CACHED: &str = "cog.cached";
pub(crate) const RUN_INPUT_TOKENS: &str = "cog.usage.input_tokens";
pub(crate) const RUN_OUTPUT_TOKENS: &str = "cog.usage.output_tokens";
pub(crate) const RUN_COST: &str = "cog.cost.amount";
pub(crate) const RUN_CURRENCY: &str = "cog.cost.currency";
pub(crate) const HALTED: &str = "cog.tool.halted";
pub(crate) const SIGNAL: &str = "cog.telemetry.signal";

pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const OVERFLOW: &str = "otel.metric.overflow";

/// The values of [`OPERATION`].
pub(crate) const INVOKE_WORKFLOW: &str = "invoke_workflow";
pub(crate) const CHAT: &str = "chat";
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";

/// Returns the name of a provider in the conventions.
pub(crate) fn provider(name: &str) -> &str {
    match name {
        "gemini" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "moonshot" => "moonshot_ai",
        "azure" => "azure.ai.openai",
        other => other,
    }
}

// Where the attributes go: into a message of OTLP, or into a list in tests.

/// Receives attributes.
pub(crate) trait Attributes {
    /// Adds a string.
    fn text(&mut self, key: &str, value: &str);
    /// Adds a list of strings.
    fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>);
    /// Adds an integer.
    fn integer(&mut self, key: &str, value: i64);
    /// Adds a number.
    fn number(&mut self, key: &str, value: f64);
    /// Adds a truth value.
    fn flag(&mut self, key: &str, value: bool);

    /// Adds a string, if there is one.
    fn optional(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(key, value);
        }
    }

    /// Adds a count, if it is known.
    fn count(&mut self, key: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.integer(key, i64::try_from(value).unwrap_or(i64::MAX));
        }
    }
}
