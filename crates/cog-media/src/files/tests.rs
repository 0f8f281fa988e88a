#![expect(clippy::disallowed_methods, reason = "the files of the tests")]

use std::{
    fs,
    os::unix::{fs::symlink, net::UnixListener},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::{TempDir, tempdir};

use super::*;

/// Returns a root `in` with a file, and a directory of secrets `out` next to it.
fn setup() -> TempDir {
    let root = tempdir().unwrap();
    for (directory, text) in [("in/deep", "image"), ("out", "secret")] {
        fs::create_dir_all(root.path().join(directory)).unwrap();
        fs::write(root.path().join(directory).join("a.png"), text).unwrap();
    }
    root
}

fn read(guard: &FileGuard, path: &Path) -> Result<Vec<u8>, MediaError> {
    let mut bytes = Vec::new();
    guard.open(path, Store::with_limit(1000))?.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn code(guard: &FileGuard, path: &Path) -> String {
    let error = read(guard, path).unwrap_err();
    assert_eq!(guard.check(path).unwrap_err().to_string(), error.to_string());
    error.code().as_str().to_owned()
}

#[test]
fn reads_files_under_a_root_only() {
    let root = setup();
    let guard = FileGuard::new([root.path().join("in")]);
    assert_eq!(read(&guard, &root.path().join("in/deep/a.png")).unwrap(), b"image");
    assert_eq!(read(&guard, &root.path().join("out/../in/deep/./a.png")).unwrap(), b"image");
    for outside in
        ["out/a.png", "in/../out/a.png", "in/deep/../../out/a.png", "out", "out/no.png", "no/no.png"]
    {
        assert_eq!(code(&guard, &root.path().join(outside)), "E4007", "{outside}");
    }
    for nothing in ["in/no.png", "in/deep", "in", "in/no/no.png", "in/deep/a.png/b", "in/a\0.png"] {
        assert_eq!(code(&guard, &root.path().join(nothing)), "E1006", "{nothing}");
    }
    assert_eq!(code(&FileGuard::default(), &root.path().join("in/deep/a.png")), "E4007");
}

#[test]
fn root_can_be_a_file() {
    let root = setup();
    let guard = FileGuard::new([root.path().join("in/deep/a.png")]);
    assert_eq!(read(&guard, &root.path().join("in/deep/a.png")).unwrap(), b"image");
    fs::write(root.path().join("in/deep/b.png"), "other").unwrap();
    assert_eq!(code(&guard, &root.path().join("in/deep/b.png")), "E4007");
    let nothing = root.path().join("in/no.png");
    assert_eq!(code(&FileGuard::new([nothing.clone()]), &nothing), "E1006");
}

#[test]
fn follows_links_inside_the_roots_only() {
    let root = setup();
    let inside = root.path().join("in");
    symlink("deep", inside.join("directory")).unwrap();
    symlink("../out", inside.join("away")).unwrap();
    symlink("../out/a.png", inside.join("b.png")).unwrap();
    symlink("b.png", inside.join("c.png")).unwrap();
    symlink("loop", inside.join("loop")).unwrap();
    let guard = FileGuard::new([inside.clone()]);
    assert_eq!(read(&guard, &inside.join("directory/a.png")).unwrap(), b"image");
    for away in ["away/a.png", "b.png", "c.png"] {
        assert_eq!(code(&guard, &inside.join(away)), "E4007", "{away}");
    }
    assert_eq!(code(&guard, &inside.join("loop")), "E1006");
}

#[test]
fn refuses_pipes_sockets_and_devices_without_blocking() {
    let root = setup();
    let inside = root.path().join("in");
    mkfifoat(CWD, inside.join("pipe"), Mode::RWXU).unwrap();
    let _socket = UnixListener::bind(inside.join("socket")).unwrap();
    symlink("/dev/zero", inside.join("zero")).unwrap();
    let guard = FileGuard::new([inside.clone(), PathBuf::from("/dev")]);
    for special in ["pipe", "socket", "zero", "/dev/null", "/dev/tty", "/dev/stdin"] {
        let refused = read(&guard, &inside.join(special)).unwrap_err();
        assert!(["E1006", "E4007"].contains(&refused.code().as_str()), "{special}: {refused}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn refuses_kernel_files_under_any_root() {
    let guard = FileGuard::new([PathBuf::from("/")]);
    for path in [
        "/proc/self/environ",
        "/proc/1/cmdline",
        "/proc/version",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        if Path::new(path).exists() {
            assert_eq!(code(&guard, Path::new(path)), "E1006", "{path}");
        }
    }
}

#[test]
fn does_not_read_a_file_over_the_limit() {
    let root = setup();
    let path = root.path().join("in/large");
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let outcome = read(&FileGuard::new([root.path().join("in")]), &path);
    assert!(matches!(outcome, Err(MediaError::TooLarge { limit: 1000 })));
}

#[test]
fn directory_replaced_by_a_link_has_no_effect() {
    let root = setup();
    let inside = root.path().join("in");
    let directory = root.path().join("in/deep");
    let guard = FileGuard::new([inside.clone()]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::rename(&directory, inside.join("moved")).unwrap();
                symlink("../out", &directory).unwrap();
                fs::remove_file(&directory).unwrap();
                fs::rename(inside.join("moved"), &directory).unwrap();
            }
        });
        for _ in 0..2000 {
            if let Ok(bytes) = read(&guard, &directory.join("a.png")) {
                assert_eq!(bytes, b"image");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
