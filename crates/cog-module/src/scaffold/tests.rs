use tempfile::TempDir;

use super::*;
use crate::{BuiltinModule, Level, validate};

#[test]
fn new_module_is_valid_at_every_level_and_tier() {
    let parent = TempDir::new().unwrap();
    for kind in Kind::ALL {
        for tier in Tier::ALL {
            let name = format!("my-{}-{tier}", kind.as_str());
            let directory = new(parent.path(), &name, *kind, *tier).unwrap();
            let report = validate(&Origin::Directory(directory), Level::V25);
            assert!(report.diagnostics.is_empty(), "{:?}", report.diagnostics);
            let manifest = report.module.unwrap().manifest;
            assert_eq!(
                (manifest.name.as_str(), manifest.tier, report.cases),
                (name.as_str(), Some(*tier), 2)
            );
        }
    }
}

#[test]
fn copy_has_every_file_and_its_own_name() {
    let parent = TempDir::new().unwrap();
    let shipped = Origin::BuiltIn(BuiltinModule::find("code-reviewer").unwrap());
    let directory = copy(parent.path(), "my-reviewer", &shipped).unwrap();
    let report = validate(&Origin::Directory(directory.clone()), Level::V22);
    assert!(report.diagnostics.is_empty(), "{:?}", report.diagnostics);
    let text = files::read_text(&directory.join("module.yaml"), files::MAX_PART).unwrap();
    assert!(text.starts_with("# Reviews a piece of code") && text.contains("name: my-reviewer\n"), "{text}");

    let again = copy(parent.path(), "second", &Origin::Directory(directory)).unwrap();
    assert_eq!(crate::load(&Origin::Directory(again)).unwrap().manifest.name, "second");
}

#[test]
fn images_are_copied_unchanged() {
    let parent = TempDir::new().unwrap();
    let shipped = BuiltinModule::find("image-analyzer").unwrap();
    let directory = copy(parent.path(), "eye", &Origin::BuiltIn(shipped)).unwrap();
    let image = directory.join("assets/example-input.png");
    let expected = shipped.file("assets/example-input.png").unwrap();
    assert_eq!(image.metadata().unwrap().len(), expected.len() as u64);
}

#[test]
fn nothing_is_overwritten_or_left_behind() {
    let parent = TempDir::new().unwrap();
    new(parent.path(), "one", Kind::Answer, Tier::Decision).unwrap();
    assert!(matches!(new(parent.path(), "one", Kind::Answer, Tier::Exec), Err(ScaffoldError::Exists { .. })));
    for name in ["..", "a/b", "Upper", "", "../x"] {
        assert!(
            matches!(new(parent.path(), name, Kind::Answer, Tier::Exec), Err(ScaffoldError::Name { .. })),
            "{name}"
        );
    }
    assert_eq!(files::directory_names(parent.path()), ["one"]);
}
