use cog_spec::{Enums, Format, IoPointers, Manifest, Modality, Overflow, Strictness, Tier};

/// The rules of a manifest that checks need besides the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// How fields are treated that the schema does not define (ruling R8).
    pub strictness: Strictness,
    /// Insights beyond the schema.
    pub overflow: Overflow,
    /// Values beyond the enums (ruling R22).
    pub enums: Enums,
    /// The format of the module.
    pub format: Format,
    /// The module's tier.
    pub tier: Option<Tier>,
    /// JSON pointers to the parts of the document.
    pub io: IoPointers,
    /// The part that a section named `output` is read as.
    pub output_alias: String,
    /// Whether the module accepts documents, so that a media source can be `application/pdf` (ruling R14).
    pub documents: bool,
    /// Whether the module accepts media, so that a model may report that it cannot read them.
    pub media: bool,
    /// Whether an answer of v1 or v2.1 without `data.confidence` fails.
    pub require_confidence: bool,
    /// Whether an answer of v1 or v2.1 without `data.rationale` fails (E3003).
    pub require_rationale: bool,
    /// Whether an answer of v2.2 or later without `data.rationale` fails (E3003).
    pub needs_rationale: bool,
    /// Whether a model may answer with an error of its own (ruling R89).
    pub model_errors: bool,
    /// Whether the module's error schema is enforced.
    pub enforce_error_schema: bool,
    /// The module's own codes, E5xxx to E9xxx (ruling R31).
    pub error_codes: Vec<String>,
    /// The types of context that an answer may emit.
    pub emits: Vec<String>,
}

impl From<&Manifest> for Rules {
    fn from(manifest: &Manifest) -> Self {
        Self {
            strictness: manifest.strictness,
            overflow: manifest.overflow,
            enums: manifest.enums.clone(),
            format: manifest.format,
            tier: manifest.tier,
            io: manifest.io.clone(),
            output_alias: manifest.compat.schema_output_alias.clone(),
            documents: manifest.modalities.input.contains(&Modality::Document),
            media: manifest.modalities.input.iter().any(|kind| *kind != Modality::Text),
            require_confidence: manifest.constraints.require_confidence,
            require_rationale: manifest.constraints.require_rationale,
            needs_rationale: manifest.needs_rationale,
            model_errors: manifest.failure.model_errors,
            enforce_error_schema: manifest.failure.must_return_error_schema,
            error_codes: manifest.error_codes.iter().map(|(code, _)| code.clone()).collect(),
            emits: manifest.context.emits.iter().map(|emitted| emitted.name.clone()).collect(),
        }
    }
}
