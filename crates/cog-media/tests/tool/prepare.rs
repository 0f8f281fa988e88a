//! The parts of documents, audio and video that are sent to providers.

use std::io::Read as _;

use cog_media::{
    Media, MediaCapabilities, MediaDeclaration, MediaPart, MediaRules, PartKind, Stored, Tool, check, prepare,
};

use crate::{
    convert::converter,
    files::{refusal, stored, tool, wait},
    samples::{generate, pdf},
};

pub(crate) const TESTS: &[(&str, fn())] = tests![
    supported_type_is_sent_unchanged,
    document_becomes_text,
    document_without_text_is_refused,
    document_without_text_becomes_page_images,
    text_of_a_page_has_its_words,
    video_becomes_frames_and_audio,
    audio_track_that_is_not_sent_is_a_warning,
    audio_becomes_wav,
];

fn media(bytes: &[u8]) -> Media {
    media_of(stored(bytes))
}

fn media_of(stored: Stored) -> Media {
    wait(check(stored, &MediaDeclaration::default(), &MediaRules::default(), Some(&tool()))).unwrap()
}

fn prepared(bytes: &[u8], supported: &[&'static str]) -> Vec<MediaPart> {
    let capabilities = MediaCapabilities { media_types: supported.to_vec(), ..MediaCapabilities::default() };
    wait(prepare(&media(bytes), &capabilities, &MediaRules::default(), Some(&converter()), None)).unwrap()
}

fn supported_type_is_sent_unchanged() {
    for (bytes, media_type) in [(pdf(&["a"]), "application/pdf"), (generate("a.mp4"), "video/mp4")] {
        let parts = prepared(&bytes, &[media_type]);
        assert_eq!((parts.len(), parts[0].media_type, parts[0].part), (1, media_type, PartKind::Complete));
        assert_eq!(parts[0].stored.len(), bytes.len() as u64);
    }
}

fn document_becomes_text() {
    let parts = prepared(&pdf(&["first", "", "third"]), &[]);
    let text = &parts[0];
    let mut content = String::new();
    text.stored.reader().read_to_string(&mut content).unwrap();
    assert_eq!(content, "[page 1]\nfirst\n\n[page 2]\n(no text)\n\n[page 3]\nthird\n");
    assert_eq!((parts.len(), text.media_type, text.part), (1, "text/plain", PartKind::Text));
    assert_eq!(text.warning.as_deref(), Some("page 2 has no text and was not sent"));
}

fn document_without_text_is_refused() {
    let refused = |tool: &Tool, supported: &[&'static str]| {
        let capabilities =
            MediaCapabilities { media_types: supported.to_vec(), ..MediaCapabilities::default() };
        let scan = media(&pdf(&["", ""]));
        refusal(wait(prepare(&scan, &capabilities, &MediaRules::default(), Some(tool), None)))
    };
    let images = "E4011 no page of the PDF has text, and the provider does not support images";
    assert_eq!(refused(&converter(), &[]), images);
    let program = "E4011 no page of the PDF has text, and page images require pdftoppm, which was not found";
    assert_eq!(refused(&tool(), &["image/jpeg"]), program);
}

fn document_without_text_becomes_page_images() {
    let parts = prepared(&pdf(&[""; 22]), &["image/jpeg"]);
    assert_eq!((parts.len(), parts[1].part), (20, PartKind::Page { number: 2 }));
    assert_eq!(parts[0].warning.as_deref(), Some("only the first 20 of 22 pages were sent, as images"));
    let image = media_of(parts[1].stored.clone());
    assert_eq!((image.media_type(), image.info().height), ("image/jpeg", Some(1568)));
}

fn text_of_a_page_has_its_words() {
    // Ghostscript writes the space between words as an offset.
    let page = "BT /F1 12 Tf 72 720 Td [(Hello,) -341 (world)] TJ ET";
    let bytes =
        String::from_utf8(pdf(&["x"])).unwrap().replace("BT /F1 12 Tf 14 TL 72 720 Td (x) Tj T* ET", page);
    for tool in [converter(), tool()] {
        let pages = wait(tool.text(&stored(bytes.as_bytes()))).unwrap();
        assert_eq!(pages[0].text, "Hello, world");
    }
}

fn video_becomes_frames_and_audio() {
    let parts = prepared(&generate("a.mp4"), &["image/jpeg", "audio/wav"]);
    let found: Vec<_> = parts.iter().map(|part| part.part).collect();
    let frame = |second: u64| PartKind::Frame { at_ms: second * 1000, number: Some(second * 10) };
    assert_eq!(found, [frame(0), frame(1), frame(2), frame(3), PartKind::Audio]);
    assert!(parts.iter().all(|part| part.warning.is_none()));
}

fn audio_track_that_is_not_sent_is_a_warning() {
    let parts = prepared(&generate("a.mp4"), &["image/jpeg"]);
    assert_eq!(
        parts[0].warning.as_deref(),
        Some("the audio track was not sent: the model does not support audio")
    );
    assert!(prepared(&generate("-an a.mp4"), &["image/jpeg"])[0].warning.is_none());
}

fn audio_becomes_wav() {
    let parts = prepared(&generate("-map 1 a.mp3"), &["audio/wav"]);
    assert_eq!((parts.len(), parts[0].media_type, parts[0].part), (1, "audio/wav", PartKind::Complete));
    let capabilities = MediaCapabilities::default();
    let refused = wait(prepare(
        &media(&generate("-map 1 a.mp3")),
        &capabilities,
        &MediaRules::default(),
        Some(&converter()),
        None,
    ));
    assert_eq!(refusal(refused), "E4011 the provider does not support audio/mpeg");
}
