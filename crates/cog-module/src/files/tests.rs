use tempfile::TempDir;

use super::*;

#[test]
fn file_of_exactly_the_limit_is_read() {
    let temporary = TempDir::new().unwrap();
    let path = temporary.path().join("x");
    write_atomic(&path, "12345").unwrap();
    assert_eq!(read_text(&path, 5).unwrap(), "12345");
    assert!(matches!(read_text(&path, 4), Err(FileError::TooLarge { limit: 4 })));
}

#[test]
fn reads_regular_files_only() {
    let temporary = TempDir::new().unwrap();
    assert!(matches!(read_text(temporary.path(), 10), Err(FileError::NotAFile)));
    assert!(matches!(read_text(&temporary.path().join("x"), 10), Err(FileError::Missing)));
}

#[test]
fn write_replaces_the_file_atomically() {
    let temporary = TempDir::new().unwrap();
    let path = temporary.path().join("x");
    write_atomic(&path, "a long first text").unwrap();
    write_atomic(&path, "second").unwrap();
    assert_eq!(read_text(&path, 100).unwrap(), "second");
    assert_eq!(file_names(temporary.path()), ["x"]);
}

#[test]
fn write_creates_no_directory() {
    let temporary = TempDir::new().unwrap();
    let directory = temporary.path().join("a/b");
    let error = write_atomic(&directory.join("x"), "text").unwrap_err();
    assert!(matches!(error, FileError::NoDirectory { directory: missing } if missing == directory));
    assert!(matches!(write_atomic(temporary.path(), "text"), Err(FileError::NotAFile)));
    assert_eq!(directory_names(temporary.path()), [""; 0]);
}

#[cfg(unix)]
#[test]
fn write_preserves_permissions_links_and_devices() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let temporary = TempDir::new().unwrap();
    let file = temporary.path().join("file");
    let link = temporary.path().join("link");
    write_atomic(&file, "one").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&file, &link).unwrap();
    write_atomic(&link, "two").unwrap();
    assert_eq!(read_text(&file, 10).unwrap(), "two");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    write_atomic(Path::new("/dev/null"), "gone").unwrap();
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[cfg(unix)]
#[test]
fn copy_includes_links() {
    let temporary = TempDir::new().unwrap();
    let inner = temporary.path().join("from/inner/x");
    make_directory_of(&inner).unwrap();
    write_atomic(&inner, "text").unwrap();
    std::os::unix::fs::symlink("inner/x", temporary.path().join("from/link")).unwrap();
    copy_directory(&temporary.path().join("from"), &temporary.path().join("to")).unwrap();
    assert_eq!(fs::read_link(temporary.path().join("to/link")).unwrap(), Path::new("inner/x"));
    assert_eq!(read_text(&temporary.path().join("to/link"), 10).unwrap(), "text");
}

#[cfg(unix)]
#[test]
fn links_must_stay_inside_the_directory() {
    let temporary = TempDir::new().unwrap();
    let module = temporary.path().join("module");
    fs::create_dir_all(module.join("inner")).unwrap();
    write_atomic(&temporary.path().join("secret"), "secret").unwrap();
    write_atomic(&module.join("inner/own"), "own").unwrap();
    for (target, link) in [("../secret", "out"), ("inner/own", "in"), ("..", "above"), ("nowhere", "lost")] {
        std::os::unix::fs::symlink(target, module.join(link)).unwrap();
    }
    let read = |relative| read_text_within(&module, relative, 10);
    assert!(matches!(read("out"), Err(FileError::Outside)));
    assert!(matches!(read("above/secret"), Err(FileError::Outside)));
    assert!(matches!(read("../secret"), Err(FileError::Outside)));
    assert!(matches!(read("lost"), Err(FileError::Missing)));
    assert_eq!(read("in").unwrap(), "own");
    std::os::unix::fs::symlink(&module, temporary.path().join("other-name")).unwrap();
    assert_eq!(read_text_within(&temporary.path().join("other-name"), "in", 10).unwrap(), "own");
}
