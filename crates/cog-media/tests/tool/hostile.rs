//! Hostile files: each is refused with a code or read as its type, in time.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use flate2::{Compression, write::ZlibEncoder};

use cog_media::{FramePlan, FrameSelection, MediaDeclaration, MediaError, MediaRules, check};

use crate::{
    convert::converter,
    files::{stored, tool, wait},
    mutate::mutated,
    samples::{corpus, document, generate, pdf},
};

pub(crate) const TESTS: &[(&str, fn())] = tests![
    empty_and_one_byte_files_are_unsupported,
    truncated_files_are_damaged,
    oversized_images_are_refused,
    gif_with_many_frames_is_read,
    boxes_with_invalid_lengths_are_damaged,
    elements_with_invalid_lengths_end,
    audio_without_frames_is_damaged,
    documents_with_loops_end,
    documents_that_expand_are_bounded,
    compressed_bombs_are_bounded,
    page_limit_is_exact,
    first_of_two_types_counts,
    playlists_and_scripts_are_unsupported,
    mutated_files_return_a_code_or_a_type,
    frames_of_mutated_videos_return_a_result,
    programs_have_limits_and_no_environment,
];

/// Returns the code of the error, or the type; fails after two seconds.
fn outcome_of(bytes: &[u8]) -> String {
    let begin = Instant::now();
    let outcome =
        wait(check(stored(bytes), &MediaDeclaration::default(), &MediaRules::default(), Some(&tool())));
    let took = begin.elapsed();
    assert!(
        took < Duration::from_secs(2),
        "{took:?} for {}",
        String::from_utf8_lossy(&bytes[..bytes.len().min(60)])
    );
    outcome.map_or_else(|error| error.code().to_string(), |media| media.media_type().to_owned())
}

fn empty_and_one_byte_files_are_unsupported() {
    assert_eq!(outcome_of(b""), "E1010");
    for byte in 0..=255 {
        assert_eq!(outcome_of(&[byte]), "E1010", "{byte}");
    }
}

fn truncated_files_are_damaged() {
    // The beginning of an audio file is valid.
    let readable = ["wav", "mp3"];
    for (kind, bytes) in corpus() {
        for length in [16, 40, 100] {
            let outcome = outcome_of(&bytes[..length]);
            let is_refused = ["E1010", "E1013"].contains(&outcome.as_str());
            assert!(is_refused || readable.contains(&kind), "{length} bytes of {kind}: {outcome}");
        }
    }
}

/// Returns a PNG that declares these dimensions, with `rest` after its end.
fn png(width: u32, height: u32, rest: &[u8]) -> Vec<u8> {
    let mut header = b"IHDR".to_vec();
    header.extend([width.to_be_bytes(), height.to_be_bytes()].concat());
    header.extend([8, 6, 0, 0, 0]);
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\r".to_vec();
    bytes.extend(&header);
    bytes.extend(crc32fast::hash(&header).to_be_bytes());
    bytes.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e\0\0\0\0IEND\xae\x42\x60\x82");
    bytes.extend(rest);
    bytes
}

fn oversized_images_are_refused() {
    assert_eq!(outcome_of(&png(8192, 8192, b"")), "image/png");
    assert_eq!(outcome_of(&png(8193, 1, b"")), "E1015");
    assert_eq!(outcome_of(&png(60_000, 60_000, b"")), "E1015");
    assert_eq!(outcome_of(&png(u32::MAX, u32::MAX, b"")), "E1013");
    assert_eq!(outcome_of(&png(0, 10, b"")), "E1013");
    assert_eq!(outcome_of(&png(1, 1, &vec![0; 5_000_000])), "image/png");
    let webp = b"RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff";
    assert!(["E1013", "E1015"].contains(&outcome_of(webp).as_str()));
}

fn gif_with_many_frames_is_read() {
    let frame = b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0";
    let mut gif = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0!\xff\x0bNETSCAPE2.0\x03\x01\0\0\0".to_vec();
    gif.extend(frame.repeat(300_000));
    assert_eq!(outcome_of(&gif), "image/gif");
}

fn boxes_with_invalid_lengths_are_damaged() {
    let start = b"\0\0\0\x18ftypisom\0\0\x02\0isomiso2";
    let inner = |name: &[u8; 4], size: u32, rest: &[u8]| [&size.to_be_bytes(), &name[..], rest].concat();
    let deep = (0..20_000).fold(Vec::new(), |inside: Vec<u8>, _| {
        let size = u32::try_from(inside.len() + 8).unwrap();
        if inside.len() > 100_000 { inside } else { inner(b"moov", size, &inside) }
    });
    let boxes = [
        inner(b"moov", u32::MAX, b""),
        inner(b"moov", 0, b""),
        inner(b"moov", 7, b"abcdef"),
        inner(b"moov", 1, &u64::MAX.to_be_bytes()),
        inner(b"mdat", 1, &(u64::MAX - 1).to_be_bytes()),
        inner(b"moov", 1, &0_u64.to_be_bytes()),
        inner(b"stsz", 20, &[0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
        deep,
    ];
    for (at, invalid) in boxes.iter().enumerate() {
        assert_eq!(outcome_of(&[&start[..], invalid].concat()), "E1013", "box {at}");
    }
    // Each length in the index declares four billion entries.
    let video = generate("-an -t 1 -s 48x32 a.mp4");
    for name in [b"stsz", b"stts", b"stsc", b"stco", b"stsd"] {
        let at = video.windows(4).position(|window| window == name).unwrap();
        let mut changed = video.clone();
        changed[at + 8..at + 16].fill(0xff);
        let code = outcome_of(&changed);
        assert!(["E1010", "E1011", "E1013"].contains(&code.as_str()), "{code}");
    }
}

fn elements_with_invalid_lengths_end() {
    let video = generate("-an -t 1 -s 48x32 -c:v libvpx a.webm");
    for element in [&b"\x16\x54\xae\x6b"[..], b"\x1f\x43\xb6\x75", b"\x15\x49\xa9\x66"] {
        let at = video.windows(4).position(|window| window == element).unwrap() + 4;
        let mut changed = video.clone();
        changed[at..at + 8].copy_from_slice(&[0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe]);
        assert!(["E1013", "video/webm"].contains(&outcome_of(&changed).as_str()));
    }
}

fn audio_without_frames_is_damaged() {
    let tag = |size: [u8; 4]| [&b"ID3\x04\0\0"[..], &size, &[0; 2000]].concat();
    for bytes in
        [tag([0, 0, 7, 0x76]), tag([0x7f; 4]), tag([0; 4]), [&b"\xff\xfb\x90\x64"[..], &[0; 3]].concat()]
    {
        assert_eq!(outcome_of(&bytes), "E1013");
    }
    let wav = |channels: u16, rate: u32, length: u32| {
        let mut bytes = b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0".to_vec();
        bytes.extend(channels.to_le_bytes());
        bytes.extend(rate.to_le_bytes());
        bytes.extend([0, 0, 0, 0, 2, 0, 16, 0]);
        bytes.extend(b"data");
        bytes.extend(length.to_le_bytes());
        [bytes, vec![0; 1000]].concat()
    };
    for (channels, rate, length) in [(0, 8000, 1000), (1, 0, 1000), (u16::MAX, u32::MAX, u32::MAX)] {
        assert_eq!(outcome_of(&wav(channels, rate, length)), "E1013", "{channels} channels at {rate}");
    }
    assert_eq!(outcome_of(&[&b"OggS\0\x02"[..], &[0xff; 4000]].concat()), "E1013");
}

/// Returns a document with this page tree and more objects, from the third on.
fn tree(pages: &str, more: &[&str]) -> Vec<u8> {
    let first = ["<< /Type /Catalog /Pages 2 0 R >>", pages];
    document(&first.iter().chain(more).map(|object| (*object).to_owned()).collect::<Vec<_>>())
}

fn documents_with_loops_end() {
    let own = tree("<< /Type /Pages /Kids [2 0 R] /Count 1 >>", &[]);
    let parents = tree(
        "<< /Type /Pages /Kids [3 0 R] /Parent 3 0 R /Count 2147483647 >>",
        &["<< /Type /Pages /Kids [2 0 R 2 0 R] /Parent 2 0 R /Count -1 >>"],
    );
    let contents = tree(
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        &["<< /Type /Page /Parent 3 0 R /Contents 4 0 R /Resources 4 0 R >>", "4 0 R"],
    );
    let lengths = tree(
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        &["<< /Type /Page /Contents 4 0 R >>", "<< /Length 4 0 R >>\nstream\nBT ET\nendstream"],
    );
    let before = String::from_utf8(pdf(&["One"])).unwrap();
    let table = before.rfind("\nxref").unwrap() + 1;
    let previous = before.replace("/Root 1 0 R", &format!("/Root 1 0 R /Prev {table}"));
    for (at, bytes) in [own, parents, contents, lengths, previous.into_bytes()].iter().enumerate() {
        let code = outcome_of(bytes);
        assert!(["E1013", "E1011", "application/pdf"].contains(&code.as_str()), "{at}: {code}");
        read_in_time(bytes);
    }
}

/// Reads the text of a document; fails after five seconds.
fn read_in_time(bytes: &[u8]) {
    let begin = Instant::now();
    let text = wait(tool().text(&stored(bytes)));
    assert!(matches!(text, Ok(_) | Err(MediaError::Damaged { .. })));
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

fn documents_that_expand_are_bounded() {
    let deep = tree(&format!("<< /Type /Pages /Kids {} >>", "[".repeat(200_000)), &[]);
    assert_eq!(outcome_of(&deep), "E1013");
    // Run-length encoding expands two bytes to a hundred, at each of four levels.
    let filters = "[/RunLengthDecode /RunLengthDecode /RunLengthDecode /RunLengthDecode /ASCIIHexDecode]";
    let bomb = format!("<< /Filter {filters} /Length 40000 >>\nstream\n{}\nendstream", "81 20".repeat(8000));
    let page = "<< /Type /Page /Parent 2 0 R /Contents [4 0 R 4 0 R 4 0 R 4 0 R] >>";
    read_in_time(&tree("<< /Type /Pages /Kids [3 0 R] /Count 1 >>", &[page, &bomb]));
    let kids = "3 0 R ".repeat(200_000);
    let many = tree(&format!("<< /Type /Pages /Kids [{kids}] /Count 200000 >>"), &["<< /Type /Page >>"]);
    assert_eq!(outcome_of(&many), "E1011");
}

fn page_limit_is_exact() {
    assert_eq!(outcome_of(&pdf(&["a"; 500])), "application/pdf");
    assert_eq!(outcome_of(&pdf(&["a"; 501])), "E1011");
}

fn first_of_two_types_counts() {
    let document = pdf(&["One"]);
    let gif = b"GIF89a\x01\0\x01\0\x80\0\0\xff\xff\xff\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    assert_eq!(outcome_of(&[&gif[..], &document].concat()), "image/gif");
    assert_eq!(outcome_of(&[&b"GIF89a/*"[..], b"*/=1;alert(1)", &document].concat()), "E1013");
    assert_eq!(outcome_of(&[&document[..], &gif[..]].concat()), "application/pdf");
    assert_eq!(outcome_of(&[&document[..], b"PK\x03\x04 and more"].concat()), "application/pdf");
    let declared =
        MediaDeclaration { media_type: Some("application/pdf".to_owned()), ..MediaDeclaration::default() };
    let polyglot = stored(&[&gif[..], &document].concat());
    let outcome = wait(check(polyglot, &declared, &MediaRules::default(), Some(&tool())));
    assert_eq!(outcome.unwrap_err().code().as_str(), "E1014");
}

fn playlists_and_scripts_are_unsupported() {
    for text in [
        "#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n",
        "ffconcat version 1.0\nfile /etc/passwd\n",
        "<svg xmlns=\"http://www.w3.org/2000/svg\"><image href=\"file:///etc/passwd\"/></svg>",
        "push graphic-context\nimage over 0,0 1,1 'url(https://example.com/x)'\n",
        "%!PS\n(/etc/passwd) run\n",
    ] {
        assert_eq!(outcome_of(text.as_bytes()), "E1010", "{text}");
    }
}

fn mutated_files_return_a_code_or_a_type() {
    let corpus = corpus();
    let mut rng = fastrand::Rng::with_seed(1);
    for (kind, original) in &corpus {
        for _ in 0..25 {
            let other = &corpus[rng.usize(..corpus.len())].1;
            let outcome = outcome_of(&mutated(original, other, &mut rng));
            let is_code = ["E1010", "E1011", "E1013", "E1015", "E4011"].contains(&outcome.as_str());
            assert!(is_code || outcome.contains('/'), "{kind}: {outcome}");
        }
    }
}

fn frames_of_mutated_videos_return_a_result() {
    let original = generate("-t 1 -s 48x32 a.mp4");
    let image = original.windows(4).position(|window| window == b"mdat").unwrap() + 8;
    let mut rng = fastrand::Rng::with_seed(2);
    let plan = FramePlan { selection: FrameSelection::Count(3), ..FramePlan::default() };
    for _ in 0..10 {
        let mut bytes = original.clone();
        (0..20).for_each(|_| bytes[image + rng.usize(..1500)] = rng.u8(..));
        let video =
            wait(check(stored(&bytes), &MediaDeclaration::default(), &MediaRules::default(), Some(&tool())));
        let frames = wait(converter().frames(&video.unwrap(), &plan));
        assert!(matches!(frames, Ok(_) | Err(MediaError::Damaged { .. })));
    }
}

#[cfg(not(target_os = "linux"))]
fn programs_have_limits_and_no_environment() {}

/// Runs `cat` instead of another program, which prints its limits and environment.
#[cfg(target_os = "linux")]
fn programs_have_limits_and_no_environment() {
    for (purpose, seconds, memory) in [("convert", "120", "2147483648"), ("read-document", "10", "314572800")]
    {
        let cat = ["internal-media", purpose, "/bin/cat", "/proc/self/limits", "/proc/self/environ"];
        let output = Command::new(std::env::current_exe().unwrap())
            .args(cat)
            .env_clear()
            .env(cog_media::READER_VARIABLE, "1")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(!printed.contains(cog_media::READER_VARIABLE));
        for (limit, value) in [
            ("Max cpu time", seconds),
            ("Max file size", "0"),
            ("Max core file size", "0"),
            ("Max open files", "32"),
            ("Max address space", memory),
        ] {
            let line = printed.lines().find(|line| line.starts_with(limit)).unwrap();
            let values: Vec<_> = line[limit.len()..].split_whitespace().take(2).collect();
            assert_eq!(values, [value, value], "{purpose} {limit}");
        }
    }
}

/// Compresses bytes with zlib.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn compressed_bombs_are_bounded() {
    // A colour profile that expands to 70 MB, before the pixels.
    let profile = deflated(&vec![0; 70 << 20]);
    let mut chunk = b"iCCPname\0\0".to_vec();
    chunk.extend(&profile);
    let mut bytes = png(1, 1, b"");
    let at = bytes.windows(8).position(|window| window == b"\0\0\0\0IDAT").unwrap();
    let length = u32::try_from(chunk.len() - 4).unwrap().to_be_bytes();
    let crc = crc32fast::hash(&chunk).to_be_bytes();
    bytes.splice(at..at, [&length[..], &chunk, &crc].concat());
    assert!(["image/png", "E1013"].contains(&outcome_of(&bytes).as_str()));
    // The content of a page, compressed twice.
    for text in [&b" "[..], b"BT ET "] {
        let content = deflated(&deflated(&text.repeat((70 << 20) / text.len())));
        let filters = "/Filter [/FlateDecode /FlateDecode]";
        let stream = format!("<< {filters} /Length {} >>\nstream\n", content.len());
        let page = "<< /Type /Page /Parent 2 0 R /Contents 4 0 R >>";
        let mark = "CONTENT";
        let document =
            tree("<< /Type /Pages /Kids [3 0 R] /Count 1 >>", &[page, &format!("{stream}{mark}\nendstream")]);
        let at = document.windows(mark.len()).position(|window| window == mark.as_bytes()).unwrap();
        let mut document = document;
        document.splice(at..at + mark.len(), content);
        assert_eq!(outcome_of(&document), "application/pdf");
        read_in_time(&document);
    }
}
