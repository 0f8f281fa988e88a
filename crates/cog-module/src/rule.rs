//! Every check of a module's documents, each with a name of its own.

use std::fmt;

/// Declares the rules: variant, name, what it asks for.
macro_rules! rules {
    ($($variant:ident $name:literal $asks:literal;)+) => {
        /// A check of a module's documents. Its name is stable: tools may filter by it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Rule { $(#[doc = $asks] $variant),+ }

        impl Rule {
            /// Every rule, in the order in which a module is read.
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),+];

            /// Its name, `key-unknown`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Rule::$variant => $name),+ }
            }

            /// What it asks for, in a sentence.
            pub const fn asks(self) -> &'static str {
                match self { $(Rule::$variant => $asks),+ }
            }
        }
    };
}

rules! {
    ManifestMissing "manifest-missing" "The directory holds module.yaml, MODULE.md or module.md.";
    ManifestSeveral "manifest-several" "The directory holds one manifest; of several, the first is used.";
    PromptMissing "prompt-missing" "The prompt's file is there.";
    SchemaMissing "schema-missing" "The schema's file is there.";
    ConstraintsMissing "constraints-missing" "A v0 directory holds constraints.yaml.";
    FileUnreadable "file-unreadable" "Each file can be read and is a regular file.";
    FileTooLarge "file-too-large" "Manifest, prompt and schema are at most 1 MB each.";
    FileNotText "file-not-text" "Each file is UTF-8 text without NUL.";
    FileEmpty "file-empty" "Each file holds something.";
    FrontMatter "front-matter" "MODULE.md begins with YAML between two lines of three hyphens.";
    YamlSyntax "yaml-syntax" "The manifest is YAML, each key once.";
    YamlLimit "yaml-limit" "The manifest stays within the limits of depth, nodes and aliases.";
    ManifestShape "manifest-shape" "The manifest is a mapping of keys to values.";
    KeyMissing "key-missing" "Every required key is there.";
    KeyUnknown "key-unknown" "Every key is one that the specification names.";
    KeyType "key-type" "Every value has the type of its key.";
    KeyValue "key-value" "Every value is one that its key allows.";
    NameForm "name-form" "The name is lower case letters, digits and hyphens, a letter first.";
    NameDirectory "name-directory" "The directory is called like the module.";
    VersionForm "version-form" "The version has three numbers, as in 1.0.0.";
    FormatDeprecated "format-deprecated" "The format is one that will stay.";
    IoPointer "io-pointer" "Each pointer of `io` leads to a part of schema.json.";
    TestPair "test-pair" "Each entry of `tests` names an input and an expected file of the module.";
    SchemaSyntax "schema-syntax" "The schema is JSON.";
    SchemaInvalid "schema-invalid" "Each part of the schema is JSON Schema, Draft-07.";
    SchemaPart "schema-part" "The schema says what goes in (`input`) and what comes out (`data`, once `output`).";
    PromptEmpty "prompt-empty" "The prompt says something.";
    PromptPlaceholder "prompt-placeholder" "What looks like a placeholder is one, and the module can fill it.";
    LevelFormat "level-format" "The module has the format that was asked for.";
    LevelTier "level-tier" "A v2.2 module has a tier.";
    LevelSchemaPart "level-schema-part" "A v2.2 schema has input, data, meta and error.";
    LevelMeta "level-meta" "A v2.2 meta schema requires confidence, risk and an explain of at most 280.";
    LevelError "level-error" "A v2.2 error schema requires code and message.";
    LevelRationale "level-rationale" "A v2.2 data schema requires rationale.";
    LevelMedia "level-media" "A v2.5 module that takes media has a place for them in its input.";
    ExampleInput "example-input" "The example input fits the input schema.";
    ExampleOutput "example-output" "The example output fits the output schema.";
    GoldenPair "golden-pair" "Each golden input stands beside its expected file.";
    GoldenSyntax "golden-syntax" "Golden files are JSON.";
    GoldenInput "golden-input" "Each golden input fits the input schema.";
    GoldenExpected "golden-expected" "Each expected file fits the contract and the tier.";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
