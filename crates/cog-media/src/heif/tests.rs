//! Descriptions of pictures, written by the builder of the tool's tests.

use super::*;
use crate::Store;

#[path = "../../tests/tool/heif.rs"]
mod heif;

use heif::{Item, Reference, alpha, cropped, file, file_with, grid, mirrored, rotated, size};

fn read(bytes: &[u8]) -> Option<Picture> {
    let mut store = Store::with_limit(1 << 20);
    store.push(bytes).unwrap();
    Picture::read(&store.finish()).unwrap()
}

fn tile(properties: Vec<Vec<u8>>) -> Item {
    Item { kind: *b"hvc1", data: vec![1], properties }
}

/// Returns a file with 2×2 tiles of 64×64 pixels.
fn tiled(width: u16, height: u16, properties: Vec<Vec<u8>>) -> Vec<u8> {
    let mut items = vec![tile(vec![size(64, 64)]); 4];
    items.push(grid(2, 2, width, height, properties));
    file(b"heic", &items, 5, &[4, 3, 2, 1])
}

#[test]
fn tiles_must_cover_the_picture() {
    let picture = read(&tiled(120, 65, vec![rotated(1)])).unwrap();
    let items = vec![4, 3, 2, 1];
    assert_eq!(picture.coding, Coding::Grid { columns: 2, tile: (64, 64), items });
    assert_eq!((picture.size, picture.displayed()), ((120, 65), (65, 120)));
    for (width, height) in [(129, 128), (128, 64), (64, 128), (0, 0)] {
        assert_eq!(read(&tiled(width, height, vec![])), None, "{width}x{height}");
    }
    let mut items = vec![tile(vec![size(64, 64)]), tile(vec![size(64, 64), rotated(1)])];
    items.push(grid(2, 1, 128, 64, vec![]));
    assert_eq!(read(&file(b"heic", &items, 3, &[1, 2])), None, "a tile that is rotated itself");
    items[1] = tile(vec![size(64, 32)]);
    assert_eq!(read(&file(b"heic", &items, 3, &[1, 2])), None, "tiles of several sizes");
}

#[test]
fn changes_are_read_in_their_order() {
    let changes = vec![size(100, 50), cropped(21, 11, 1, -1), rotated(3), mirrored(1), rotated(0)];
    let picture = read(&file(b"heic", &[tile(changes)], 1, &[])).unwrap();
    let crop = Transform::Crop { width: 21, height: 11, left: 40, top: 19 };
    assert_eq!(picture.transforms, [crop, Transform::Rotate(3), Transform::MirrorSides]);
    assert_eq!(picture.displayed(), (11, 21));
    for outside in
        [cropped(101, 50, 0, 0), cropped(50, 50, 52, 0), cropped(50, 50, -51, 0), cropped(0, 1, 0, 0)]
    {
        assert_eq!(read(&file(b"heic", &[tile(vec![size(100, 50), outside])], 1, &[])), None);
    }
}

#[test]
fn transparency_belongs_to_a_picture() {
    let items = [tile(vec![size(64, 64)]), tile(vec![size(64, 64), alpha()]), tile(vec![size(64, 64)])];
    let has_alpha = |kind: &[u8; 4], from: u16, to: &[u16]| {
        let reference = Reference { kind, from, to };
        read(&file_with(b"avif", &items, 1, &reference)).unwrap().has_alpha
    };
    assert!(has_alpha(b"auxl", 2, &[1]));
    assert!(has_alpha(b"auxl", 2, &[3, 1]));
    assert!(!has_alpha(b"auxl", 2, &[3]), "of another picture");
    assert!(!has_alpha(b"auxl", 3, &[1]), "a depth map");
    assert!(!has_alpha(b"thmb", 2, &[1]));
}

#[test]
fn damaged_description_is_not_read() {
    let bytes = tiled(128, 128, vec![cropped(9, 9, 0, 0)]);
    assert!(read(&bytes).is_some());
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let mut changed = bytes.clone();
        (0..rng.usize(1..6)).for_each(|_| changed[rng.usize(..bytes.len())] = rng.u8(..));
        changed.truncate(rng.usize(changed.len() / 2..=changed.len()));
        if let Some(Picture { coding: Coding::Grid { items, .. }, .. }) = read(&changed) {
            assert!((1..=MAX_TILES).contains(&items.len()));
        }
    }
}
