//! How long audio is that is converted without being read here, as its header says.

use std::io::{Read as _, Seek as _};

use super::{handle::Handle, mp4};
use crate::Facts;

/// Returns the duration that the header of a file declares, if it does.
pub(super) fn facts(mut input: Handle, media_type: &str) -> Facts {
    let duration_ms = match media_type {
        "audio/mp4" => mp4::audio_duration(&mut input),
        "audio/flac" => flac_duration(&mut input),
        _ => None,
    };
    Facts { duration_ms, ..Facts::default() }
}

/// Reads the first block of a FLAC file (RFC 9639, section 8.2); zero samples mean that their number is unknown.
fn flac_duration(input: &mut Handle) -> Option<u64> {
    input.rewind().ok()?;
    let mut head = [0; 26];
    input.read_exact(&mut head).ok()?;
    let Some((b"fLaC", rest)) = head.split_first_chunk::<4>() else { return None };
    // Rate (20 bits), channels (3), bits (5), samples (36).
    let packed = u64::from_be_bytes(*rest.last_chunk::<8>()?);
    let (rate, samples) = (packed >> 44, packed & ((1 << 36) - 1));
    if samples == 0 { None } else { samples.saturating_mul(1000).checked_div(rate) }
}
