//! Frames and audio tracks.

use std::{io::Read as _, path::PathBuf, time::Duration};

use cog_media::{
    Frame, FramePlan, FrameSelection, Media, MediaDeclaration, MediaError, MediaRules, Programs, Tool, check,
    sniff,
};
use cog_spec::Modality;

use crate::{
    files::{refusal, stored, tool, wait},
    samples::generate,
};

pub(crate) const TESTS: &[(&str, fn())] = tests![
    extracts_one_frame_per_second,
    extracts_the_requested_number_of_frames,
    frames_are_only_scaled_down,
    frames_have_their_own_times,
    audio_of_any_type_becomes_wav,
    audio_that_no_provider_supports_becomes_wav,
    audio_that_ends_early_is_damaged,
    images_and_videos_of_other_types_are_converted,
    tracks_of_other_codecs_are_converted,
    codecs_in_wav_and_ogg_are_converted,
    undecodable_image_is_of_an_unsupported_type,
    missing_ffmpeg_is_reported,
];

pub(crate) fn converter() -> Tool {
    tool().with_programs(Programs {
        ffmpeg: program("ffmpeg"),
        pdftotext: program("pdftotext"),
        pdftoppm: program("pdftoppm"),
    })
}

/// Returns the path of an installed program.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    assert!(found.is_some(), "{name} is not installed");
    found
}

fn media(arguments: &str) -> Media {
    let stored = stored(&generate(arguments));
    wait(check(stored, &MediaDeclaration::default(), &MediaRules::default(), Some(&tool()))).unwrap()
}

fn frames(video: &Media, plan: FramePlan) -> Vec<Frame> {
    let frames = wait(converter().frames(video, &plan)).unwrap();
    assert!(frames.iter().all(|frame| sniff(frame.image.head()) == Some("image/jpeg")));
    frames
}

fn times(frames: &[Frame]) -> Vec<u64> {
    frames.iter().map(|frame| frame.at_ms).collect()
}

fn extracts_one_frame_per_second() {
    for arguments in ["a.mp4", "a.mov", "-c:v libvpx -c:a libopus a.webm"] {
        let frames = frames(&media(arguments), FramePlan::default());
        assert_eq!(times(&frames), [0, 1000, 2000, 3000], "{arguments}");
    }
}

fn extracts_the_requested_number_of_frames() {
    let video = media("-an a.mp4");
    let plan = |selection, max_frames| FramePlan { selection, max_frames, ..FramePlan::default() };
    assert_eq!(times(&frames(&video, plan(FrameSelection::Count(2), 60))), [0, 2000]);
    assert_eq!(times(&frames(&video, plan(FrameSelection::Count(1), 60))), [0]);
    assert_eq!(times(&frames(&video, plan(FrameSelection::Every(Duration::from_millis(500)), 2))), [0, 2000]);
    assert_eq!(times(&frames(&video, plan(FrameSelection::Every(Duration::from_millis(500)), 60))).len(), 8);
    assert_eq!(times(&frames(&video, plan(FrameSelection::Every(Duration::from_secs(3600)), 60))), [0]);
}

fn frames_are_only_scaled_down() {
    let video = media("-an a.mp4");
    for (max_side, sides) in [(160, (160, 120)), (1000, (320, 240))] {
        let plan = FramePlan { selection: FrameSelection::Count(1), max_side, ..FramePlan::default() };
        let image = frames(&video, plan).remove(0).image;
        let facts =
            *wait(check(image, &MediaDeclaration::default(), &MediaRules::default(), None)).unwrap().info();
        assert_eq!((facts.width.unwrap(), facts.height.unwrap()), sides);
    }
}

fn frames_have_their_own_times() {
    // There is no frame between the first half second and the last second.
    let video = media("-an -vf select='lt(t,0.45)+gte(t,2.85)' -vsync vfr a.mp4");
    let frames = frames(&video, FramePlan::default());
    assert_eq!(times(&frames), [0, 2900, 3000]);
    let numbers: Vec<_> = frames.iter().map(|frame| frame.number).collect();
    assert_eq!(numbers, [Some(0), Some(5), Some(6)]);
}

fn audio_of_any_type_becomes_wav() {
    for arguments in ["a.mp4", "-map 1 a.mp3", "-map 1 -c:a libopus a.webm", "-map 1 -c:a libvorbis a.ogg"] {
        let audio = wait(converter().audio(&media(arguments))).unwrap().unwrap();
        let mut bytes = Vec::new();
        audio.reader().read_to_end(&mut bytes).unwrap();
        assert!(bytes[44..].iter().any(|sample| *sample != 0), "{arguments}: silence");
        let wav =
            wait(check(audio, &MediaDeclaration::default(), &MediaRules::default(), Some(&tool()))).unwrap();
        assert_eq!((wav.media_type(), wav.info().sample_rate), ("audio/wav", Some(16_000)), "{arguments}");
        assert!(wav.info().duration_ms.is_some_and(|duration| (3_900..4_300).contains(&duration)));
    }
    assert!(wait(converter().audio(&media("-an a.mp4"))).unwrap().is_none());
}

fn audio_that_no_provider_supports_becomes_wav() {
    let rules = MediaRules::default();
    let opened = |arguments: &str, declared: Option<&str>, tool: &Tool| {
        let expected =
            MediaDeclaration { media_type: declared.map(str::to_owned), ..MediaDeclaration::default() };
        wait(check(stored(&generate(arguments)), &expected, &rules, Some(tool)))
    };
    for (arguments, original) in [
        ("-map 1 a.m4a", "audio/mp4"),
        ("-map 1 -c:a aac a.mp4", "audio/mp4"),
        ("-map 1 a.aac", "audio/aac"),
        ("-map 1 a.flac", "audio/flac"),
        ("-map 1 -rf64 always a.wav", "audio/x-rf64"),
    ] {
        let media = opened(arguments, Some(original), &converter()).unwrap();
        assert_eq!(media.media_type(), "audio/wav", "{arguments}");
        assert!(media.info().duration_ms.is_some_and(|duration| (3_900..4_300).contains(&duration)));
        let refused = refusal(opened(arguments, None, &tool()));
        assert!(refused.starts_with(&format!("E1010 {original} is not supported here")), "{refused}");
        let refused = refusal(opened(arguments, Some("audio/mpeg"), &converter()));
        assert!(refused.starts_with("E1014 declared as audio/mpeg"), "{refused}");
    }
    let long = wait(check(
        stored(&generate("-f lavfi -i sine=d=605:r=8000 -map 2 a.m4a")),
        &MediaDeclaration::default(),
        &rules,
        Some(&converter()),
    ));
    assert_eq!(refusal(long), "E1011 601 seconds; the maximum is 600");
}

fn audio_that_ends_early_is_damaged() {
    let opened = |bytes: &[u8]| {
        wait(check(stored(bytes), &MediaDeclaration::default(), &MediaRules::default(), Some(&converter())))
    };
    let find =
        |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|window| window == part).unwrap();
    // The index is at the start, as in a file that is downloaded.
    let m4a = generate("-map 1 -movflags faststart a.m4a");
    let data = find(&m4a, b"mdat");
    for length in [data + 4, data + 8, data + 4000, m4a.len() * 3 / 4] {
        let refused = refusal(opened(&m4a[..length]));
        assert!(refused.starts_with("E1013 unreadable audio/mp4"), "{length}: {refused}");
    }
    let flac = generate("-map 1 a.flac");
    assert!(refusal(opened(&flac[..flac.len() / 10])).starts_with("E1013 unreadable audio/flac"));
    let refused = refusal(opened(&flac[..flac.len() * 3 / 4]));
    assert_eq!(refused, "E1013 unreadable audio/flac: the file is truncated");
    // A stream has no length, and it may be empty.
    let mut stream = flac;
    stream[21] &= 0xf0;
    stream[22..26].fill(0);
    let cut = opened(&stream[..stream.len() * 3 / 4]).unwrap();
    assert!(cut.info().duration_ms.is_some_and(|duration| (1_000..3_800).contains(&duration)));
    assert!(refusal(opened(&stream[..8300])).starts_with("E1013 unreadable audio/flac"));
    // An edit list leaves out the beginning, and nothing is missing.
    let trimmed = generate("-map 1 -af atrim=start=0.5 a.m4a");
    assert_eq!(opened(&trimmed).unwrap().media_type(), "audio/wav");
    let aac = generate("-map 1 a.aac");
    assert!(opened(&aac[..aac.len() / 2]).unwrap().info().duration_ms.is_some());
}

fn images_and_videos_of_other_types_are_converted() {
    let rules = MediaRules::default();
    let image = "-an -frames:v 1 -c:v libaom-av1 -cpu-used 8 -still-picture 1 a.avif";
    for (arguments, original, converted) in [
        (image, "image/avif", "image/jpeg"),
        ("a.mkv", "video/x-matroska", "video/mp4"),
        ("a.avi", "video/x-msvideo", "video/mp4"),
    ] {
        let bytes = generate(arguments);
        let opened =
            |tool: &Tool| wait(check(stored(&bytes), &MediaDeclaration::default(), &rules, Some(tool)));
        let media = opened(&converter()).unwrap();
        assert_eq!((media.media_type(), media.info().width), (converted, Some(320)), "{arguments}");
        let refused = refusal(opened(&tool()));
        assert!(refused.starts_with(&format!("E1010 {original} is not supported here")), "{refused}");
    }
    let frames = |media: &Media| frames(media, FramePlan::default()).len();
    for arguments in ["a.mkv", "a.avi"] {
        let media = wait(check(
            stored(&generate(arguments)),
            &MediaDeclaration::default(),
            &rules,
            Some(&converter()),
        ))
        .unwrap();
        // The times of an AVI may begin later.
        assert!((4..=5).contains(&frames(&media)), "{arguments}");
        assert!(wait(converter().audio(&media)).unwrap().is_some(), "{arguments}");
    }
}

fn opened(bytes: &[u8], rules: &MediaRules) -> Result<Media, MediaError> {
    wait(check(stored(bytes), &MediaDeclaration::default(), rules, Some(&converter())))
}

fn tracks_of_other_codecs_are_converted() {
    for (arguments, sound) in [
        ("-c:v libx264 -c:a ac3 a.mkv", true),
        ("-c:v libx264 -c:a flac a.mkv", true),
        ("-c:v libvpx -c:a pcm_s16le a.mkv", true),
        ("-c:v mjpeg -c:a pcm_s16le a.avi", true),
        ("-c:v mjpeg -c:a pcm_u8 -ar 8000 a.avi", true),
        ("-an -c:v ffv1 a.mkv", false),
        ("-c:v libtheora -c:a libvorbis a.ogg", true),
    ] {
        let media = opened(&generate(arguments), &MediaRules::default()).unwrap();
        assert_eq!((media.media_type(), media.info().width), ("video/mp4", Some(320)), "{arguments}");
        assert_eq!(media.info().sample_rate.is_some(), sound, "{arguments}");
        assert!(media.info().duration_ms.is_some_and(|duration| (3_900..4_400).contains(&duration)));
    }
    // Only sound, which is also accepted where video is not.
    let sound = generate("-map 1 -c:a ac3 a.mkv");
    let rules = MediaRules { kinds: vec![Modality::Audio], ..MediaRules::default() };
    for rules in [&rules, &MediaRules::default()] {
        let media = opened(&sound, rules).unwrap();
        assert_eq!(media.media_type(), "audio/wav");
        assert!(media.info().duration_ms.is_some_and(|duration| (3_900..4_300).contains(&duration)));
    }
    let refused = refusal(opened(&generate("-c:v libx264 -c:a ac3 a.mkv"), &rules));
    assert!(
        refused.starts_with("E1010 video/x-matroska with h264 and ac3 is not supported here"),
        "{refused}"
    );
}

/// Layer 2 at a bit rate that MP3 does not have for one channel.
const MP2: &str = "-map 1 -ac 1 -ar 44100 -c:a mp2 -b:a 384k a.mp2";

fn codecs_in_wav_and_ogg_are_converted() {
    for arguments in [
        "-map 1 -c:a libmp3lame a.wav",
        "-map 1 -c:a adpcm_g726 -ar 8000 a.wav",
        "-map 1 -c:a libspeex -ar 16000 a.ogg",
        MP2,
    ] {
        let media = opened(&generate(arguments), &MediaRules::default()).unwrap();
        assert_eq!(
            (media.media_type(), media.info().sample_rate),
            ("audio/wav", Some(16_000)),
            "{arguments}"
        );
        assert!(media.info().duration_ms.is_some_and(|duration| (3_900..4_300).contains(&duration)));
    }
    let (any, rules, tool) = (MediaDeclaration::default(), MediaRules::default(), tool());
    let refused = refusal(wait(check(stored(&generate(MP2)), &any, &rules, Some(&tool))));
    assert!(refused.starts_with("E1010 audio/mpeg with MPEG layer 2 (MP2) is not supported"), "{refused}");
    // A tag before another type of audio.
    let tag = [&b"ID3\x03\0\0\0\0\x4e\x10"[..], &[0; 10_000]].concat();
    for arguments in ["-map 1 a.flac", "-map 1 a.aac"] {
        let media = opened(&[&tag[..], &generate(arguments)].concat(), &MediaRules::default()).unwrap();
        assert_eq!(media.media_type(), "audio/wav", "{arguments}");
        assert!(media.info().duration_ms.is_some_and(|duration| (3_900..4_300).contains(&duration)));
    }
}

fn undecodable_image_is_of_an_unsupported_type() {
    let heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic\0\0\0\x08free";
    for declared in [None, Some("image/heic".to_owned()), Some("image/heif".to_owned())] {
        let expected = MediaDeclaration { media_type: declared, ..MediaDeclaration::default() };
        let outcome = wait(check(stored(heic), &expected, &MediaRules::default(), Some(&converter())));
        let error = outcome.as_ref().unwrap_err();
        assert_eq!(error.suggestion(), "Convert it with `heif-convert IN.heic OUT.jpg`.");
        assert!(refusal(outcome).starts_with("E1010 image/heif is not supported here"));
    }
}

fn missing_ffmpeg_is_reported() {
    let outcome = wait(tool().frames(&media("a.mp4"), &FramePlan::default()));
    let missing = "E4011 cannot read the media file: frames, audio tracks and conversions require ffmpeg, \
                   which was not found";
    assert_eq!(refusal(outcome), missing);
    let nowhere = tool()
        .with_programs(Programs { ffmpeg: Some(PathBuf::from("/nowhere/ffmpeg")), ..Programs::default() });
    let outcome = wait(nowhere.frames(&media("a.mp4"), &FramePlan::default()));
    let missing = "E4011 cannot read the media file: ffmpeg cannot be started: /nowhere/ffmpeg";
    assert_eq!(refusal(outcome), missing);
}
