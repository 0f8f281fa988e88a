use std::fs;

use tempfile::TempDir;

use super::*;
use crate::testing::{Directory, MANIFEST};

/// Returns a working directory with `cognitive/modules/sorter`.
fn place() -> (TempDir, Finder) {
    let place = TempDir::new().unwrap();
    put(&place.path().join("cognitive/modules/sorter"));
    let finder =
        Finder::new(place.path(), vec![place.path().join("extra")], Some(&place.path().join("home")));
    (place, finder)
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
    let (place, finder) = place();
    for root in [".cognitive/modules", "extra", "home/.cognitive/modules"] {
        put(&place.path().join(root).join("sorter"));
        put(&place.path().join(root).join("second"));
    }
    assert_eq!(directory(&finder.find("sorter").unwrap()), place.path().join("cognitive/modules/sorter"));
    assert_eq!(directory(&finder.find("second").unwrap()), place.path().join(".cognitive/modules/second"));
}

#[test]
fn module_on_disk_precedes_a_built_in_one() {
    let (place, finder) = place();
    assert!(matches!(finder.find("code-reviewer"), Ok(Origin::BuiltIn(_))));
    put(&place.path().join("extra/code-reviewer"));
    assert!(matches!(finder.find("code-reviewer"), Ok(Origin::Directory(_))));
}

#[test]
fn path_is_a_directory_or_its_manifest() {
    let (place, finder) = place();
    let expected = place.path().join("cognitive/modules/sorter");
    for path in
        ["cognitive/modules/sorter", "./cognitive/modules/sorter", "cognitive/modules/sorter/module.yaml"]
    {
        let found = directory(&finder.find(path).unwrap());
        assert_eq!(fs::canonicalize(found).unwrap(), fs::canonicalize(&expected).unwrap(), "{path}");
    }
    assert_eq!(directory(&finder.find(expected.to_str().unwrap()).unwrap()), expected);
    put(&place.path().join("here"));
    assert_eq!(directory(&finder.find("here").unwrap()), place.path().join("here"));
}

#[test]
fn rejects_names_that_point_outside() {
    let (_place, finder) = place();
    for name in ["../secret", "a/../../b", "..\\x", "x\0y"] {
        let error = finder.find(name).unwrap_err();
        assert_eq!(error.code().as_str(), "E4007", "{name}");
        assert_eq!(finder.find_name(name).unwrap_err().code().as_str(), "E4007", "{name}");
    }
    assert_eq!(finder.find_name("..").unwrap_err().code().as_str(), "E4007");
}

#[test]
fn invalid_path_is_reported_as_a_path() {
    let (place, finder) = place();
    files::write_atomic(&place.path().join("notes.txt"), "x").unwrap();
    for (path, told) in [
        ("./nothing", "`./nothing` is not a directory"),
        ("../nothing", "`../nothing` is not a directory"),
        ("./notes.txt", "`./notes.txt` is not a manifest"),
    ] {
        assert_eq!(finder.find(path).unwrap_err().to_string(), told);
    }
}

#[test]
fn unknown_name_is_not_found() {
    let (_place, finder) = place();
    let long = "x".repeat(10_000);
    for name in ["", "nobody-has-this", "Sorter", "/no/such/directory", "./nothing", "$(x)", &long] {
        let error = finder.find(name).unwrap_err();
        assert_eq!(error.code().as_str(), "E4006", "{name}");
        assert!(error.to_string().len() < 300);
    }
}

#[test]
fn suggests_the_nearest_name() {
    let (_place, finder) = place();
    assert_eq!(finder.find("sortre").unwrap_err().suggestion(), "did you mean `sorter`?");
    assert_eq!(finder.find("code-reviwer").unwrap_err().suggestion(), "did you mean `code-reviewer`?");
}

#[test]
fn lists_each_module_once_with_its_errors() {
    let (place, finder) = place();
    put(&place.path().join("extra/sorter"));
    fs::create_dir_all(place.path().join("extra/no-module")).unwrap();
    fs::create_dir_all(place.path().join("extra/broken")).unwrap();
    files::write_atomic(&place.path().join("extra/broken/module.yaml"), "name: [").unwrap();
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
