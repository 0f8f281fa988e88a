//! What providers are sent of documents, sound and video.

use std::io::Read as _;

use cog_media::{Expected, Media, MediaCapabilities, MediaRules, Part, Prepared, check, prepare};

use crate::{
    convert::converter,
    files::{refusal, stored, tool, wait},
    made::{film, pdf},
};

pub(crate) const TESTS: &[(&str, fn())] = tests![
    what_a_provider_takes_goes_as_it_is,
    a_document_becomes_its_text,
    a_document_without_text_is_not_taken,
    a_video_becomes_frames_and_sound,
    sound_that_is_not_heard_is_told,
    sound_becomes_wav,
];

fn media(bytes: &[u8]) -> Media {
    wait(check(stored(bytes), &Expected::default(), &MediaRules::default(), Some(&tool()))).unwrap()
}

fn prepared(bytes: &[u8], taken: &[&'static str]) -> Vec<Prepared> {
    let takes = MediaCapabilities { media_types: taken.to_vec(), ..MediaCapabilities::default() };
    wait(prepare(&media(bytes), &takes, &MediaRules::default(), Some(&converter()))).unwrap()
}

fn what_a_provider_takes_goes_as_it_is() {
    for (bytes, media_type) in [(pdf(&["a"]), "application/pdf"), (film("a.mp4"), "video/mp4")] {
        let parts = prepared(&bytes, &[media_type]);
        assert_eq!((parts.len(), parts[0].media_type, parts[0].part), (1, media_type, Part::Complete));
        assert_eq!(parts[0].stored.len(), bytes.len() as u64);
    }
}

fn a_document_becomes_its_text() {
    let parts = prepared(&pdf(&["first", "", "third"]), &[]);
    let text = &parts[0];
    let mut told = String::new();
    text.stored.reader().read_to_string(&mut told).unwrap();
    assert_eq!(told, "[page 1]\nfirst\n\n[page 2]\n(no text)\n\n[page 3]\nthird\n");
    assert_eq!((parts.len(), text.media_type, text.part), (1, "text/plain", Part::Text));
    assert_eq!(text.warning.as_deref(), Some("page 2 has no text and was not sent"));
}

fn a_document_without_text_is_not_taken() {
    let outcome = wait(prepare(
        &media(&pdf(&["", ""])),
        &MediaCapabilities::default(),
        &MediaRules::default(),
        Some(&converter()),
    ));
    assert_eq!(refusal(outcome), "E4011 the provider does not support application/pdf");
}

fn a_video_becomes_frames_and_sound() {
    let parts = prepared(&film("a.mp4"), &["image/jpeg", "audio/wav"]);
    let told: Vec<_> = parts.iter().map(|part| part.part).collect();
    let frame = |at_ms| Part::Frame { at_ms };
    assert_eq!(told, [frame(0), frame(1000), frame(2000), frame(3000), Part::Audio]);
    assert!(parts.iter().all(|part| part.warning.is_none()));
}

fn sound_that_is_not_heard_is_told() {
    let parts = prepared(&film("a.mp4"), &["image/jpeg"]);
    assert_eq!(
        parts[0].warning.as_deref(),
        Some("the audio track was not sent: the model does not support audio")
    );
    assert!(prepared(&film("-an a.mp4"), &["image/jpeg"])[0].warning.is_none());
}

fn sound_becomes_wav() {
    let parts = prepared(&film("-map 1 a.mp3"), &["audio/wav"]);
    assert_eq!((parts.len(), parts[0].media_type, parts[0].part), (1, "audio/wav", Part::Complete));
    let takes = MediaCapabilities::default();
    let refused =
        wait(prepare(&media(&film("-map 1 a.mp3")), &takes, &MediaRules::default(), Some(&converter())));
    assert_eq!(refusal(refused), "E4011 the provider does not support audio/mpeg");
}
