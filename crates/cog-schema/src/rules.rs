use cog_spec::{Enums, Format, IoPointers, Manifest, Modality, Overflow, Strictness, Tier};

/// What a manifest says about its contract beyond the schema: all that a check needs to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// What happens to fields that the schema does not name (ruling R8).
    pub strictness: Strictness,
    /// Insights beyond the schema.
    pub overflow: Overflow,
    /// Words beyond the enums (ruling R22).
    pub enums: Enums,
    /// The format of the module's directory.
    pub format: Format,
    /// The module's tier.
    pub tier: Option<Tier>,
    /// JSON pointers to the parts of the document.
    pub io: IoPointers,
    /// The part that is called `output` is read as this one.
    pub output_alias: String,
    /// The module takes documents, so that `application/pdf` may stand in a media source (ruling R14).
    pub documents: bool,
    /// An answer of v1 or v2.1 without `data.confidence` fails.
    pub require_confidence: bool,
    /// An answer of v1 or v2.1 without `data.rationale` fails (E3003); later formats always require it.
    pub require_rationale: bool,
    /// The module's error schema is enforced.
    pub enforce_error_schema: bool,
    /// Codes of the module's own, E5xxx to E9xxx (ruling R31).
    pub error_codes: Vec<String>,
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
            require_confidence: manifest.constraints.require_confidence,
            require_rationale: manifest.constraints.require_rationale,
            enforce_error_schema: manifest.failure.must_return_error_schema,
            error_codes: manifest.error_codes.iter().map(|(code, _)| code.clone()).collect(),
        }
    }
}
