//! The example modules of the specification (section 12) on generated images and audio, against a mock of each
//! provider.
//!
//! The requests are also written to files, which `cargo xtask test` checks with the providers' own clients
//! (crates/cog-provider/tests/sdk/check.py).

use std::{
    path::Path,
    process::{Command, Output},
};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};
use tempfile::TempDir;

fn made(directory: &Path, program: &str, arguments: &str) {
    let output = Command::new(program).args(arguments.split(' ')).current_dir(directory).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; `cargo xtask test` installs it"));
    assert!(output.status.success(), "{program} {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Creates a directory with images, one second of audio and two of video, each in every accepted format.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    made(path, "/usr/bin/convert", "-size 64x48 plasma:red-blue a.jpg");
    made(path, "/usr/bin/convert", "-size 32x32 gradient:white-black b.png");
    made(path, "/usr/bin/convert", "a.jpg c.webp");
    made(path, "/usr/bin/convert", "-size 16x16 xc:red xc:blue d.gif");
    for sound in ["a.wav", "a.mp3", "a.ogg"] {
        made(path, "ffmpeg", &format!("-loglevel error -f lavfi -i sine=d=1 {sound}"));
    }
    let film = "-f lavfi -i testsrc=d=2:s=96x64:r=5 -f lavfi -i sine=d=2 -pix_fmt yuv420p";
    made(path, "ffmpeg", &format!("-loglevel error {film} a.mp4"));
    directory
}

/// Returns the answer of a module's golden test.
fn golden(module: &str) -> String {
    let module = if module == "./own" { "image-analyzer" } else { module };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules").join(module).join("tests");
    #[expect(clippy::disallowed_methods, reason = "the module's golden answer")]
    let text = std::fs::read_to_string(path.join("case1.expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    expected.get("$example").unwrap_or(&expected).to_string()
}

/// Runs a module against a mock of a provider; returns the output and the request.
fn run(wire: Wire, directory: &Path, module: &str, arguments: &[&str]) -> (Output, Vec<Value>) {
    answered([Reply::text(golden(module))], wire, directory, module, arguments)
}

/// Runs a module against a mock with these replies.
fn answered(
    replies: [Reply; 1],
    wire: Wire,
    directory: &Path,
    module: &str,
    arguments: &[&str],
) -> (Output, Vec<Value>) {
    let mock = Mock::start(replies);
    let variable = |what: &str| format!("{}_{what}", wire.provider().to_uppercase());
    let output = Command::new(env!("CARGO_BIN_EXE_cog"))
        .args(["run", module, "--provider", wire.provider()])
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        .env("HOME", directory)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env(variable("API_KEY"), "a-key-of-a-mock")
        .env(variable("BASE_URL"), mock.base_url(wire))
        .envs(wire.protocol_setting().map(|name| ("OPENAI_PROTOCOL", name)))
        .output()
        .unwrap();
    let asked: Vec<Value> = mock.requests().into_iter().map(|request| request.body).collect();
    write_down(wire, module, arguments, &asked);
    (output, asked)
}

/// Writes the request to the directory that `cargo xtask test` reads.
#[expect(clippy::disallowed_methods, reason = "a file of the tests' own")]
fn write_down(wire: Wire, module: &str, arguments: &[&str], asked: &[Value]) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("requests").join(wire.name());
    std::fs::create_dir_all(&directory).unwrap();
    let files = arguments.iter().filter(|argument| argument.contains('.'));
    let name: Vec<&str> = [module.trim_start_matches("./")].into_iter().chain(files.copied()).collect();
    for (number, body) in asked.iter().enumerate() {
        std::fs::write(directory.join(format!("{}-{number}.json", name.join("-"))), body.to_string())
            .unwrap();
    }
}

fn envelope(output: &Output) -> Value {
    let stdout = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// Returns the types of the media in a request, in order, in the format of any provider.
fn media_in(wire: Wire, body: &Value) -> Vec<String> {
    let key = match wire {
        Wire::Gemini => "contents",
        Wire::OpenAiResponses => "input",
        _ => "messages",
    };
    let messages = body[key].as_array().unwrap();
    let parts = |message: &Value| match wire {
        Wire::Gemini => message["parts"].as_array().cloned(),
        Wire::Ollama => message["images"].as_array().cloned(),
        _ => message["content"].as_array().cloned(),
    };
    let parts = messages.iter().filter_map(parts).flatten();
    parts.filter_map(|part| medium(&part)).collect()
}

fn in_url(url: &str) -> Option<&str> {
    url.split_once(";base64,").map(|(_, data)| data)
}

fn medium(part: &Value) -> Option<String> {
    let base64 = [
        part.as_str(),
        part["source"]["data"].as_str(),
        part["inlineData"]["data"].as_str(),
        part["input_audio"]["data"].as_str(),
        part["image_url"]["url"].as_str().and_then(in_url),
        part["image_url"].as_str().and_then(in_url),
    ];
    let data = base64.into_iter().flatten().next()?;
    Some(match data.get(..4)? {
        "/9j/" => "jpeg".to_owned(),
        "iVBO" => "png".to_owned(),
        "R0lG" => "gif".to_owned(),
        "UklG" if data.get(12..16)? == "RUJQ" => "webp".to_owned(),
        "UklG" => "wav".to_owned(),
        "T2dn" => "ogg".to_owned(),
        "SUQz" => "mp3".to_owned(),
        "AAAA" => "mp4".to_owned(),
        other => other.to_owned(),
    })
}

#[test]
fn images_reach_every_provider_in_its_format() {
    let directory = directory();
    let arguments = ["--image", "a.jpg", "--image", "b.png", "--args", "What is this?"];
    for wire in Wire::ALL {
        let (output, asked) = run(wire, directory.path(), "image-analyzer", &arguments);
        let envelope = envelope(&output);
        assert_eq!(envelope["ok"], true, "{}: {envelope}", wire.name());
        let [body] = asked.as_slice() else { panic!("{} was asked {} times", wire.name(), asked.len()) };
        assert_eq!(media_in(wire, body), ["jpeg", "png"], "{}", wire.name());
        assert!(body.to_string().contains("What is this?"), "{}", wire.name());
        assert!(!body.to_string().contains("a.jpg"), "a path of this machine was sent");
        let processed = envelope["meta"]["media_processed"].to_string();
        assert!(processed.contains("image/jpeg") && processed.contains("image/png"), "{processed}");
    }
}

#[test]
fn each_format_reaches_providers_that_accept_it() {
    let directory = directory();
    let error = "E4011";
    // OpenAI by Chat Completions and by Responses, Anthropic, Gemini, Ollama.
    let cases = [
        ("--image", "c.webp", ["webp", "webp", "webp", "webp", "jpeg"]),
        ("--image", "d.gif", ["gif", "gif", "gif", "png", "png"]),
        ("--video", "a.mp4", ["jpeg jpeg", "jpeg jpeg", "jpeg jpeg", "mp4", "jpeg jpeg"]),
        ("--audio", "a.wav", ["wav", error, error, "wav", error]),
        ("--audio", "a.mp3", ["mp3", error, error, "mp3", error]),
        ("--audio", "a.ogg", ["wav", error, error, "ogg", error]),
    ];
    for (option, file, expected) in cases {
        let module = if option == "--audio" { "audio-transcriber" } else { "image-analyzer" };
        for (wire, expected) in Wire::ALL.into_iter().zip(expected) {
            // Of OpenAI's models, only those for audio accept audio.
            let model: &[&str] =
                if (wire, option) == (Wire::OpenAi, "--audio") { &["--model", "gpt-audio"] } else { &[] };
            let (output, asked) = run(wire, directory.path(), module, &[&[option, file], model].concat());
            let envelope = envelope(&output);
            let found = match asked.as_slice() {
                [body] if envelope["ok"] == true => media_in(wire, body).join(" "),
                [] => envelope["error"]["code"].to_string().replace('"', ""),
                _ => panic!("{} was asked {} times: {envelope}", wire.name(), asked.len()),
            };
            assert_eq!(found, expected, "{} {file}: {envelope}", wire.name());
        }
    }
}

#[test]
fn many_images_are_scaled_for_anthropic() {
    let directory = directory();
    made(directory.path(), "/usr/bin/convert", "-size 2500x10 xc:red wide.png");
    let film = "-f lavfi -i testsrc=d=25:s=32x24:r=2 -pix_fmt yuv420p long.mp4";
    made(directory.path(), "ffmpeg", &format!("-loglevel error {film}"));
    for (video, is_scaled) in [("a.mp4", false), ("long.mp4", true)] {
        let arguments = ["--image", "wide.png", "--video", video];
        let (output, asked) = run(Wire::Anthropic, directory.path(), "image-analyzer", &arguments);
        let envelope = envelope(&output);
        assert_eq!(asked.len(), 1, "{envelope}");
        let processed = envelope["meta"]["media_processed"].to_string();
        assert_eq!(processed.contains("\"scaled\""), is_scaled, "{processed}");
    }
}

/// One pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

#[test]
fn generated_image_is_written_to_file() {
    let directory = directory();
    let arguments = ["--args", "a red square", "--media-dir", "out", "--model", "gemini-2.5-flash-image"];
    let replies = [Reply::text("A red square, as you wished.").media("image/png", PNG)];
    let (output, asked) = answered(replies, Wire::Gemini, directory.path(), "image-generator", &arguments);
    let envelope = envelope(&output);
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["data"]["rationale"], "A red square, as you wished.");
    let image = &envelope["data"]["image"];
    assert_eq!((&image["type"], &image["width"]), (&json!("file"), &json!(1)));
    assert_eq!(image["generation_params"]["model"], "mock-model");
    let path = Path::new(image["path"].as_str().unwrap());
    assert!(path.starts_with(directory.path().canonicalize().unwrap().join("out")), "{image}");
    assert_eq!(path.metadata().unwrap().len(), 70);
    assert_eq!(asked[0]["generationConfig"]["responseModalities"], json!(["TEXT", "IMAGE"]));
}

#[test]
fn image_only_model_gets_its_own_request_format() {
    let directory = directory();
    let arguments = ["--args", "a red square", "--model", "gpt-image-1.5"];
    let replies = [Reply::text("A red square on white.").media("image/png", PNG)];
    let (output, asked) = answered(replies, Wire::OpenAi, directory.path(), "image-generator", &arguments);
    let envelope = envelope(&output);
    assert_eq!(envelope["ok"], true, "{envelope}");
    assert_eq!(envelope["data"]["image"]["media_type"], "image/png");
    assert!(asked[0]["prompt"].to_string().contains("a red square"), "{}", asked[0]);
}

#[test]
fn no_call_if_no_image_can_be_generated() {
    let directory = directory();
    for wire in Wire::ALL {
        let (output, asked) = run(wire, directory.path(), "image-generator", &["--args", "a red square"]);
        let envelope = envelope(&output);
        assert_eq!(envelope["error"]["code"], "E4011", "{}: {envelope}", wire.name());
        assert_eq!(asked, Vec::<Value>::new(), "{}", wire.name());
    }
}

#[test]
fn render_truncates_media() {
    let directory = directory();
    for wire in Wire::ALL {
        let output = Command::new(env!("CARGO_BIN_EXE_cog"))
            .args(["render", "image-analyzer", "--image", "a.jpg", "--provider", wire.provider()])
            .current_dir(directory.path())
            .env_clear()
            .env("COG_DETECT_OLLAMA", "off")
            .env("HOME", directory.path())
            .envs(wire.protocol_setting().map(|name| ("OPENAI_PROTOCOL", name)))
            .output()
            .unwrap();
        let rendered = envelope(&output);
        let body = &rendered["request"]["body"];
        assert_eq!(media_in(wire, body), ["jpeg"], "{}", wire.name());
        assert!(body.to_string().contains("… ("), "{}", wire.name());
    }
}

#[test]
fn media_goes_where_the_prompt_places_it() {
    let directory = directory();
    made(
        directory.path(),
        "cp",
        &format!("-r {}/../../modules/image-analyzer own", env!("CARGO_MANIFEST_DIR")),
    );
    made(directory.path(), "sed", "-i s/^1.*/Asked:$ARGUMENTS./ own/prompt.md");
    let (output, asked) =
        run(Wire::OpenAi, directory.path(), "./own", &["--image", "a.jpg", "--args", "Why?"]);
    assert_eq!(envelope(&output)["ok"], true);
    assert!(asked[0].to_string().contains("Asked:Why?."), "{}", asked[0]["messages"]);
}

#[test]
fn media_without_field_is_an_error_before_the_call() {
    let directory = directory();
    for (module, arguments, said) in [
        ("code-reviewer", ["--image", "a.jpg"], "--image: the input of this module has no media fields"),
        (
            "image-analyzer",
            ["--file", "photo=a.jpg"],
            "--file photo=…: unclear which input field is meant; these accept media: images",
        ),
        ("image-analyzer", ["--image", "gone.jpg"], "file not found"),
    ] {
        let (output, asked) = run(Wire::OpenAi, directory.path(), module, &arguments);
        let envelope = envelope(&output);
        let message = envelope["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(said), "{envelope}");
        assert_eq!(asked, Vec::<Value>::new());
    }
}
