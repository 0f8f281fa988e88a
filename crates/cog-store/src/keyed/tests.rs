#![expect(clippy::disallowed_methods, reason = "the tests look at files and read the clock")]

use std::{path::Path, process::Command, time::Duration};

use super::*;

const LIMITS: Limits = Limits { entries: 4, bytes: 100, entry_bytes: 60 };

const ALICE: Option<&str> = Some("token:alice");

const BOB: Option<&str> = Some("token:bob");

/// Returns a key. Files with the same time are in the order of their names.
fn key(owner: Option<&str>, number: usize) -> Key {
    Key::new(owner, format!("halt_{number:032x}"))
}

/// Returns a store of each kind. Those in directories are in `place`.
fn stores(place: &Path) -> [KeyedStore; 3] {
    [KeyedStore::in_memory(LIMITS), flat(place), per_owner(place)]
}

fn flat(place: &Path) -> KeyedStore {
    KeyedStore::in_directory(place.join("flat"), Layout::Flat, Durability::Kill, LIMITS)
}

fn per_owner(place: &Path) -> KeyedStore {
    KeyedStore::in_directory(place.join("owners"), Layout::DirectoryPerOwner, Durability::PowerCut, LIMITS)
}

fn insert(store: &KeyedStore, key: &Key, value: &str) -> Result<(), StoreError> {
    store.insert(key, value.as_bytes(), None, SystemTime::now())
}

fn get(store: &KeyedStore, key: &Key) -> Option<String> {
    match store.get(key).unwrap() {
        Lookup::Value(value) => Some(String::from_utf8(value).unwrap()),
        Lookup::Claimed | Lookup::Missing => None,
    }
}

#[test]
fn value_is_of_its_owner_and_name() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        assert_eq!(get(&store, &key(ALICE, 1)), None);
        for (owner, value) in [(None, "operator"), (ALICE, "alice"), (BOB, "bob")] {
            insert(&store, &key(owner, 1), "old").unwrap();
            insert(&store, &key(owner, 1), value).unwrap();
        }
        assert_eq!(get(&store, &key(ALICE, 1)).as_deref(), Some("alice"));
        assert_eq!(get(&store, &key(None, 1)).as_deref(), Some("operator"));
        assert_eq!(get(&store, &key(BOB, 2)), None);
        store.remove(&key(ALICE, 1));
        assert_eq!(get(&store, &key(ALICE, 1)), None);
        let size = store.size().unwrap();
        assert_eq!((size.entries, size.bytes), (2, 11));
        assert!(size.oldest.is_some());
        assert_eq!(store.clear().unwrap(), 2);
        assert_eq!(store.size().unwrap(), StoreSize { entries: 0, bytes: 0, oldest: None });
    }
}

#[test]
fn name_from_outside_names_no_other_file() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        insert(&store, &key(None, 1), "value").unwrap();
        for name in [
            "",
            "../x",
            "halt_",
            "halt_1",
            "HALT_00000000000000000000000000000001",
            "00/00000000000000000000000000000001",
        ] {
            let key = Key::new(None, name);
            assert!(matches!(insert(&store, &key, "value"), Err(StoreError::Name)), "{name}");
            assert_eq!(store.get(&key).unwrap(), Lookup::Missing, "{name}");
            assert!(!store.claim(&key), "{name}");
        }
    }
}

#[test]
fn value_is_claimed_once() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        for owner in [None, ALICE] {
            let (key, other) = (key(owner, 1), key(owner, 2));
            insert(&store, &key, "value").unwrap();
            assert!(store.contains(&key) && !store.contains(&other));
            assert!(!store.claim(&other) && store.claim(&key));
            assert!(!store.claim(&key) && !store.contains(&key));
            assert_eq!(store.get(&key).unwrap(), Lookup::Claimed);
            assert_eq!(store.get(&other).unwrap(), Lookup::Missing);
        }
        assert_eq!(store.size().unwrap().bytes, 0, "what was claimed is removed");
    }
}

#[test]
fn of_many_threads_one_claims() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        insert(&store, &key(ALICE, 1), "value").unwrap();
        let claimed = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| store.claim(&key(ALICE, 1)))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|is_first| *is_first).count()
        });
        assert_eq!(claimed, 1);
    }
}

/// Runs in other processes, which `of_two_processes_one_claims` starts. Claims as many of 200 values as it can.
#[test]
#[ignore = "a part of another test"]
fn claims_values() {
    let store = per_owner(Path::new(&std::env::var_os("COG_STORE_TEST").unwrap()));
    let claimed = (0..200).filter(|number| store.claim(&key(ALICE, *number))).count();
    println!("claimed={claimed};");
}

#[test]
fn of_two_processes_one_claims() {
    let place = tempfile::tempdir().unwrap();
    let large = Limits { entries: 1_000, bytes: 10_000, entry_bytes: 10 };
    let store = KeyedStore::in_directory(
        place.path().join("owners"),
        Layout::DirectoryPerOwner,
        Durability::Kill,
        large,
    );
    for number in 0..200 {
        insert(&store, &key(ALICE, number), "value").unwrap();
    }
    let start = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "keyed::tests::claims_values", "--ignored", "--nocapture"])
            .env("COG_STORE_TEST", place.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let claimed = [start(), start()].map(|process| {
        let output = String::from_utf8(process.wait_with_output().unwrap().stdout).unwrap();
        let count = output.split_once("claimed=").unwrap().1.split_once(';').unwrap().0;
        count.parse::<usize>().unwrap()
    });
    assert_eq!(claimed.iter().sum::<usize>(), 200, "{claimed:?}");
}

#[test]
fn owner_with_the_most_loses_the_oldest_value() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        insert(&store, &key(None, 0), "operator").unwrap();
        insert(&store, &key(BOB, 1), "bob").unwrap();
        for number in 2..10 {
            insert(&store, &key(ALICE, number), "alice").unwrap();
            if number == 8 {
                assert!(store.claim(&key(ALICE, number)));
            }
        }
        assert!(get(&store, &key(None, 0)).is_some() && get(&store, &key(BOB, 1)).is_some());
        assert_eq!(get(&store, &key(ALICE, 6)), None);
        assert!(get(&store, &key(ALICE, 7)).is_some() && get(&store, &key(ALICE, 9)).is_some());
        assert_eq!(
            store.get(&key(ALICE, 8)).unwrap(),
            Lookup::Claimed,
            "a used name stays known for as long"
        );
    }
}

#[test]
fn owners_with_as_many_values_lose_them_by_age() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        for number in 1..=6 {
            insert(&store, &key(Some(&format!("token:{}", 9 - number)), number), "value").unwrap();
        }
        let is_stored =
            |number: usize| get(&store, &key(Some(&format!("token:{}", 9 - number)), number)).is_some();
        assert_eq!((1..=6).map(is_stored).collect::<Vec<_>>(), [false, false, true, true, true, true]);
    }
}

#[test]
fn owners_do_not_remove_what_is_the_operators() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        for number in 1..=4 {
            insert(&store, &key(None, number), "operator").unwrap();
        }
        insert(&store, &key(ALICE, 5), "alice").unwrap();
        assert!((1..=4).all(|number| get(&store, &key(None, number)).is_some()));
        assert!(get(&store, &key(ALICE, 5)).is_some());
    }
}

#[test]
fn bytes_are_limited() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        insert(&store, &key(BOB, 1), &"b".repeat(30)).unwrap();
        insert(&store, &key(ALICE, 2), &"a".repeat(50)).unwrap();
        insert(&store, &key(ALICE, 3), &"a".repeat(60)).unwrap();
        assert!(get(&store, &key(BOB, 1)).is_some() && get(&store, &key(ALICE, 3)).is_some());
        assert_eq!(get(&store, &key(ALICE, 2)), None);
        let error = insert(&store, &key(ALICE, 4), &"a".repeat(61)).unwrap_err();
        assert_eq!(error.to_string(), "61 bytes; at most 60 are stored");
    }
}

#[test]
fn owner_has_limits() {
    let place = tempfile::tempdir().unwrap();
    for store in stores(place.path()) {
        let limits = Some(OwnerLimits { entries: 2, bytes: 20 });
        let insert = |owner, number, value: &str| {
            store
                .insert(&key(owner, number), value.as_bytes(), limits, SystemTime::now())
                .map_err(|error| error.to_string())
        };
        insert(ALICE, 1, "current").unwrap();
        insert(ALICE, 2, "old").unwrap();
        assert_eq!(insert(ALICE, 3, "x").unwrap_err(), "this client has stored 2 values, the maximum");
        insert(ALICE, 1, "current").unwrap();
        insert(BOB, 3, "old").unwrap();
        store.sweep(ALICE, |value| value != b"old");
        assert_eq!(get(&store, &key(ALICE, 2)), None);
        assert!(get(&store, &key(BOB, 3)).is_some(), "only what alice has is swept");
        let full = "this client has stored 7 bytes, and 14 more exceed the maximum of 20";
        assert_eq!(insert(ALICE, 3, &"x".repeat(14)).unwrap_err(), full);
        insert(ALICE, 3, &"x".repeat(13)).unwrap();
        store.sweep(None, |value| value != b"old");
        assert_eq!(get(&store, &key(BOB, 3)), None);
    }
}

#[test]
fn file_that_a_killed_program_left_is_removed() {
    let place = tempfile::tempdir().unwrap();
    for store in [flat(place.path()), per_owner(place.path())] {
        insert(&store, &key(ALICE, 1), "value").unwrap();
        let directory = store.directory_of(ALICE).unwrap();
        let value = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().file_name();
        let left = directory.join(format!(".{}.cog-a1b2c3", value.to_str().unwrap()));
        std::fs::write(&left, "val").unwrap();
        insert(&store, &key(ALICE, 2), "value").unwrap();
        assert!(left.exists(), "another program may be writing it");
        let later = SystemTime::now() + Duration::from_secs(7200);
        store.insert(&key(ALICE, 3), b"value", None, later).unwrap();
        assert!(!left.exists());
        assert_eq!(get(&store, &key(ALICE, 1)).as_deref(), Some("value"));
    }
}

#[test]
fn other_files_stay() {
    let place = tempfile::tempdir().unwrap();
    for store in [flat(place.path()), per_owner(place.path())] {
        insert(&store, &key(None, 1), "value").unwrap();
        let other = store.directory_of(None).unwrap().join("notes.json");
        std::fs::write(&other, "notes").unwrap();
        for number in 2..10 {
            insert(&store, &key(None, number), "value").unwrap();
        }
        store.sweep(None, |_| false);
        store.clear().unwrap();
        assert!(other.exists());
    }
}

#[test]
fn directory_that_is_a_file_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    for name in ["flat", "owners"] {
        std::fs::write(place.path().join(name), "text").unwrap();
    }
    for store in [flat(place.path()), per_owner(place.path())] {
        assert!(store.size().is_err() && store.clear().is_err());
        assert!(insert(&store, &key(None, 1), "value").is_err());
        assert_eq!(store.get(&key(None, 1)).unwrap(), Lookup::Missing);
    }
}

#[test]
fn names_of_files_stay() {
    let place = tempfile::tempdir().unwrap();
    let names = |directory: &Path| -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let hash = format!("{:064x}", 7);
    let owner = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90"; // of `alice`
    let flat = flat(place.path());
    insert(&flat, &Key::new(None, hash.clone()), "value").unwrap();
    insert(&flat, &Key::new(Some("alice"), hash.clone()), "value").unwrap();
    assert_eq!(names(&place.path().join("flat")), [format!("{hash}-{owner}.json"), format!("{hash}.json")]);
    let store = per_owner(place.path());
    insert(&store, &key(None, 1), "value").unwrap();
    insert(&store, &key(Some("alice"), 2), "value").unwrap();
    assert!(store.claim(&key(None, 1)));
    let [one, two] = [1, 2].map(|number| format!("halt_{number:032x}"));
    assert_eq!(names(&place.path().join("owners")), ["clients".to_owned(), format!("{one}.used")]);
    assert_eq!(names(&place.path().join("owners/clients").join(&owner[..32])), [format!("{two}.json")]);
}

#[cfg(unix)]
#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for store in [flat(place.path()), per_owner(place.path())] {
        insert(&store, &key(ALICE, 1), "value").unwrap();
        let directory = store.directory_of(ALICE).unwrap();
        assert_eq!(mode(&directory), 0o700);
        let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap();
        assert_eq!(mode(&file.path()), 0o600);
    }
}
