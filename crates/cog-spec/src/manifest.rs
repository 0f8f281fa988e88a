//! The manifest of a module, with every default resolved (SPEC 2.2, docs/spec/modules.md).

use crate::{
    CheckRule, ChunkType, Composition, ConfidenceRule, EnumStrategy, EvidenceRule, Generation, Modality,
    OnViolation, ResponseMode, RiskRule, Strictness, Tier, string_enum::string_enum,
};

string_enum! {
    /// The format of a module's directory (ruling R5).
    Format {
        /// `module.md`, two schema files, `constraints.yaml`, `prompt.txt`.
        V0 = "v0",
        /// `MODULE.md` and `schema.json` with `input` and `output`.
        V1 = "v1",
        /// `module.yaml` without a tier.
        V21 = "v2.1",
        /// `module.yaml` with a tier, or a schema with `meta`.
        V22 = "v2.2",
        /// `module.yaml` with `response` or `modalities`.
        V25 = "v2.5",
    }
}

impl Format {
    /// Returns whether a model writes an envelope (v2.2 and later) or only its data (docs/spec/modules.md, *What the model
    /// receives*).
    pub const fn asks_for_envelope(self) -> bool {
        matches!(self, Format::V22 | Format::V25)
    }

    /// Returns whether loading it gives a deprecation warning (ruling R7).
    pub const fn is_deprecated(self) -> bool {
        !self.asks_for_envelope()
    }
}

/// A manifest with the defaults of its tier.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The name of the module: lower case, digits, hyphens.
    pub name: String,
    /// The version of the module, a semantic version.
    pub version: String,
    /// The purpose of the module, one sentence.
    pub responsibility: String,
    /// The format of the directory from which it was read.
    pub format: Format,
    /// The tier; none in v0, v1 and v2.1, which have no thresholds.
    pub tier: Option<Tier>,
    /// The treatment of fields that the schema does not name.
    pub strictness: Strictness,
    /// The actions that the module must not take; part of the prompt.
    pub excludes: Vec<String>,
    /// The permissions of the module.
    pub policies: Policies,
    /// The tools that it may call.
    pub tools: ToolRules,
    /// Insights beyond the schema.
    pub overflow: Overflow,
    /// Values beyond the enums.
    pub enums: Enums,
    /// The contents of a failed answer.
    pub failure: Failure,
    /// Whether an answer of v2.2 or later needs a rationale: `rationale`, `required` or `optional`.
    pub needs_rationale: bool,
    /// The requirements for a model.
    pub requirements: Requirements,
    /// The parameters of the generation.
    pub generation: Generation,
    /// JSON pointers to the parts of `schema.json`.
    pub io: IoPointers,
    /// The older forms of answers that are accepted.
    pub compat: Compat,
    /// The source of `meta.risk`.
    pub risk_rule: RiskRule,
    /// Constraints of v1 and v2.1.
    pub constraints: Constraints,
    /// The callers that are allowed.
    pub invocation: Invocation,
    /// The context that it accepts and emits.
    pub context: ContextRule,
    /// The modules that it calls; none if the manifest has no `composition`.
    pub composition: Option<Composition>,
    /// What its confidence is, and what an answer needs to be accepted.
    pub confidence: ConfidenceRule,
    /// Whether its answers may be cached; none for the default of the tier.
    pub cache: Option<bool>,
    /// The form of its answers.
    pub response: Response,
    /// The kinds of content beyond text.
    pub modalities: Modalities,
    /// The module's own error codes, E5xxx–E9xxx, with their meaning.
    pub error_codes: Vec<(String, String)>,
    /// The golden tests, as pairs `input -> expected`.
    pub tests: Vec<(String, String)>,
    /// The named checks of its answers (docs/checks.md).
    pub checks: Vec<CheckRule>,
    /// What its runs collect about their answers (docs/evidence.md).
    pub evidence: EvidenceRule,
}

impl Manifest {
    /// Creates a manifest whose other fields have the defaults of its tier.
    pub fn with_defaults(name: impl Into<String>, format: Format, tier: Option<Tier>) -> Self {
        let by_tier = tier.unwrap_or(Tier::Decision);
        Self {
            name: name.into(),
            version: "0.1.0".to_owned(),
            responsibility: String::new(),
            format,
            tier,
            strictness: by_tier.strictness(),
            excludes: Vec::new(),
            policies: Policies::default(),
            tools: ToolRules::default(),
            overflow: Overflow::for_tier(by_tier),
            enums: Enums { strategy: by_tier.enum_strategy(), unknown_tag: "custom".to_owned() },
            failure: Failure::default(),
            needs_rationale: true,
            requirements: Requirements::default(),
            generation: Generation::default(),
            io: IoPointers::default(),
            compat: Compat::default(),
            risk_rule: RiskRule::MaxChangesRisk,
            constraints: Constraints::default(),
            invocation: Invocation::default(),
            context: ContextRule::default(),
            composition: None,
            confidence: ConfidenceRule::default(),
            cache: None,
            response: Response::for_format(format, tier),
            modalities: Modalities::default(),
            error_codes: Vec::new(),
            tests: Vec::new(),
            checks: Vec::new(),
            evidence: EvidenceRule::default(),
        }
    }
}

/// `policies`, in either form (ruling R10); everything is denied unless allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policies {
    /// Tools may be called.
    pub tools_allowed: bool,
    /// The module's tools and code may use the network (ruling R11).
    pub network_allowed: bool,
    /// The module's tools and code may write files.
    pub filesystem_write_allowed: bool,
    /// The module's tools and code may have side effects.
    pub side_effects_allowed: bool,
    /// The module's tools may run code.
    pub code_execution_allowed: bool,
    /// The policies that the manifest denies explicitly. What it leaves out is denied too.
    pub denied: DeniedPolicies,
}

/// The policies that a manifest denies explicitly, which are part of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeniedPolicies {
    /// `network: deny`, or `network_allowed: false`.
    pub network: bool,
    /// `filesystem_write: deny`.
    pub filesystem_write: bool,
    /// `side_effects: deny`.
    pub side_effects: bool,
    /// `code_execution: deny`.
    pub code_execution: bool,
}

impl Manifest {
    /// Whether the module's tools may use the network: its policy allows it, and no constraint of v1 forbids it.
    pub fn allows_network(&self) -> bool {
        self.policies.network_allowed && !self.constraints.no_network
    }

    /// Whether a stored answer may be returned; in tier exec only if the manifest allows it.
    pub fn may_be_cached(&self) -> bool {
        self.cache.unwrap_or(self.tier != Some(Tier::Exec))
    }

    /// Whether the module's tools may have side effects: its policy allows it, and no constraint of v1 forbids it.
    pub fn allows_side_effects(&self) -> bool {
        self.policies.side_effects_allowed && !self.constraints.no_side_effects
    }
}

/// `tools`: the tools that the module may call if `policies.tools_allowed` is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolRules {
    /// A tool that is neither allowed nor denied by name may be called.
    pub allow_by_default: bool,
    /// Tools that may be called.
    pub allowed: Vec<String>,
    /// Tools that may not be called.
    pub denied: Vec<String>,
}

/// `overflow`: insights beyond the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// `data.extensions.insights` is allowed.
    pub enabled: bool,
    /// The insights can be added to the schema later.
    pub recoverable: bool,
    /// The maximum number of insights.
    pub max_items: u32,
    /// Each insight must name its path in the schema.
    pub require_suggested_mapping: bool,
}

impl Overflow {
    /// Returns the defaults of a tier.
    pub const fn for_tier(tier: Tier) -> Self {
        Self {
            enabled: tier.overflow_enabled(),
            recoverable: true,
            max_items: tier.max_items(),
            require_suggested_mapping: true,
        }
    }
}

/// `enums`: values beyond the enums of the schema (ruling R22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enums {
    /// Whether `{custom, reason}` may replace a value.
    pub strategy: EnumStrategy,
    /// The name of `custom` in that object.
    pub unknown_tag: String,
}

/// `failure`: the contents of a failed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// `partial_data` may accompany `error`.
    pub partial_allowed: bool,
    /// The module's error schema is enforced.
    pub must_return_error_schema: bool,
    /// Whether a model may answer with an error of its own: `model_errors`, `allowed` or `never` (ruling R89).
    pub model_errors: bool,
    /// Whether the next provider is called also after a bad answer: `escalate`.
    pub escalate: bool,
}

impl Default for Failure {
    fn default() -> Self {
        Self { partial_allowed: true, must_return_error_schema: true, model_errors: true, escalate: false }
    }
}

/// `runtime_requirements`: the requirements for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirements {
    /// The provider must support schemas.
    pub structured_output: bool,
    /// The maximum size of the input, in tokens (E1005).
    pub max_input_tokens: Option<u64>,
    /// The capabilities that a model should have.
    pub preferred_capabilities: Vec<String>,
}

/// `io`: JSON pointers to the parts of `schema.json`; none if the part has its usual name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IoPointers {
    /// The pointer to the input schema.
    pub input: Option<String>,
    /// The pointer to the data schema.
    pub data: Option<String>,
    /// The pointer to the meta schema.
    pub meta: Option<String>,
    /// The pointer to the error schema.
    pub error: Option<String>,
}

/// `compat`: the older forms of answers that are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compat {
    /// Answers of v2.1 are wrapped.
    pub accepts_v21_payload: bool,
    /// Answers of v2.2 are accepted.
    pub accepts_v22_payload: bool,
    /// An answer without an envelope is wrapped (ruling R28).
    pub runtime_auto_wrap: bool,
    /// The part as which `output` of `schema.json` is read.
    pub schema_output_alias: String,
}

impl Default for Compat {
    fn default() -> Self {
        Self {
            accepts_v21_payload: true,
            accepts_v22_payload: true,
            runtime_auto_wrap: true,
            schema_output_alias: "data".to_owned(),
        }
    }
}

/// `constraints` of v1 and v2.1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Constraints {
    /// The module must not use the network.
    pub no_network: bool,
    /// It must have no side effects.
    pub no_side_effects: bool,
    /// It must not invent data.
    pub no_inventing_data: bool,
    /// An answer without confidence fails.
    pub require_confidence: bool,
    /// An answer without rationale fails.
    pub require_rationale: bool,
    /// When `data.behavior_equivalence` is false, confidence may not exceed this (E3006).
    pub behavior_equivalence_false_max_confidence: Option<f64>,
}

/// `invocation`: the callers that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocation {
    /// A person may call the module.
    pub user_invocable: bool,
    /// An agent may call the module.
    pub agent_invocable: bool,
}

impl Default for Invocation {
    fn default() -> Self {
        Self { user_invocable: true, agent_invocable: true }
    }
}

/// `response`: the form of the module's answers (SPEC 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// One envelope, a stream, or either.
    pub mode: ResponseMode,
    /// The form of the content in a stream.
    pub chunk_type: ChunkType,
    /// The number of bytes that are buffered before a delta is sent; 0 buffers nothing (ruling R47).
    pub buffer_size: u64,
    /// The reaction to a violation (ruling R49). If it is not set, violations are reported while the answer arrives, and
    /// an answer with a violation is requested again (ruling R73).
    pub on_violation: Option<OnViolation>,
    /// The maximum number of model calls, if it is set; [`Response::attempts`] has the defaults.
    pub max_attempts: Option<u32>,
}

/// The maximum number of model calls where a violation is retried and no number is set (rulings R49, R73).
const ATTEMPTS: u32 = 2;

impl Response {
    /// Returns the defaults: by tier for v2.5, otherwise sync (ruling R6).
    pub const fn for_format(format: Format, tier: Option<Tier>) -> Self {
        let mode = match (format, tier) {
            (Format::V25, Some(tier)) => tier.response_mode(),
            _ => ResponseMode::Sync,
        };
        Self { mode, chunk_type: ChunkType::Delta, buffer_size: 0, on_violation: None, max_attempts: None }
    }

    /// Returns the maximum number of model calls for a module of this tier (rulings R49, R73).
    pub fn attempts(&self, tier: Option<Tier>) -> u32 {
        match self.on_violation {
            Some(OnViolation::Report | OnViolation::Abort) => 1,
            Some(OnViolation::Retry) => self.max_attempts.unwrap_or(ATTEMPTS),
            None if tier == Some(Tier::Exec) => self.max_attempts.unwrap_or(1),
            None => self.max_attempts.unwrap_or(ATTEMPTS),
        }
    }
}

/// `modalities`: the kinds of content (SPEC 2.2); text is always included (ruling R12).
#[derive(Debug, Clone, PartialEq)]
pub struct Modalities {
    /// The kinds of the input.
    pub input: Vec<Modality>,
    /// The kinds of the output.
    pub output: Vec<Modality>,
    /// The module's own limits.
    pub constraints: MediaConstraints,
}

impl Default for Modalities {
    fn default() -> Self {
        Self {
            input: vec![Modality::Text],
            output: vec![Modality::Text],
            constraints: MediaConstraints::default(),
        }
    }
}

/// `modalities.constraints`: the module's own limits, within the limits of the specification.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MediaConstraints {
    /// The maximum size of a media file, in MB of 1,048,576 bytes.
    pub max_size_mb: Option<f64>,
    /// The maximum width and height of an image, in pixels.
    pub max_dimension: Option<u32>,
    /// The minimum width and height of an image, in pixels.
    pub min_dimension: Option<u32>,
    /// The maximum number of pixels of an image.
    pub max_pixels: Option<u64>,
    /// The maximum duration of audio or video, in seconds.
    pub max_duration_s: Option<f64>,
    /// The maximum number of media files.
    pub max_items: Option<u32>,
    /// Whether metadata are removed.
    pub strip_metadata: bool,
}

impl Default for MediaConstraints {
    fn default() -> Self {
        Self {
            max_size_mb: None,
            max_dimension: None,
            min_dimension: None,
            max_pixels: None,
            max_duration_s: None,
            max_items: None,
            strip_metadata: true,
        }
    }
}

/// `context`: the context that a module accepts and emits (ruling R10, docs/spec/context.md).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextRule {
    /// Whether children receive a copy (`fork`) instead of the parent's context (`main`).
    pub fork: bool,
    /// The types of context that the module reads.
    pub accepts: Vec<AcceptedContext>,
    /// The types of context that the module emits.
    pub emits: Vec<EmittedContext>,
}

/// An item of `context.accepts`: a type of context that a module reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AcceptedContext {
    /// The name of the type, a member of `_context`.
    pub name: String,
    /// A run without it fails.
    pub required: bool,
    /// The maximum number of turns of a conversation; the oldest are dropped first.
    pub max_turns: Option<u64>,
    /// The members that the model receives; all if there is no list.
    pub fields: Option<Vec<String>>,
    /// The file of its schema.
    pub schema: Option<String>,
    /// The maximum age in seconds of a stored value; none if the age does not matter.
    pub ttl: Option<u64>,
    /// The module whose emitted context is read if the input has none.
    pub from_module: Option<String>,
}

/// An item of `context.emits`: a type of context that a module emits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmittedContext {
    /// The name of the type, a member of `_emitted_context`.
    pub name: String,
    /// How long it is stored.
    pub ttl: ContextTtl,
    /// The pattern of the key under which it is stored.
    pub key_pattern: String,
    /// The file of its schema.
    pub schema: Option<String>,
}

/// How long emitted context is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ContextTtl {
    /// Not at all: it is part of this answer only (`0`).
    #[default]
    Request,
    /// This number of seconds.
    Seconds(u64),
    /// Without an expiry (`-1`).
    Unlimited,
}

impl ContextRule {
    /// The maximum size in bytes of `_context`, and of `_emitted_context`, as JSON.
    pub const MAX_BYTES: usize = 1 << 20;

    /// The types of the specification. A module may declare others.
    pub const TYPES: [&str; 6] = [
        "conversation_history",
        "user_profile",
        "session_state",
        "previous_result",
        "analysis_cache",
        "environment",
    ];

    /// Returns the declaration of a type that the module reads.
    pub fn accepted(&self, name: &str) -> Option<&AcceptedContext> {
        self.accepts.iter().find(|accepted| accepted.name == name)
    }

    /// Returns the declaration of a type that the module emits.
    pub fn emitted(&self, name: &str) -> Option<&EmittedContext> {
        self.emits.iter().find(|emitted| emitted.name == name)
    }
}

impl EmittedContext {
    /// The default of `key_pattern`.
    pub const DEFAULT_KEY: &str = "${module}";

    /// The placeholders of `key_pattern`.
    pub const PLACEHOLDERS: [&str; 4] = ["${module}", "${input_hash}", "${user_id}", "${session_id}"];
}

impl ContextTtl {
    /// Returns the time to live that a manifest states in seconds; -1 is unlimited.
    pub fn from_seconds(seconds: i64) -> Self {
        match u64::try_from(seconds) {
            Ok(0) => Self::Request,
            Ok(seconds) => Self::Seconds(seconds),
            Err(_) => Self::Unlimited,
        }
    }

    /// Returns the seconds as a manifest states them.
    pub fn seconds(self) -> i64 {
        match self {
            Self::Request => 0,
            Self::Seconds(seconds) => i64::try_from(seconds).unwrap_or(i64::MAX),
            Self::Unlimited => -1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_mode_follows_the_tier_only_in_v25() {
        let mode = |format, tier| Response::for_format(format, tier).mode;
        assert_eq!(mode(Format::V25, Some(Tier::Exploration)), ResponseMode::Streaming);
        assert_eq!(mode(Format::V25, None), ResponseMode::Sync);
        assert_eq!(mode(Format::V22, Some(Tier::Exploration)), ResponseMode::Sync);
    }

    #[test]
    fn a_module_without_a_tier_has_the_defaults_of_decision() {
        let manifest = Manifest::with_defaults("old", Format::V1, None);
        assert_eq!((manifest.strictness, manifest.overflow.max_items), (Strictness::Medium, 5));
    }

    #[test]
    fn models_write_envelopes_since_v22_and_older_formats_are_deprecated() {
        let found = Format::ALL.iter().map(|format| (format.asks_for_envelope(), format.is_deprecated()));
        assert!(found.eq([(false, true), (false, true), (false, true), (true, false), (true, false)]));
    }

    #[test]
    fn network_and_side_effects_need_a_policy_and_no_constraint_against_them() {
        for (allowed, forbidden) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut manifest = Manifest::with_defaults("a", Format::V1, None);
            manifest.policies.network_allowed = allowed;
            manifest.constraints.no_network = forbidden;
            let expected = allowed && !forbidden;
            assert_eq!((manifest.allows_network(), manifest.allows_side_effects()), (expected, false));

            let mut manifest = Manifest::with_defaults("a", Format::V1, None);
            manifest.policies.side_effects_allowed = allowed;
            manifest.constraints.no_side_effects = forbidden;
            assert_eq!((manifest.allows_network(), manifest.allows_side_effects()), (false, expected));
        }
    }

    #[test]
    fn answers_of_tier_exec_are_cached_only_if_the_manifest_allows_it() {
        let may = |tier, cache| {
            let manifest = Manifest::with_defaults("a", Format::V25, tier);
            Manifest { cache, ..manifest }.may_be_cached()
        };
        assert!(!may(Some(Tier::Exec), None) && may(Some(Tier::Exec), Some(true)));
        for tier in [None, Some(Tier::Decision), Some(Tier::Exploration)] {
            assert!(may(tier, None) && !may(tier, Some(false)), "{tier:?}");
        }
    }

    #[test]
    fn a_violation_is_retried_once_unless_the_manifest_or_tier_exec_says_otherwise() {
        let exec = Some(Tier::Exec);
        let other = Some(Tier::Decision);
        let cases = [
            (None, None, other, 2),
            (None, None, None, 2),
            (None, None, exec, 1),
            (None, Some(3), exec, 3),
            (None, Some(3), other, 3),
            (Some(OnViolation::Retry), None, exec, 2),
            (Some(OnViolation::Retry), Some(4), other, 4),
            (Some(OnViolation::Report), Some(3), other, 1),
            (Some(OnViolation::Abort), Some(3), other, 1),
        ];
        for (on_violation, max_attempts, tier, expected) in cases {
            let response = Response { on_violation, max_attempts, ..Response::for_format(Format::V25, tier) };
            assert_eq!(response.attempts(tier), expected, "{response:?} {tier:?}");
        }
    }

    #[test]
    fn declarations_are_found_by_name() {
        let accepted = |name: &str| AcceptedContext { name: name.to_owned(), ..AcceptedContext::default() };
        let emitted = |name: &str| EmittedContext {
            name: name.to_owned(),
            ttl: ContextTtl::Request,
            key_pattern: EmittedContext::DEFAULT_KEY.to_owned(),
            schema: None,
        };
        let rule = ContextRule {
            accepts: vec![accepted("a"), accepted("b")],
            emits: vec![emitted("c"), emitted("d")],
            ..ContextRule::default()
        };
        assert_eq!((rule.accepted("b"), rule.accepted("c")), (Some(&accepted("b")), None));
        assert_eq!((rule.emitted("d"), rule.emitted("a")), (Some(&emitted("d")), None));
    }

    #[test]
    fn seconds_of_a_manifest_are_read_and_written() {
        let times = [(0, ContextTtl::Request), (60, ContextTtl::Seconds(60)), (-1, ContextTtl::Unlimited)];
        for (seconds, ttl) in times {
            assert_eq!((ContextTtl::from_seconds(seconds), ttl.seconds()), (ttl, seconds));
        }
    }
}
