//! Manifests in YAML and in front matter: no panic, and every module that loads can be validated.
#![no_main]

use std::sync::Arc;

use cog_module::{Level, ModuleFiles, Origin, validate};
use libfuzzer_sys::fuzz_target;

const SCHEMA: &str = r#"{"input": {"type": "object"}, "data": {"required": ["rationale"]}}"#;

fuzz_target!(|data: &[u8]| {
    let Some((&first, text)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let (manifest, rest) = text.split_once("\n%%%\n").unwrap_or((text, "Answer $ARGUMENTS."));
    let files = ModuleFiles::default().with("schema.json", SCHEMA);
    let files = match first % 2 {
        0 => files.with("module.yaml", manifest.to_owned()).with("prompt.md", rest.to_owned()),
        _ => files.with("MODULE.md", text.to_owned()),
    };
    let loads = files.clone().load().is_ok();
    let report = validate(&Origin::Memory(Arc::new(files)), Level::Any);
    assert_eq!(report.module.is_some(), loads);
    assert!(loads || !report.diagnostics.is_empty());
});
