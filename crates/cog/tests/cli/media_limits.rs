//! Documents and containers are read by a confined process, which decompression bombs end.

#![expect(clippy::disallowed_methods, reason = "what the kernel tells of a process stands in files")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Place, stderr};

/// Returns the limits of the process from `/proc/PID/limits`.
const LIMITS: [(&str, &str); 6] = [
    ("Max cpu time", "20"),
    ("Max address space", "1073741824"),
    ("Max open files", "3"),
    ("Max processes", "0"),
    ("Max file size", "0"),
    ("Max core file size", "0"),
];

/// A PDF of one page with this content.
fn document(content: &str) -> String {
    encoded("", content)
}

/// A PDF of one page with content that these filters decode.
fn encoded(filters: &str, content: &str) -> String {
    let objects = [
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_owned(),
        "<< /Type /Page /Parent 2 0 R /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>".to_owned(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_owned(),
        format!("<< /Filter [{filters}] /Length {} >>\nstream\n{content}\nendstream", content.len()),
    ];
    let objects: String =
        (1..).zip(&objects).map(|(at, object)| format!("{at} 0 obj\n{object}\nendobj\n")).collect();
    format!("%PDF-1.7\n{objects}trailer\n<< /Size 6 /Root 1 0 R >>\n%%EOF\n")
}

/// Forty kilobytes that become five gigabytes: each pair of bytes is a run of 128, which are such pairs again. The end has the
/// mark of the end, 80, for each of the three levels, with the inner ones as literal bytes.
fn bomb() -> String {
    let content = format!("{}0200808080", "81".repeat(20_000));
    encoded("/ASCIIHexDecode /RunLengthDecode /RunLengthDecode /RunLengthDecode", &content)
}

/// Returns the child process of a command, once it is confined.
fn reader(command: &mut Child) -> PathBuf {
    let own = Path::new("/proc").join(command.id().to_string()).join("task");
    loop {
        let threads = fs::read_dir(&own).unwrap().flatten();
        let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let children: String = children.collect();
        let child = children.split_whitespace().next().map(|child| Path::new("/proc").join(child));
        if let Some(child) = child.filter(|child| limit(child, "Max processes") == ["0", "0"]) {
            return child;
        }
        assert!(command.try_wait().unwrap().is_none(), "it ended before its reader was seen");
        std::thread::yield_now();
    }
}

/// Sends the signal at once: a program that does it starts too late where the machine is busy.
fn signal(process: &Path, signal: Signal) {
    let id = process.file_name().unwrap().to_str().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(id).unwrap(), signal).unwrap();
}

/// A soft limit and its hard limit.
fn limit(process: &Path, name: &str) -> Vec<String> {
    let messages = fs::read_to_string(process.join("limits")).unwrap_or_default();
    let line = messages.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().take(2).map(str::to_owned).collect()
}

/// Returns the open files of a process.
fn open_files(process: &Path) -> Vec<String> {
    let open = fs::read_dir(process.join("fd")).unwrap().flatten();
    let open = open.filter_map(|file| fs::read_link(file.path()).ok());
    open.map(|file| file.to_string_lossy().into_owned()).collect()
}

#[test]
fn decompression_bomb_ends_confined_process() {
    let place = Place::new();
    place.write("bomb.pdf", bomb());
    let mut command = place.cog(["media", "text", "bomb.pdf"]);
    command.env("OPENAI_API_KEY", "sk-canary").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = command.spawn().unwrap();

    let reader = reader(&mut command);
    // It is stopped while it is looked at, or it may have ended.
    signal(&reader, Signal::STOP);
    for (name, most) in LIMITS {
        assert_eq!(limit(&reader, name), [most, most], "{name}");
    }
    assert_eq!(fs::read(reader.join("environ")).unwrap(), b"COG_MEDIA_READER=1\0");
    // Files that the test runner left open are inherited.
    let inherited = open_files(Path::new("/proc/self"));
    let own: Vec<_> = open_files(&reader).into_iter().filter(|file| !inherited.contains(file)).collect();
    let is_stream = |file: &String| file.starts_with("pipe:") || file.ends_with(" (deleted)");
    assert!(!own.is_empty() && own.iter().all(is_stream), "{own:?}");

    signal(&reader, Signal::CONT);
    let output = command.wait_with_output().unwrap();
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(messages.starts_with("error[E1013]: unreadable application/pdf: "), "{messages}");
    assert!(messages.contains("exceeded its memory or time limit"), "{messages}");
    assert!(!reader.join("exe").exists(), "it still runs");
}

#[test]
fn document_with_too_much_text_is_an_error() {
    let place = Place::new();
    place.write("long.pdf", document(&format!("BT /F1 12 Tf ({}) Tj ET", "a".repeat(9 << 20))));
    let output = place.cog(["media", "text", "long.pdf"]).output().unwrap();
    let messages = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(output.stdout.is_empty());
    assert!(messages.starts_with("error[E1013]: ") && messages.contains("text"), "{messages}");
}

#[test]
fn internal_media_rejects_unknown_arguments() {
    let place = Place::new();
    for words in [&[][..], &["probe"], &["read", "/etc/passwd"], &["text", "/etc/passwd"]] {
        let output = place.cog(["internal-media"]).args(words).stdin(Stdio::null()).output().unwrap();
        assert!(!output.status.success(), "{words:?}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{words:?}: {output:?}");
    }
}
