//! The files of the tests, made by ffmpeg or by hand.

use std::process::Command;

/// Generates a file with ffmpeg: four seconds of a test image and a tone, with these arguments.
pub(crate) fn film(arguments: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let (options, name) = arguments.rsplit_once(' ').unwrap_or(("", arguments));
    let inputs = "-loglevel error -f lavfi -i testsrc=d=4:s=320x240:r=10 -f lavfi -i sine=d=4:r=44100";
    let made = Command::new("ffmpeg")
        .args(inputs.split(' '))
        .args(options.split(' ').filter(|option| !option.is_empty()))
        .arg(name)
        .current_dir(&directory)
        .output()
        .expect("the tests of media need ffmpeg");
    assert!(made.status.success(), "{arguments}: {}", String::from_utf8_lossy(&made.stderr));
    std::fs::read(directory.path().join(name)).unwrap()
}

/// A PDF with a page for each text; a page without text has none at all.
pub(crate) fn pdf(pages: &[&str]) -> Vec<u8> {
    let kids: Vec<_> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (at, text) in pages.iter().enumerate() {
        let shown: Vec<_> = text.lines().map(|line| format!("({line}) Tj T*")).collect();
        let content = format!("BT /F1 12 Tf 14 TL 72 720 Td {} ET", shown.join(" "));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * at
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    document(&objects)
}

/// A PDF of these objects, the first of which is its catalogue.
pub(crate) fn document(objects: &[String]) -> Vec<u8> {
    let mut text = "%PDF-1.7\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (at, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", text.len());
        text += &format!("{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let begin = text.len();
    let size = objects.len() + 1;
    text += &format!("{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n");
    text.into_bytes()
}

/// One small file of each type, with its ending.
pub(crate) fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let made = [
        ("png", "-frames:v 1 -s 48x32 a.png"),
        ("jpeg", "-frames:v 1 -s 48x32 a.jpeg"),
        ("gif", "-t 0.5 -s 48x32 a.gif"),
        ("webp", "-frames:v 1 -s 48x32 a.webp"),
        ("mp3", "-map 1 -t 1 -b:a 32k -metadata title=Title a.mp3"),
        ("wav", "-map 1 -t 0.2 a.wav"),
        ("ogg", "-map 1 -t 1 -c:a libvorbis a.ogg"),
        ("flac", "-map 1 -t 0.2 a.flac"),
        ("mp4", "-t 1 -s 48x32 a.mp4"),
        ("mov", "-t 1 -s 48x32 -movflags faststart a.mov"),
        ("webm", "-t 1 -s 48x32 -c:v libvpx -c:a libopus a.webm"),
    ];
    let made = made.map(|(kind, arguments)| (kind, film(arguments)));
    made.into_iter().chain([("pdf", pdf(&["One\nand two", "", "Three"]))]).collect()
}
