//! The frames of MPEG audio (ISO 11172-3, ISO 13818-3, and MPEG 2.5 for low sample rates).

/// Returns whether content starts with two frames, possibly after zeros, with which some recorders begin. One frame is
/// enough if the second is beyond these bytes.
pub(super) fn has_frames(head: &[u8]) -> bool {
    let zeros = head.iter().take_while(|byte| **byte == 0).count();
    let Some(first) = head.get(zeros..).and_then(frame_length) else { return false };
    match head.get(zeros + first..) {
        None | Some([] | [_] | [_, _] | [_, _, _]) => true,
        Some(second) => frame_length(second).is_some(),
    }
}

/// Returns whether the first frame of content, possibly after zeros, is one of layer 2, which MP3 is not.
#[cfg(feature = "decode")]
pub(crate) fn is_layer_2(head: &[u8]) -> bool {
    let zeros = head.iter().take_while(|byte| **byte == 0).count();
    let first = head.get(zeros..).unwrap_or_default();
    frame_length(first).is_some() && first.get(1).is_some_and(|coding| coding & 0b110 == 0b100)
}

/// Returns the length of a frame of layer 2 or 3 in bytes; none if these bytes are not its header.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let [0xff, coding, rates, _] = *bytes.first_chunk::<4>()? else { return None };
    let is_layer_2 = match coding & 0b110 {
        0b100 => true,
        0b010 => false,
        _ => return None,
    };
    let is_version_1 = coding & 0b1_1000 == 0b1_1000;
    // The sample rates of versions 2 and 2.5 are a half and a quarter of the ones of version 1.
    let divisor = match coding & 0b1111_1000 {
        0b1111_1000 => 1,
        0b1111_0000 => 2,
        0b1110_0000 => 4,
        _ => return None,
    };
    let kilobits: [usize; 16] = match (is_version_1, is_layer_2) {
        (true, true) => [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 0],
        (true, false) => [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0],
        (false, _) => [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
    };
    let kilobits = kilobits.get(usize::from(rates >> 4)).filter(|rate| **rate > 0)?;
    let rate = [44_100, 48_000, 32_000].get(usize::from(rates >> 2 & 3))? / divisor;
    let samples = if is_version_1 || is_layer_2 { 1152 } else { 576 };
    let padding = usize::from(rates >> 1 & 1);
    Some(samples / 8 * kilobits * 1000 / rate + padding)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_follow_each_other() {
        for (header, length) in [
            ([0xff, 0xfb, 0x90, 0x64], 417),
            // With a checksum, and padded.
            ([0xff, 0xfa, 0x92, 0x64], 418),
            // 11,025 Hz at 16 kbit/s.
            ([0xff, 0xe3, 0x20, 0xc4], 104),
            // Layer 2, 48,000 Hz at 192 kbit/s.
            ([0xff, 0xfd, 0xa4, 0x00], 576),
        ] {
            assert_eq!(frame_length(&header), Some(length), "{header:x?}");
            let frame = [&header[..], &vec![0; length - 4]].concat();
            assert!(has_frames(&[&[0; 100], &frame[..], &frame].concat()));
            assert!(has_frames(&frame), "one frame");
            assert!(!has_frames(&[&frame[..], b"text"].concat()));
        }
        for other in [&[][..], &[0; 20], &[0xff, 0xd8, 0xff, 0xe0], &[0xff; 20], b"\xff\xfb\xf0\x64"] {
            assert!(!has_frames(other), "{other:x?}");
        }
    }
}
