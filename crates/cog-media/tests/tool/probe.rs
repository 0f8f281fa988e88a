//! The facts of containers and documents.

use std::{fs::OpenOptions, io::Write as _, path::Path, process::ExitCode};

use cog_media::{MediaDeclaration, MediaInfo, MediaRules, PageText, Tool, check, sniff};

use crate::{
    convert::converter,
    files::{refusal, stored, tool, wait},
    samples::{document, generate, pdf},
};

pub(crate) const TESTS: &[(&str, fn())] = tests![
    audio_has_duration_rate_and_channels,
    video_has_duration_and_dimensions,
    tracks_of_webm_decide_between_audio_and_video,
    duration_is_found_without_a_header,
    samples_decide_the_duration_of_wav,
    mpeg_audio_needs_no_tag,
    unknown_durations_are_found,
    data_of_mp4_may_be_open_or_too_long,
    recording_that_ends_early_is_noted,
    webm_may_end_anywhere_after_its_first_frame,
    encrypted_video_is_refused,
    codec_that_is_not_supported_is_named,
    document_has_pages_and_text,
    text_of_forms_is_read,
    text_of_annotations_is_read,
    values_of_fields_follow_their_labels,
    values_that_are_not_drawn_are_read_with_pdftotext_too,
    annotation_that_cannot_be_read_is_counted,
    spacing_of_characters_separates_words,
    file_over_a_limit_has_a_reason,
    missing_program_is_reported,
    program_has_arguments_of_its_own,
    program_that_is_no_reader_starts_once,
];

fn facts(bytes: &[u8]) -> MediaInfo {
    let media =
        wait(check(stored(bytes), &MediaDeclaration::default(), &MediaRules::default(), Some(&tool())));
    *media.unwrap().info()
}

/// Returns whether the duration is four seconds, with the padding of codecs.
fn is_four_seconds(facts: &MediaInfo) -> bool {
    facts.duration_ms.is_some_and(|duration| (3_900..4_300).contains(&duration))
}

fn audio_has_duration_rate_and_channels() {
    for arguments in
        ["-map 1 a.mp3", "-map 1 -write_xing 0 b.mp3", "-map 1 a.wav", "-map 1 -c:a libvorbis a.ogg"]
    {
        let facts = facts(&generate(arguments));
        assert!(is_four_seconds(&facts), "{arguments}: {facts:?}");
        let rate = if arguments.contains("opus") { 48_000 } else { 44_100 };
        let audio = (facts.sample_rate, facts.channels, facts.width);
        assert_eq!(audio, (Some(rate), Some(1), None), "{arguments}");
    }
}

fn video_has_duration_and_dimensions() {
    for arguments in [
        "a.mp4",
        "-an b.mp4",
        "a.mov",
        "-c:v libvpx -c:a libopus a.webm",
        "-c:v libx265 -x265-params log-level=none -tag:v hvc1 a.mp4",
        "-c:v prores a.mov",
        "-an -c:v mjpeg a.mov",
    ] {
        let facts = facts(&generate(arguments));
        assert!(is_four_seconds(&facts), "{arguments}: {facts:?}");
        assert_eq!((facts.width, facts.height), (Some(320), Some(240)), "{arguments}");
        assert_eq!(facts.sample_rate.is_some(), !arguments.contains("-an"), "{arguments}");
    }
}

fn tracks_of_webm_decide_between_audio_and_video() {
    let audio = generate("-map 1 -c:a libopus a.webm");
    assert_eq!(sniff(&audio), Some("video/webm"));
    let declared =
        MediaDeclaration { media_type: Some("audio/webm".to_owned()), ..MediaDeclaration::default() };
    let media = wait(check(stored(&audio), &declared, &MediaRules::default(), Some(&tool()))).unwrap();
    assert_eq!(media.media_type(), "audio/webm");
    // Browsers name the container, and its codec.
    for named in ["video/webm", "audio/webm;codecs=opus", "video/webm; codecs=\"opus\""] {
        let declared = MediaDeclaration { media_type: Some(named.to_owned()), ..MediaDeclaration::default() };
        let media = wait(check(stored(&audio), &declared, &MediaRules::default(), Some(&tool()))).unwrap();
        assert_eq!((media.media_type(), media.hint_warning()), ("audio/webm", None), "{named}");
    }
    let video = generate("-an -c:v libvpx a.webm");
    let declared =
        MediaDeclaration { media_type: Some("audio/webm".to_owned()), ..MediaDeclaration::default() };
    let outcome = wait(check(stored(&video), &declared, &MediaRules::default(), Some(&tool())));
    assert_eq!(refusal(outcome), "E1014 declared as audio/webm, but the content is video/webm");
    let audio = generate("-map 1 -c:a aac -f mp4 a.mp4");
    let outcome =
        wait(check(stored(&audio), &MediaDeclaration::default(), &MediaRules::default(), Some(&tool())));
    assert!(refusal(outcome).starts_with("E1010 audio/mp4 is not supported here"));
}

fn duration_is_found_without_a_header() {
    let streamed_wav = {
        let mut bytes = generate("-map 1 -bitexact a.wav");
        for size in [4..8, 40..44] {
            bytes[size].fill(0xff);
        }
        bytes
    };
    let files = ["-movflags frag_keyframe+empty_moov a.mp4", "-c:v libvpx -c:a libopus -live 1 a.webm"];
    for bytes in files.map(generate).into_iter().chain([streamed_wav]) {
        assert!(is_four_seconds(&facts(&bytes)), "{:?} {:?}", sniff(&bytes), facts(&bytes));
    }
}

fn samples_decide_the_duration_of_wav() {
    let wav = generate("-map 1 -bitexact a.wav");
    let with_sizes = |whole: u32, data: u32| {
        let sizes = [(4, whole), (40, data)];
        sizes.iter().fold(wav.clone(), |mut bytes, (at, size)| {
            bytes[*at..at + 4].copy_from_slice(&size.to_le_bytes());
            bytes
        })
    };
    let data = u32::try_from(wav.len() - 44).unwrap();
    for (whole, size) in [
        (u32::MAX, u32::MAX),
        (0x7fff_ffff, 0x7fff_ffff - 36),
        (0, 0),
        (data + 36, 0),
        (0, data),
        (data + 36, data + 5000),
        (2_000_000_036, 2_000_000_000),
    ] {
        assert!(is_four_seconds(&facts(&with_sizes(whole, size))), "{whole} {size}");
    }
    let cut = facts(&wav[..44 + 44_100]);
    assert_eq!(cut.duration_ms, Some(500));
    // What follows the samples is no sound.
    let tagged = [&wav[..], b"LIST", &88_200_u32.to_le_bytes(), &[0; 88_200]].concat();
    assert!(is_four_seconds(&facts(&tagged)));
    let outcome =
        wait(check(stored(&wav[..44]), &MediaDeclaration::default(), &MediaRules::default(), Some(&tool())));
    assert_eq!(refusal(outcome), "E1013 unreadable audio/wav: it contains no audio and no video");
}

fn mpeg_audio_needs_no_tag() {
    for arguments in
        ["-ar 8000 -b:a 16k", "-ar 11025 -b:a 16k", "-ar 12000 -b:a 24k", "-ar 22050 -b:a 32k", "-ar 48000"]
    {
        let bytes = generate(&format!("-map 1 {arguments} -write_xing 0 -id3v2_version 0 a.mp3"));
        assert!(is_four_seconds(&facts(&bytes)), "{arguments}");
        assert!(is_four_seconds(&facts(&[&[0; 417][..], &bytes].concat())), "{arguments} after zeros");
    }
}

fn find(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

fn unknown_durations_are_found() {
    let mut bytes = generate("-movflags frag_keyframe+empty_moov a.mp4");
    // In version 0, the duration of a track is 20 bytes after its kind, and of the others 16.
    for (kind, offset) in [(b"mvhd", 20), (b"mdhd", 20), (b"tkhd", 24)] {
        let at = find(&bytes, kind) + offset;
        bytes[at..at + 4].fill(0xff);
    }
    assert!(is_four_seconds(&facts(&bytes)), "{:?}", facts(&bytes));
}

fn data_of_mp4_may_be_open_or_too_long() {
    let bytes = generate("-movflags faststart a.mp4");
    let at = find(&bytes, b"mdat") - 4;
    let size = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    for wrong in [0, size + 1000, u32::MAX] {
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&wrong.to_be_bytes());
        assert!(is_four_seconds(&facts(&changed)), "{wrong}");
        // What is missing is missing.
        changed.truncate(bytes.len() * 3 / 4);
        let outcome = wait(check(
            stored(&changed),
            &MediaDeclaration::default(),
            &MediaRules::default(),
            Some(&tool()),
        ));
        assert_eq!(refusal(outcome), "E1013 unreadable video/mp4: the file is truncated", "{wrong}");
    }
}

fn recording_that_ends_early_is_noted() {
    for arguments in ["-map 1 a.mp3", "-map 1 a.wav"] {
        let bytes = generate(arguments);
        assert_eq!(facts(&bytes).missing_ms, None, "{arguments}");
        for quarter in [2, 3] {
            let cut = facts(&bytes[..bytes.len() / 4 * quarter + quarter]);
            assert!(cut.missing_ms.is_some_and(|missing| missing > 500), "{arguments}: {cut:?}");
        }
    }
    // A rate that varies is estimated without a tag, and no end is missing.
    let varies = "-map 1 -af volume='if(lt(t,1),1,0)':eval=frame -q:a 6 -write_xing 0 a.mp3";
    assert_eq!(facts(&generate(varies)).missing_ms, None);
    let mut streamed = generate("-map 1 -bitexact a.wav");
    streamed[40..44].copy_from_slice(&0x7fff_ffff_u32.to_le_bytes());
    assert_eq!(facts(&streamed).missing_ms, None);
}

fn webm_may_end_anywhere_after_its_first_frame() {
    for arguments in ["-c:v libvpx -c:a libopus a.webm", "-map 1 -c:a libopus b.webm"] {
        let whole = generate(arguments);
        let first = memchr::memmem::find(&whole, &[0x1f, 0x43, 0xb6, 0x75]).unwrap();
        for percent in [20, 33, 50, 60, 75, 90] {
            let facts = facts(&whole[..first + (whole.len() - first) * percent / 100]);
            assert!(is_four_seconds(&facts), "{arguments} {percent}: {facts:?}");
            assert!(
                facts.missing_ms.is_some_and(|missing| missing > 100),
                "{arguments} {percent}: {facts:?}"
            );
        }
        for length in [first - 10, first, first + 6] {
            let media = MediaDeclaration::default();
            let outcome =
                wait(check(stored(&whole[..length]), &media, &MediaRules::default(), Some(&tool())));
            assert!(refusal(outcome).starts_with("E1013 "), "{arguments} {length}");
        }
    }
}

fn encrypted_video_is_refused() {
    let key = "00112233445566778899aabbccddeeff";
    let scheme = format!("-encryption_scheme cenc-aes-ctr -encryption_key {key} -encryption_kid {key}");
    for (file, media_type) in [("a.mp4", "video/mp4"), ("-map 1 -c:a aac -f mp4 a.mp4", "video/mp4")] {
        let bytes = generate(&format!("{scheme} {file}"));
        let outcome =
            wait(check(stored(&bytes), &MediaDeclaration::default(), &MediaRules::default(), Some(&tool())));
        let expected = format!("E1013 unreadable {media_type}: it is encrypted (DRM)");
        assert_eq!(refusal(outcome), expected, "{file}");
    }
}

fn codec_that_is_not_supported_is_named() {
    for (arguments, expected) in [
        ("-map 1 -c:a libmp3lame a.wav", "audio/wav with MP3"),
        ("-map 1 -c:a adpcm_g726 -ar 8000 a.wav", "audio/wav with G.726"),
        ("-map 1 -rf64 always a.wav", "audio/x-rf64"),
        ("-map 1 -c:a libspeex -ar 16000 a.ogg", "audio/ogg with Speex"),
        ("-c:v libtheora -c:a libvorbis a.ogg", "video/ogg"),
    ] {
        let bytes = generate(arguments);
        let outcome =
            wait(check(stored(&bytes), &MediaDeclaration::default(), &MediaRules::default(), Some(&tool())));
        let refused = refusal(outcome);
        assert!(
            refused.starts_with(&format!("E1010 {expected} is not supported here; use one of: image/")),
            "{refused}"
        );
    }
}

fn document_has_pages_and_text() {
    let document = pdf(&["One\nand two", "", "Three"]);
    assert_eq!(facts(&document).pages, Some(3));
    let pages = wait(tool().text(&stored(&document))).unwrap();
    let texts: Vec<_> = pages.iter().map(|page| (page.number, page.text.as_str())).collect();
    assert_eq!(texts, [(1, "One\nand two"), (2, ""), (3, "Three")]);
    let marked = "[page 1]\nOne\nand two\n\n[page 2]\n(no text)\n\n[page 3]\nThree\n";
    assert_eq!(PageText::marked(&pages), marked);
}

const FONT: &str =
    "/Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >> >>";

/// Returns a PDF with one page of this content, and these forms with their resources and content.
fn with_forms(content: &str, forms: &[(&str, &str)]) -> Vec<u8> {
    let names: String = (0..forms.len()).map(|at| format!("/X{at} {} 0 R ", at + 5)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
             /Resources << {FONT} /XObject << {names} >> >> >>"
        ),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    objects.extend(forms.iter().map(|(resources, content)| {
        let length = content.len();
        format!(
            "<< /Type /XObject /Subtype /Form {resources} /Length {length} >>\nstream\n{content}\nendstream"
        )
    }));
    document(&objects)
}

fn text_of_page(document: &[u8]) -> String {
    wait(tool().text(&stored(document))).unwrap().remove(0).text
}

fn text_of_forms_is_read() {
    let own = format!("/Resources << {FONT} /XObject << /Inner 6 0 R >> >> /Matrix [1 0 0 1 0 -20]");
    let outer = "BT /F1 10 Tf 72 720 Td (Form) Tj ET /Inner Do";
    let document = with_forms(
        "BT /F1 10 Tf 72 740 Td (Page) Tj ET q /X0 Do Q BT /F1 10 Tf 72 500 Td (End) Tj ET",
        &[(&own, outer), ("", "BT /F1 10 Tf 72 600 Td (Inner) Tj ET")],
    );
    assert_eq!(text_of_page(&document), "Page\nForm\nInner\nEnd");
    let endless = format!("/Resources << {FONT} /XObject << /X0 5 0 R >> >>");
    let again = "BT /F1 10 Tf 72 720 Td (again) Tj ET ".to_owned() + &"/X0 Do ".repeat(99);
    let text = text_of_page(&with_forms("/X0 Do", &[(&endless, &again)]));
    let count = text.split_whitespace().count();
    assert!((1..10_000).contains(&count), "{count}");
    // Forms that draw the next one twice, and again.
    let doubling: Vec<(String, String)> = (0..30)
        .map(|at| {
            let next = format!("/Resources << {FONT} /XObject << /X {} 0 R >> >>", at + 6);
            (next, "BT /F1 10 Tf (word ) Tj ET /X Do /X Do".to_owned())
        })
        .collect();
    let doubling: Vec<(&str, &str)> =
        doubling.iter().map(|(resources, content)| (resources.as_str(), content.as_str())).collect();
    let count = text_of_page(&with_forms("/X0 Do", &doubling)).split_whitespace().count();
    assert!((100..10_000).contains(&count), "{count}");
}

/// Returns a PDF with one page, `Page`, these annotations, and these appearances as objects from the fifth on.
fn with_annotations(annotations: &[&str], appearances: &[(&str, &str)]) -> Vec<u8> {
    let content = "BT /F1 10 Tf 72 740 Td (Page) Tj ET";
    let annotations: String =
        annotations.iter().map(|it| format!("<< /Type /Annot /Rect [0 0 99 20] {it} >> ")).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
             /Resources << {FONT} >> /Annots [{annotations}] >>"
        ),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    objects.extend(appearances.iter().map(|(font, content)| {
        let length = content.len();
        format!(
            "<< /Type /XObject /Subtype /Form /BBox [0 0 99 20] /Resources << {font} >> /Length {length} >>\n\
             stream\n{content}\nendstream"
        )
    }));
    document(&objects)
}

fn text_of_annotations_is_read() {
    let shown = |text: &str| format!("/Tx BMC BT /F1 10 Tf 2 5 Td {text} ET EMC");
    let read = |annotation: &str, content: &str| {
        let text = text_of_page(&with_annotations(&[annotation], &[(FONT, &shown(content))]));
        text.strip_prefix("Page").unwrap().trim_start().to_owned()
    };
    for (annotation, content, expected) in [
        ("/Subtype /Widget /FT /Tx /V (old) /AP << /N 5 0 R >>", "(1250.75 EUR) Tj", "1250.75 EUR"),
        ("/Subtype /FreeText /Contents (Draft) /AP << /N 5 0 R >>", "(NOT VALID) Tj", "NOT VALID"),
        ("/Subtype /Stamp /AP << /N << /On 5 0 R /Off 4 0 R >> >> /AS /On", "(PAID) Tj", "PAID"),
        (
            "/Subtype /Widget /FT /Tx /V (DE44) /AP << /N 5 0 R >>",
            "(D) Tj 20 0 Td (E) Tj 20 0 Td (44) Tj",
            "DE44",
        ),
        ("/Subtype /Widget /FT /Tx /V (Ada\\rLovelace) /AP << /N 5 0 R >>", "", "Ada\nLovelace"),
        ("/Subtype /Widget /Parent << /FT /Tx /V <FEFF00C4> >>", "", "Ä"),
        ("/Subtype /Widget /FT /Ch /V (b) /Opt [[(a) (One)] [(b) (Two)]]", "", "Two"),
        (
            "/Subtype /Widget /FT /Btn /T (Married) /AS /Yes /AP << /N << /Yes 5 0 R >> >>",
            "(4) Tj",
            "[x] Married",
        ),
        ("/Subtype /Widget /FT /Btn /Ff 32768 /T (Size) /AS /L", "", "[x] Size: L"),
        ("/Subtype /Widget /FT /Btn /T (Married) /AS /Off", "", ""),
        ("/Subtype /FreeText /Contents (No appearance)", "", "No appearance"),
        ("/Subtype /Widget /FT /Tx /F 2 /V (hidden)", "", ""),
        ("/Subtype /Widget /FT /Tx /Ff 8192 /V (secret) /AP << /N 5 0 R >>", "(******) Tj", "******"),
        ("/Subtype /Text /Contents (A note in a closed window)", "", ""),
    ] {
        assert_eq!(read(annotation, content), expected, "{annotation}");
    }
}

/// Returns a PDF with one page that shows strings at points, with fields in rectangles.
fn filled_form(strings: &[([i32; 2], &str)], fields: &[([i32; 4], &str)]) -> Vec<u8> {
    let strings = strings.iter().map(|([x, y], text)| format!("1 0 0 1 {x} {y} Tm ({text}) Tj "));
    let content = format!("BT /F1 10 Tf {} ET", strings.collect::<String>());
    let fields = fields.iter().map(|([left, bottom, right, top], value)| {
        format!(
            "<< /Type /Annot /Subtype /Widget /FT /Tx /Rect [{right} {top} {left} {bottom}] /V ({value}) >> "
        )
    });
    document(&[
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << {FONT} >> \
             /Annots [{}] >>",
            fields.collect::<String>()
        ),
        format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ])
}

/// The fields are in any order in the file, and some are empty.
fn values_of_fields_follow_their_labels() {
    // One string may have several parts, and a character is 6 points wide.
    let left = filled_form(
        &[
            ([72, 700], "Name:"),
            ([300, 700], "Bo"),
            ([312, 700], "rn:"),
            ([72, 680], "City:"),
            ([300, 680], "Zip:"),
        ],
        &[
            ([350, 676, 450, 692], "10115"),
            ([120, 676, 280, 692], ""),
            ([350, 696, 450, 712], "1815"),
            ([120, 696, 280, 712], "Ada"),
        ],
    );
    assert_eq!(text_of_page(&left), "Name: Ada Born: 1815\nCity: Zip: 10115");
    let lines = filled_form(
        &[([72, 700], "From ___"), ([120, 700], "___ to ______"), ([72, 680], "by")],
        &[([170, 698, 240, 712], "Rome"), ([110, 698, 140, 712], "Bonn"), ([100, 678, 300, 692], "train")],
    );
    assert_eq!(text_of_page(&lines), "From ______ to ______ Bonn Rome\nby train");
    let above = filled_form(
        &[([72, 720], "Item"), ([102, 720], "name"), ([200, 720], "Price"), ([72, 620], "Total")],
        &[
            ([72, 700, 190, 716], "Pen"),
            ([200, 700, 300, 716], "2.50"),
            ([72, 685, 190, 700], "Ink"),
            ([200, 685, 300, 700], ""),
            ([400, 300, 500, 316], "apart"),
        ],
    );
    assert_eq!(text_of_page(&above), "Item name Pen Price 2.50\nTotal\nInk\napart");
    // What is between a label and a field belongs to the label.
    let between =
        filled_form(&[([72, 700], "Sizes:")], &[([120, 696, 150, 712], ""), ([160, 696, 190, 712], "L")]);
    assert_eq!(text_of_page(&between), "Sizes:\nL");
}

/// pdftotext reads only what is drawn.
fn values_that_are_not_drawn_are_read_with_pdftotext_too() {
    let fields = ["/Subtype /Widget /FT /Tx /V (Ada)", "/Subtype /Widget /FT /Btn /T (Member) /AS /Yes"];
    let bytes = with_annotations(&fields, &[]);
    for tool in [converter(), tool()] {
        let page = wait(tool.text(&stored(&bytes))).unwrap().remove(0);
        assert_eq!((page.text.as_str(), page.annotations), ("Page\nAda\n[x] Member", 2));
    }
}

fn annotation_that_cannot_be_read_is_counted() {
    let font = "/Font << /F1 << /Type /Font /Subtype /Type0 /Encoding /Identity-H /DescendantFonts [<< /Type /Font >>] >> >>";
    let stamp = "/Subtype /Stamp /AP << /N 5 0 R >>";
    let nested = "/Subtype /Stamp /AP << /N 6 0 R >>";
    let field = "/Subtype /Widget /FT /Tx /V (known) /AP << /N 5 0 R >>";
    for (annotations, unread) in [(&[stamp, field, nested][..], 2), (&[field], 0)] {
        let appearances = [(font, "BT /F1 10 Tf (\\000A) Tj ET"), ("/XObject << /X 5 0 R >>", "/X Do")];
        let bytes = with_annotations(annotations, &appearances);
        let page = wait(tool().text(&stored(&bytes))).unwrap().remove(0);
        assert_eq!((page.text.as_str(), page.unread), ("Page\nknown", unread));
    }
}

fn spacing_of_characters_separates_words() {
    let shown = "/F1 10 Tf 72 700 Td (seve) Tj 2.5 Tc 24 0 Td (nf) Tj 0 Tc 14.5 0 Td (ox) Tj";
    assert_eq!(text_of_page(&with_forms(&format!("BT {shown} ET"), &[])), "seven fox");
    let wide = "/F1 10 Tf 2.5 Tc 72 700 Td (TIT) Tj (LES) Tj 57 0 Td (TWO) Tj";
    assert_eq!(text_of_page(&with_forms(&format!("BT {wide} ET"), &[])), "TITLES TWO");
    for kerned in ["[(TI) 80 (TLES)]", "[(T) 180 (IT) -80 (LES)]", "[(TI) 80 (TL) 80 (ES)]"] {
        let shown = format!("/F1 10 Tf 4 Tc 72 700 Td {kerned} TJ");
        assert_eq!(text_of_page(&with_forms(&format!("BT {shown} ET"), &[])), "TITLES", "{kerned}");
    }
}

fn file_over_a_limit_has_a_reason() {
    let nominal = MediaRules { max_duration_ms: Some(4_000), ..MediaRules::default() };
    for padded in ["-map 1 a.mp3", "a.mp4"] {
        wait(check(stored(&generate(padded)), &MediaDeclaration::default(), &nominal, Some(&tool())))
            .unwrap();
    }
    let rules = MediaRules { max_duration_ms: Some(3_000), max_pages: 2, ..MediaRules::default() };
    for (bytes, reason) in [(generate("a.mp4"), "duration"), (pdf(&["1", "2", "3"]), "pages")] {
        let outcome = wait(check(stored(&bytes), &MediaDeclaration::default(), &rules, Some(&tool())));
        let error = outcome.unwrap_err();
        assert_eq!((error.code().as_str(), error.reason()), ("E1011", Some(reason)));
    }
}

fn missing_program_is_reported() {
    let outcome = wait(Tool::new("/nowhere/cog").probe(&stored(b"%PDF-1.7"), "application/pdf"));
    let message = refusal(outcome);
    assert!(
        message.starts_with("E4011 cannot read the media file: the reader process cannot start"),
        "{message}"
    );
}

#[cfg(not(unix))]
fn program_has_arguments_of_its_own() {}

/// Starts the program by another one, as an interpreter starts a script.
#[cfg(unix)]
fn program_has_arguments_of_its_own() {
    let script = std::env::current_exe().unwrap().into_os_string();
    let tool = Tool::new("/usr/bin/env").with_arguments(vec![script]);
    let facts = wait(tool.probe(&stored(&pdf(&["1", "2"])), "application/pdf")).unwrap();
    assert_eq!(facts.pages, Some(2));
}

/// A program that reads a document and does not handle `internal-media`. It notes each of its starts in a file.
pub(crate) fn forgetful(starts: &Path) -> ExitCode {
    let mut file = OpenOptions::new().create(true).append(true).open(starts).unwrap();
    writeln!(file, "started").unwrap();
    let arguments = vec![FORGETFUL.into(), starts.into()];
    let tool = Tool::new(std::env::current_exe().unwrap()).with_arguments(arguments);
    match wait(tool.probe(&stored(&pdf(&["1"])), "application/pdf")) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// The first argument of a program that is no reader.
pub(crate) const FORGETFUL: &str = "forgetful";

fn program_that_is_no_reader_starts_once() {
    let directory = tempfile::tempdir().unwrap();
    let starts = directory.path().join("starts");
    let arguments = vec![FORGETFUL.into(), starts.clone().into()];
    let tool = Tool::new(std::env::current_exe().unwrap()).with_arguments(arguments);
    let message = refusal(wait(tool.probe(&stored(&pdf(&["1"])), "application/pdf")));
    assert_eq!(message, "E4011 cannot read the media file: the process that should read it is no reader");
    assert_eq!(std::fs::read_to_string(&starts).unwrap(), "started\n");
}
