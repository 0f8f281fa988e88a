//! The codecs of an Ogg file: each stream names its own in its first page (RFC 3533, section 4).

/// The flag of the first page of a stream.
const FIRST: u8 = 2;

/// The codecs, by the start of their first packet.
const CODECS: [(&[u8], &str, bool); 10] = [
    (b"OpusHead", "Opus", false),
    (b"\x01vorbis", "Vorbis", false),
    (b"\x7fFLAC", "FLAC", false),
    (b"Speex   ", "Speex", false),
    (b"PCM     ", "PCM", false),
    (b"\x80theora", "Theora", true),
    (b"\x80daala", "Daala", true),
    (b"BBCD\0", "Dirac", true),
    (b"OVP80", "VP8", true),
    (b"\x01video\0", "OGM video", true),
];

/// Returns whether one of the streams that begin in these bytes is video.
pub(crate) fn has_video(head: &[u8]) -> bool {
    codecs(head).iter().any(|(_, is_video)| *is_video)
}

/// Returns the name of the first codec, if it is known.
#[cfg(feature = "decode")]
pub(crate) fn codec(head: &[u8]) -> Option<&'static str> {
    codecs(head).first().map(|(name, _)| *name)
}

/// Returns the known codecs of the streams that begin in these bytes. All streams begin before any continues.
fn codecs(head: &[u8]) -> Vec<(&'static str, bool)> {
    let mut found = Vec::new();
    let mut rest = head;
    while let Some((packet, after)) = first_page(rest) {
        let known = CODECS.iter().find(|(start, ..)| packet.starts_with(start));
        found.extend(known.map(|(_, name, is_video)| (*name, *is_video)));
        rest = after;
    }
    found
}

/// Returns the content of the first page of a stream, and what follows it.
fn first_page(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, rest) = bytes.split_at_checked(27)?;
    let [b'O', b'g', b'g', b'S', 0, flags, .., segments] = header else { return None };
    let (lengths, rest) = rest.split_at_checked(usize::from(*segments))?;
    let length = lengths.iter().map(|length| usize::from(*length)).sum();
    if flags & FIRST == 0 { None } else { rest.split_at_checked(length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(flags: u8, packet: &[u8]) -> Vec<u8> {
        let length = u8::try_from(packet.len()).unwrap();
        [&b"OggS\0"[..], &[flags], &[0; 20], &[1, length], packet].concat()
    }

    #[test]
    fn every_stream_names_its_codec() {
        let sound = page(2, b"\x01vorbis..");
        let picture = page(2, b"\x80theora..");
        let skeleton = page(2, b"fishead\0..");
        assert_eq!((codec(&sound), has_video(&sound)), (Some("Vorbis"), false));
        assert!(has_video(&[&skeleton[..], &sound, &picture].concat()));
        assert_eq!(codec(&[&skeleton[..], &page(2, b"Speex   ..")].concat()), Some("Speex"));
        let later = page(0, b"\x80theora..");
        assert!(!has_video(&[&sound[..], &later].concat()), "not the first page of a stream");
        assert_eq!(codec(&sound[..30]), None);
    }
}
