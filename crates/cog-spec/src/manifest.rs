//! What a module says of itself, with every default resolved (SPEC 2.2, docs/spec/modules.md).

use cog_json::Value;

use crate::{
    ChunkType, EnumStrategy, Modality, OnViolation, ResponseMode, RiskRule, Strictness, Tier, tier::words,
};

words! {
    /// Which of the five formats a directory has (ruling R5).
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
    /// Whether the model is asked for a whole envelope (v2.2 and later) rather than for its data
    /// alone (docs/spec/modules.md, *What it is asked for*).
    pub const fn asks_for_envelope(self) -> bool {
        matches!(self, Format::V22 | Format::V25)
    }

    /// Whether loading it brings a deprecation warning (ruling R7).
    pub const fn is_deprecated(self) -> bool {
        !self.asks_for_envelope()
    }
}

/// A manifest, read and resolved: no field here is "as the tier says" any more.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Lower case, digits, hyphens.
    pub name: String,
    /// The module's own version, semantic.
    pub version: String,
    /// What it is for, in a sentence.
    pub responsibility: String,
    /// The format of the directory it was read from.
    pub format: Format,
    /// Its tier; none in v0, v1 and v2.1, which have no thresholds.
    pub tier: Option<Tier>,
    /// What happens to fields that the schema does not name.
    pub strictness: Strictness,
    /// What the module must not do; told to the model.
    pub excludes: Vec<String>,
    /// What the module may do.
    pub policies: Policies,
    /// Which tools it may call.
    pub tools: ToolRules,
    /// Insights beyond the schema.
    pub overflow: Overflow,
    /// Words beyond the enums.
    pub enums: Enums,
    /// What a failure may carry.
    pub failure: Failure,
    /// What the module needs of a model.
    pub requirements: Requirements,
    /// How the model is to generate.
    pub generation: Generation,
    /// JSON pointers to the parts of `schema.json`.
    pub io: IoPointers,
    /// What else the module's answers may look like.
    pub compat: Compat,
    /// Where `meta.risk` comes from.
    pub risk_rule: RiskRule,
    /// Constraints of v1 and v2.1.
    pub constraints: Constraints,
    /// Who may call it.
    pub invocation: Invocation,
    /// What context it takes and emits.
    pub context: ContextRule,
    /// The composition as written; a later stage reads it.
    pub composition: Option<Value>,
    /// How it answers.
    pub response: Response,
    /// What goes in and out, beyond text.
    pub modalities: Modalities,
    /// Codes of its own, E5xxx–E9xxx, with their meaning.
    pub error_codes: Vec<(String, String)>,
    /// `input -> expected` pairs of golden tests.
    pub tests: Vec<(String, String)>,
}

impl Manifest {
    /// A manifest that sets nothing but its name: every field has the default of its tier.
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
            requirements: Requirements::default(),
            generation: Generation::default(),
            io: IoPointers::default(),
            compat: Compat::default(),
            risk_rule: RiskRule::MaxChangesRisk,
            constraints: Constraints::default(),
            invocation: Invocation::default(),
            context: ContextRule::default(),
            composition: None,
            response: Response::for_format(format, tier),
            modalities: Modalities::default(),
            error_codes: Vec::new(),
            tests: Vec::new(),
        }
    }
}

/// `policies`, in either shape (ruling R10); everything is denied unless allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policies {
    /// Tools may be called.
    pub tools_allowed: bool,
    /// The module's tools and code may use the network (ruling R11).
    pub network_allowed: bool,
    /// They may write files.
    pub filesystem_write_allowed: bool,
    /// They may have side effects.
    pub side_effects_allowed: bool,
    /// They may run code.
    pub code_execution_allowed: bool,
}

/// `tools`: which tools the module may call, once `policies.tools_allowed` is set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolRules {
    /// A tool that is neither allowed nor denied by name may be called.
    pub allow_by_default: bool,
    /// Tools that may be called.
    pub allowed: Vec<String>,
    /// Tools that may not.
    pub denied: Vec<String>,
}

/// `overflow`: insights beyond the schema, kept and countable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// `data.extensions.insights` is allowed.
    pub enabled: bool,
    /// The insights can be recovered into the schema later.
    pub recoverable: bool,
    /// How many; there is always a number.
    pub max_items: u32,
    /// Each insight must say where in the schema it belongs.
    pub require_suggested_mapping: bool,
}

impl Overflow {
    /// The defaults of a tier.
    pub const fn for_tier(tier: Tier) -> Self {
        Self {
            enabled: tier.overflow_enabled(),
            recoverable: true,
            max_items: tier.max_items(),
            require_suggested_mapping: true,
        }
    }
}

/// `enums`: words beyond the enums of the schema (ruling R22).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enums {
    /// Whether `{custom, reason}` may stand for a word.
    pub strategy: EnumStrategy,
    /// The name of `custom` in that object.
    pub unknown_tag: String,
}

/// `failure`: what a failure may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// `partial_data` may stand beside `error`.
    pub partial_allowed: bool,
    /// The module's error schema is enforced.
    pub must_return_error_schema: bool,
}

impl Default for Failure {
    fn default() -> Self {
        Self { partial_allowed: true, must_return_error_schema: true }
    }
}

/// `runtime_requirements`: what the module needs of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirements {
    /// The provider must take a schema.
    pub structured_output: bool,
    /// The longest input, in tokens (E1005).
    pub max_input_tokens: Option<u64>,
    /// What a model had better be able to do.
    pub preferred_capabilities: Vec<String>,
}

/// `generation`: how the model is to generate. None leaves it to the vendor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Generation {
    /// 0 to 2.
    pub temperature: Option<f64>,
    /// The most tokens of output.
    pub max_tokens: Option<u64>,
    /// For models that take one.
    pub seed: Option<i64>,
    /// Texts at which to stop.
    pub stop: Vec<String>,
}

/// `io`: JSON pointers to the parts of `schema.json`; none where the part has its usual name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IoPointers {
    /// The input.
    pub input: Option<String>,
    /// The data.
    pub data: Option<String>,
    /// The meta.
    pub meta: Option<String>,
    /// The error.
    pub error: Option<String>,
}

/// `compat`: what else the module's answers may look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compat {
    /// Answers of v2.1 are wrapped.
    pub accepts_v21_payload: bool,
    /// Answers of v2.2 are taken.
    pub accepts_v22_payload: bool,
    /// An answer that is no envelope is wrapped (ruling R28).
    pub runtime_auto_wrap: bool,
    /// The part of `schema.json` that is called `output` is read as this part.
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

/// `invocation`: who may call the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocation {
    /// A person may.
    pub user_invocable: bool,
    /// An agent may.
    pub agent_invocable: bool,
}

impl Default for Invocation {
    fn default() -> Self {
        Self { user_invocable: true, agent_invocable: true }
    }
}

/// `context`, as a word or an object (ruling R10, docs/spec/context.md).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ContextRule {
    /// Children get a copy (`fork`) rather than the parent's own (`main`).
    pub fork: bool,
    /// The object as written, where it is one; a later stage reads it.
    pub declared: Option<Value>,
}

/// `response`: how the module answers (SPEC 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// One envelope, a stream, or either.
    pub mode: ResponseMode,
    /// How content travels in a stream.
    pub chunk_type: ChunkType,
    /// Bytes held before a delta leaves; 0 holds nothing (ruling R47).
    pub buffer_size: u64,
    /// What a violation does (ruling R49).
    pub on_violation: OnViolation,
    /// How often the model is asked at most.
    pub max_attempts: u32,
}

impl Response {
    /// The defaults: by tier for v2.5, sync for everything else (ruling R6).
    pub const fn for_format(format: Format, tier: Option<Tier>) -> Self {
        let mode = match (format, tier) {
            (Format::V25, Some(tier)) => tier.response_mode(),
            _ => ResponseMode::Sync,
        };
        Self {
            mode,
            chunk_type: ChunkType::Delta,
            buffer_size: 0,
            on_violation: OnViolation::Report,
            max_attempts: 2,
        }
    }
}

/// `modalities`: what goes in and out (SPEC 2.2); text always does (ruling R12).
#[derive(Debug, Clone, PartialEq)]
pub struct Modalities {
    /// What goes in.
    pub input: Vec<Modality>,
    /// What comes out.
    pub output: Vec<Modality>,
    /// Limits of the module's own.
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

/// `modalities.constraints`: limits of the module's own, tighter than the specification's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MediaConstraints {
    /// The largest medium, in MB of 1,048,576 bytes.
    pub max_size_mb: Option<f64>,
    /// The longest side of an image, in pixels.
    pub max_dimension: Option<u32>,
    /// The shortest side of an image, in pixels.
    pub min_dimension: Option<u32>,
    /// The most pixels of an image.
    pub max_pixels: Option<u64>,
    /// The longest sound or video, in seconds.
    pub max_duration_s: Option<f64>,
    /// How many media.
    pub max_items: Option<u32>,
    /// Whether metadata are stripped.
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
}
