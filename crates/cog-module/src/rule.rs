//! The checks of a module's files.

use std::fmt;

/// Declares the rules: variant, name, requirement.
macro_rules! rules {
    ($($variant:ident $name:literal $requirement:literal;)+) => {
        /// A check of a module's files. Its name is stable: tools may filter by it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule { $(#[doc = $requirement] $variant),+ }

        impl Rule {
            /// Every rule, in the order in which a module is read.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),+];

            /// Returns its name, such as `key-unknown`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Rule::$variant => $name),+ }
            }

            /// Returns its requirement in a sentence.
            pub const fn requirement(self) -> &'static str {
                match self { $(Rule::$variant => $requirement),+ }
            }
        }
    };
}

rules! {
    ManifestMissing "manifest-missing" "The directory contains module.yaml, MODULE.md or module.md.";
    ManifestSeveral "manifest-several" "The directory contains one manifest; if it contains several, the first is used.";
    PromptMissing "prompt-missing" "The prompt file exists.";
    SchemaMissing "schema-missing" "The schema file exists.";
    ConstraintsMissing "constraints-missing" "A v0 module has constraints.yaml.";
    FileUnreadable "file-unreadable" "Each file can be read and is a regular file.";
    FileTooLarge "file-too-large" "Manifest, prompt and schema are at most 1 MB each.";
    FileNotText "file-not-text" "Each file is UTF-8 text without NUL.";
    FileEmpty "file-empty" "No file is empty.";
    FrontMatter "front-matter" "MODULE.md starts with YAML between two `---` lines.";
    YamlSyntax "yaml-syntax" "The manifest is valid YAML without duplicate keys.";
    YamlLimit "yaml-limit" "The manifest is within the limits for depth, nodes and aliases.";
    ManifestShape "manifest-shape" "The manifest is a mapping of keys to values.";
    KeyMissing "key-missing" "Every required key is present.";
    KeyUnknown "key-unknown" "Every key is defined by the specification.";
    KeyType "key-type" "Every value has the type of its key.";
    KeyValue "key-value" "Every value is allowed for its key.";
    NameForm "name-form" "The name uses lower case letters, digits and hyphens, and starts with a letter.";
    NameDirectory "name-directory" "The directory has the same name as the module.";
    VersionForm "version-form" "The version has three numbers, such as 1.0.0.";
    FormatDeprecated "format-deprecated" "The format is not deprecated.";
    IoPointer "io-pointer" "Each pointer in `io` points to a section of schema.json.";
    TestPair "test-pair" "Each entry of `tests` names an input and an expected file of the module.";
    SchemaSyntax "schema-syntax" "The schema is valid JSON.";
    SchemaInvalid "schema-invalid" "Each section of the schema is valid JSON Schema, Draft-07.";
    SchemaDuplicate "schema-duplicate" "No object of the schema contains a key twice.";
    SchemaKeyword "schema-keyword" "Every keyword, format and required name of the schema has an effect.";
    SchemaNumber "schema-number" "Every number of the schema is a 64-bit integer or has the precision of a 64-bit float.";
    SchemaPart "schema-part" "The schema has an `input` section and a `data` section (formerly `output`).";
    PromptEmpty "prompt-empty" "The prompt is not empty.";
    PromptPlaceholder "prompt-placeholder" "Every placeholder in the prompt can be filled.";
    PromptCall "prompt-call" "Every call and every reference in the prompt names a module that it runs, with valid options.";
    ErrorCodeUndeclared "error-code-undeclared" "Every code of the module that the prompt names is in `error_codes`.";
    CompositionModule "composition-module" "Every module that is called exists, loads, and has an allowed version.";
    CompositionCycle "composition-cycle" "No module calls itself, not even through other modules.";
    CompositionDepth "composition-depth" "Calls are nested at most `max_depth` deep.";
    CompositionStep "composition-step" "Every step reads a result that exists, has a target, and can run.";
    CompositionMapping "composition-mapping" "Every path of a mapping is valid, and its values fit the schema of the target.";
    CompositionCondition "composition-condition" "Every condition is valid, fits the schemas, and can be true.";
    ModalityField "modality-field" "A module that accepts media has a media field in its input.";
    RiskRuleField "risk-rule-field" "The data contains the list that `meta.risk_rule` reads.";
    LevelFormat "level-format" "The module has the requested format.";
    LevelTier "level-tier" "A v2.2 module has a tier.";
    LevelSchemaPart "level-schema-part" "A v2.2 schema has input, data, meta and error.";
    LevelMeta "level-meta" "A v2.2 meta schema requires confidence, risk and an explain of at most 280 characters.";
    LevelError "level-error" "A v2.2 error schema requires code and message.";
    LevelRationale "level-rationale" "A v2.2 data schema requires rationale.";
    LevelMedia "level-media" "A v2.5 module that accepts media has a media field in its input.";
    ExampleInput "example-input" "The example input is valid for the input schema.";
    ExampleOutput "example-output" "The example output is valid for the output schema.";
    GoldenDirectory "golden-directory" "Golden tests are in `tests`.";
    GoldenPair "golden-pair" "Each golden input has an expected file.";
    GoldenSyntax "golden-syntax" "Golden files are valid JSON.";
    GoldenInput "golden-input" "Each golden input is valid for the input schema.";
    GoldenPath "golden-path" "Each path of an expected file names a field of the schema.";
    GoldenExpected "golden-expected" "Each expected file is valid for the schema and the tier.";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
