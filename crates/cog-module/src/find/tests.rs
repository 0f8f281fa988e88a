use std::fs;

use tempfile::TempDir;

use super::*;
use crate::testing::{Directory, MANIFEST};

/// Returns a working directory with `cognitive/modules/sorter`.
fn setup() -> (TempDir, Finder) {
    let root = TempDir::new().unwrap();
    put(&root.path().join("cognitive/modules/sorter"));
    let finder = Finder::new(root.path(), vec![root.path().join("extra")], Some(&root.path().join("home")));
    (root, finder)
}

fn put(directory: &Path) {
    fs::create_dir_all(directory).unwrap();
    files::write_atomic(&directory.join("module.yaml"), MANIFEST).unwrap();
}

fn directory(origin: &Origin) -> PathBuf {
    match origin {
        Origin::Directory(path) => path.clone(),
        other => panic!("not a directory: {other:?}"),
    }
}

#[test]
fn searches_directories_in_order() {
    let (root, finder) = setup();
    for parent in [".cognitive/modules", "extra", "home/.cognitive/modules"] {
        put(&root.path().join(parent).join("sorter"));
        put(&root.path().join(parent).join("second"));
    }
    assert_eq!(directory(&finder.find("sorter").unwrap()), root.path().join("cognitive/modules/sorter"));
    assert_eq!(directory(&finder.find("second").unwrap()), root.path().join(".cognitive/modules/second"));
}

#[test]
fn module_on_disk_precedes_a_built_in_one() {
    let (root, finder) = setup();
    assert!(matches!(finder.find("code-reviewer"), Ok(Origin::BuiltIn(_))));
    put(&root.path().join("extra/code-reviewer"));
    assert!(matches!(finder.find("code-reviewer"), Ok(Origin::Directory(_))));
}

#[test]
fn path_is_a_directory_or_its_manifest() {
    let (root, finder) = setup();
    let expected = root.path().join("cognitive/modules/sorter");
    for path in
        ["cognitive/modules/sorter", "./cognitive/modules/sorter", "cognitive/modules/sorter/module.yaml"]
    {
        let found = directory(&finder.find(path).unwrap());
        assert_eq!(fs::canonicalize(found).unwrap(), fs::canonicalize(&expected).unwrap(), "{path}");
    }
    assert_eq!(directory(&finder.find(expected.to_str().unwrap()).unwrap()), expected);
    put(&root.path().join("here"));
    assert_eq!(directory(&finder.find("here").unwrap()), root.path().join("here"));
}

#[test]
fn rejects_names_that_point_outside() {
    let (_root, finder) = setup();
    for name in ["../secret", "a/../../b", "..\\x", "x\0y"] {
        let error = finder.find(name).unwrap_err();
        assert_eq!(error.code().as_str(), "E4007", "{name}");
        assert_eq!(finder.find_name(name).unwrap_err().code().as_str(), "E4007", "{name}");
    }
    assert_eq!(finder.find_name("..").unwrap_err().code().as_str(), "E4007");
}

#[test]
fn invalid_path_is_reported_as_a_path() {
    let (root, finder) = setup();
    files::write_atomic(&root.path().join("notes.txt"), "x").unwrap();
    for (path, message) in [
        ("./nothing", "`./nothing` is not a directory"),
        ("../nothing", "`../nothing` is not a directory"),
        ("./notes.txt", "`./notes.txt` is not a manifest"),
    ] {
        assert_eq!(finder.find(path).unwrap_err().to_string(), message);
    }
}

#[test]
fn unknown_name_is_not_found() {
    let (_root, finder) = setup();
    let long = "x".repeat(10_000);
    for name in ["", "no-such-module", "Sorter", "/no/such/directory", "./nothing", "$(x)", &long] {
        let error = finder.find(name).unwrap_err();
        assert_eq!(error.code().as_str(), "E4006", "{name}");
        assert!(error.to_string().len() < 300);
    }
}

#[test]
fn suggests_the_nearest_name() {
    let (root, finder) = setup();
    put(&root.path().join("triage"));
    assert_eq!(finder.find("traige").unwrap_err().suggestion(), "Did you mean `triage`?");
    assert_eq!(finder.find_name("traige").unwrap_err().suggestion(), "Run `cog list` to see all modules.");
    assert_eq!(finder.find("sortre").unwrap_err().suggestion(), "Did you mean `sorter`?");
    assert_eq!(finder.find("code-reviwer").unwrap_err().suggestion(), "Did you mean `code-reviewer`?");
}

#[test]
fn lists_each_module_once_with_its_errors() {
    let (root, finder) = setup();
    put(&root.path().join("extra/sorter"));
    fs::create_dir_all(root.path().join("extra/no-module")).unwrap();
    fs::create_dir_all(root.path().join("extra/broken")).unwrap();
    files::write_atomic(&root.path().join("extra/broken/module.yaml"), "name: [").unwrap();
    let listed = finder.list();
    let names: Vec<&str> = listed.iter().map(|listed| listed.name.as_str()).collect();
    assert!(names.is_sorted() && names.contains(&"sorter") && names.contains(&"code-reviewer"));
    assert!(!names.contains(&"no-module"));
    assert_eq!(names.iter().filter(|name| **name == "sorter").count(), 1);
    assert!(listed.iter().any(|listed| listed.name == "broken" && listed.manifest.is_err()));
}

#[test]
fn built_in_modules_are_found_without_directories() {
    let directory = Directory::empty();
    let finder = Finder::new(directory.path(), Vec::new(), None);
    assert_eq!(finder.list().len(), BuiltinModule::all().len());
}

#[test]
fn long_names_are_shortened_in_messages() {
    let (_root, finder) = setup();
    for name in [format!("../{}", "x".repeat(10_000)), "y".repeat(10_000)] {
        assert!(finder.find(&name).unwrap_err().to_string().len() < 300);
        assert!(finder.find_name(&name).unwrap_err().to_string().len() < 300);
    }
}

#[test]
fn given_paths_precede_the_searched_directories() {
    let (root, finder) = setup();
    for path in ["work/sorter", "set/second", "work/Not A Name"] {
        put(&root.path().join(path));
    }
    let given = |path: &str| finder.clone().with_paths([root.path().join(path)]);
    let found = given("work/sorter").unwrap();
    assert!(directory(&found.find_name("sorter").unwrap()).ends_with("work/sorter"));
    assert_eq!(found.origins().iter().filter(|(name, _)| name == "sorter").count(), 1);
    assert!(directory(&given("set").unwrap().find_name("second").unwrap()).ends_with("set/second"));
    assert!(matches!(given("work/Not A Name"), Err(FindError::Unnamed { .. })));
    assert!(matches!(given("nowhere"), Err(FindError::NoDirectory { .. })));
}
