//! Random changes to files, the same in every run.

use fastrand::Rng;

/// Values that overwrite lengths and counts.
const EXTREMES: [u32; 8] = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// Returns a copy with one to eight changes, half of them near the beginning, where headers are.
pub(crate) fn mutated(original: &[u8], other: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..rng.usize(1..=8) {
        change(&mut bytes, other, rng);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, other: &[u8], rng: &mut Rng) {
    if bytes.is_empty() {
        return bytes.extend_from_slice(other);
    }
    let reach = if rng.bool() { bytes.len().min(512) } else { bytes.len() };
    let at = rng.usize(..reach);
    let end = (at + rng.usize(1..=64)).min(bytes.len());
    match rng.u8(..8) {
        0 => bytes[at] ^= 1 << rng.u8(..8),
        1 => bytes[at] = rng.u8(..),
        2 => {
            let value = EXTREMES[rng.usize(..EXTREMES.len())];
            let value = if rng.bool() { value.to_be_bytes() } else { value.to_le_bytes() };
            bytes.iter_mut().skip(at).zip(value).for_each(|(byte, value)| *byte = value);
        }
        3 => drop(bytes.drain(at..end)),
        4 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        5 => bytes[at..end].iter_mut().for_each(|byte| *byte = rng.u8(..)),
        6 => bytes.truncate(at),
        _ => {
            let from = rng.usize(..other.len());
            let part = &other[from..(from + 64).min(other.len())];
            bytes.splice(at..at, part.iter().copied());
        }
    }
}
