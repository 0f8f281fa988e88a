//! `cog media text` and `cog media frames`.

use std::process::Command;

use cog_testkit::{Mock, Reply, Wire};

use crate::support::{Place, snapshot};

/// A PDF of three pages; the second has no text.
pub(crate) fn document() -> String {
    let page = |content: usize| {
        format!(
            "<< /Type /Page /Parent 2 0 R /Contents {content} 0 R /Resources << /Font << /F1 << /Type /Font \
             /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
    };
    let text = |text: &str| {
        let text = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
        format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len())
    };
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R 4 0 R 5 0 R] /Count 3 >>".to_owned(),
        page(6),
        page(7),
        page(8),
        text("One"),
        text(""),
        text("Three"),
    ];
    let (mut document, mut table) = ("%PDF-1.7\n".to_owned(), "xref\n0 9\n0000000000 65535 f \n".to_owned());
    for (at, object) in objects.iter().enumerate() {
        table += &format!("{:010} 00000 n \n", document.len());
        document += &format!("{} 0 obj\n{object}\nendobj\n", at + 1);
    }
    let begin = document.len();
    format!("{document}{table}trailer\n<< /Size 9 /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n")
}

#[test]
fn document_text_by_page() {
    let place = Place::new();
    place.write("a.pdf", document());
    snapshot!(place.cog(["media", "text", "a.pdf"]));
}

#[test]
fn document_text_as_json() {
    let place = Place::new();
    place.write("a.pdf", document());
    snapshot!(place.cog(["media", "text", "a.pdf", "--format", "json"]));
}

#[test]
fn fallback_provider_gets_document_as_text() {
    let place = Place::new();
    place.write("a.pdf", document()).write("m/prompt.md", "Read $MEDIA_INPUTS");
    place.write("m/module.yaml", "name: m\nversion: 1.0.0\nresponsibility: Read\ntier: decision\nexcludes: []\nmodalities: {input: [text, document], output: [text]}\n");
    let schema = r##"{"input": {"properties": {"paper": {"$ref": "#/$defs/MediaInput"}}}, "data": {"type": "object"}}"##;
    place.write("m/schema.json", schema);
    let (down, up) = (Mock::start([Reply::error(503, "overloaded")]), Mock::start([Reply::text("{}")]));
    let mut command = place.cog(["run", "./m", "--pdf", "a.pdf", "--provider", "anthropic,ollama"]);
    command.env("ANTHROPIC_API_KEY", "k").env("ANTHROPIC_BASE_URL", down.base_url(Wire::Anthropic));
    command.env("OLLAMA_HOST", up.base_url(Wire::Ollama)).env("COG_RETRIES", "0").output().unwrap();
    let [whole, text] = [down, up].map(|mock| mock.requests()[0].body.to_string());
    assert!(whole.contains("\"media_type\":\"application/pdf\""), "{whole}");
    assert!(text.contains("[page 2]\\n(no text)") && !text.contains("pdf;base64"), "{text}");
}

#[test]
fn unreadable_document_is_an_error() {
    let place = Place::new();
    place.write("a.pdf", "%PDF-1.7\nand nothing else");
    snapshot!(place.cog(["media", "text", "a.pdf"]));
}

/// A video of two seconds with a tone.
fn film(place: &Place) {
    let inputs = "-loglevel error -f lavfi -i testsrc=d=2:s=64x48:r=10 -f lavfi -i sine=d=2 film.mp4";
    let made = Command::new("ffmpeg").args(inputs.split(' ')).current_dir(place.path()).status();
    assert!(made.is_ok_and(|status| status.success()), "the tests of media need ffmpeg");
}

#[expect(clippy::disallowed_methods, reason = "where the test finds ffmpeg, the program shall")]
#[test]
fn frames_are_files_with_times() {
    let place = Place::new();
    film(&place);
    let path = std::env::var_os("PATH").unwrap();
    snapshot!(place.cog(["media", "frames", "film.mp4", "-o", "frames", "--audio"]).env("PATH", path));
    for file in ["frame-0001.jpg", "frame-0002.jpg", "audio.wav"] {
        assert!(place.path().join("frames").join(file).is_file(), "{file}");
    }
}

#[test]
fn without_ffmpeg_there_are_no_frames() {
    let place = Place::new();
    film(&place);
    snapshot!(place.cog(["media", "frames", "film.mp4", "-o", "frames"]));
    assert!(!place.path().join("frames").exists());
}
