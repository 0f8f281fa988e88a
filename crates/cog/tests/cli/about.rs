use crate::support::{Place, snapshot, stderr, stdout};

const COMMANDS: [&str; 17] = [
    "run",
    "render",
    "test",
    "logs",
    "verify",
    "list",
    "info",
    "validate",
    "new",
    "migrate",
    "doctor",
    "config",
    "capabilities",
    "schema",
    "errors",
    "completions",
    "man",
];

#[test]
fn version() {
    snapshot!(Place::new().cog(["--version"]));
}

#[test]
fn help_lists_every_command_with_examples() {
    let place = Place::new();
    let overview = stdout(&place.cog(["--help"]).output().unwrap());
    for command in COMMANDS {
        assert!(overview.contains(&format!("\n  {command} ")), "{command}");
        let help = stdout(&place.cog([command, "--help"]).output().unwrap());
        assert!(help.contains("Examples:\n  "), "{command}");
    }
}

#[test]
fn cog_and_cogn_are_one_program() {
    let place = Place::new();
    let cog = place.cog(["errors"]).output().unwrap();
    let cogn = std::process::Command::new(env!("CARGO_BIN_EXE_cogn")).arg("errors").output().unwrap();
    assert_eq!(cog.stdout, cogn.stdout);
    let script = std::process::Command::new(env!("CARGO_BIN_EXE_cogn"))
        .args(["completions", "bash"])
        .output()
        .unwrap();
    assert!(stdout(&script).contains("_clap_complete_cogn cogn"));
}

#[test]
fn unknown_command() {
    snapshot!(Place::new().cog(["rnu"]));
}

#[test]
fn misspelt_arguments_name_what_is_near() {
    for (arguments, near) in [
        (&["valdate"][..], Some("'validate'")),
        (&["media", "prbe", "a.png"], Some("'probe'")),
        (&["run", "--modle", "x"], Some("'--model'")),
        (&["run", "m", "--provider", "opneai"], Some("'openai'")),
        (&["deploy"], None),
        (&["run", "--model-of-mine", "x"], Some("'--model'")),
        (&["run", "--frobnicate", "x"], None),
        (&["run", "m", "--provider", "google"], None),
    ] {
        let output = Place::new().cog(arguments.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = stderr(&output);
        match near {
            Some(near) => assert!(text.contains("similar") && text.contains(near), "{text}"),
            None => assert!(!text.contains("similar"), "{text}"),
        }
    }
}

#[test]
fn unknown_provider() {
    let output = Place::new().cog(["run", "code-reviewer", "--provider", "opneai"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn one_error_explained() {
    snapshot!(Place::new().cog(["errors", "e3001"]));
}

#[test]
fn one_error_as_json() {
    snapshot!(Place::new().cog(["errors", "SCHEMA_VALIDATION_FAILED", "--format", "json"]));
}

#[test]
fn errors_lists_every_code() {
    let table = stdout(&Place::new().cog(["errors"]).output().unwrap());
    assert_eq!(table.lines().count(), 1 + cog_spec::Code::ALL.len());
}

#[test]
fn unknown_error() {
    snapshot!(Place::new().cog(["errors", "E9999"]));
}

#[test]
fn warning_is_no_error() {
    snapshot!(Place::new().cog(["errors", "W4001"]));
}

#[test]
fn capabilities() {
    snapshot!(Place::new().cog(["capabilities"]));
}

#[test]
fn scripts_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = Place::new().cog(["completions", shell]).output().unwrap();
        assert!(stdout(&output).contains("COG_COMPLETE"), "{shell}");
    }
}

#[test]
fn manual_pages() {
    let place = Place::new();
    assert!(stdout(&place.cog(["man"]).output().unwrap()).contains(".TH cog 1"));
    assert!(stdout(&place.cog(["man", "run"]).output().unwrap()).contains(".TH cog-run 1"));
    snapshot!(place.cog(["man", "nothing"]));
}

#[test]
fn closed_pipe_is_not_an_error() {
    let place = Place::new();
    let mut command = place.cog(["schema", "manifest"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

/// Returns the candidates that bash gets for the last of these words.
fn candidates(place: &Place, words: &[&str]) -> Vec<String> {
    let mut command = place.cog(["--", "cog"]);
    command.args(words).env("COG_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    let output = command.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).output().unwrap();
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn completion_offers_values_and_error_codes() {
    let place = Place::new();
    assert_eq!(candidates(&place, &["run", "x", "--chunk-type", ""]), ["delta", "snapshot"]);
    assert_eq!(candidates(&place, &["run", "x", "--provider", "openai,ol"]), ["openai,ollama"]);
    assert!(candidates(&place, &["errors", "E1"]).contains(&"E1000".to_owned()));
    assert_eq!(candidates(&place, &["media", "pr"]), ["probe"]);
}

#[test]
fn completion_offers_the_global_options_of_every_command() {
    let place = Place::new();
    for words in [&["run", "--col"][..], &["media", "probe", "--col"]] {
        assert_eq!(candidates(&place, words), ["--color"]);
    }
    assert_eq!(candidates(&place, &["media", "probe", "--color", ""]), ["auto", "always", "never"]);
}

#[test]
fn completion_offers_modules() {
    let place = Place::new();
    assert!(place.cog(["new", "my-module", "--in", "cognitive/modules"]).output().unwrap().status.success());
    assert_eq!(candidates(&place, &["run", "my-"]), ["my-module"]);
    assert_eq!(candidates(&place, &["test", "my-module", "code-r"]), ["code-reviewer"]);
    assert_eq!(candidates(&place, &["new", "x", "--from", "code-r"]), ["code-reviewer"]);
    assert_eq!(candidates(&place, &["run", "./cog"]), ["./cognitive/"]);
}

#[test]
fn completion_offers_logged_runs() {
    let place = Place::new();
    assert_eq!(candidates(&place, &["logs", "show", "2"]), Vec::<String>::new());
    assert!(place.cog(["run", "code-reviewer", "--args", "x"]).output().unwrap().status.success());
    let id = &candidates(&place, &["logs", "replay", ""])[0];
    assert_eq!(candidates(&place, &["logs", "show", &id[..3]]), std::slice::from_ref(id));
    assert_eq!(candidates(&place, &["logs", "--module", "code-r"]), ["code-reviewer"]);
}

#[test]
fn completion_with_invalid_settings_offers_no_module() {
    let place = Place::new();
    place.write("cog.toml", "no such key");
    assert_eq!(candidates(&place, &["run", "code-"]), Vec::<String>::new());
}

#[cfg(not(feature = "nats"))]
#[test]
fn program_without_nats_says_how_to_get_it() {
    let place = Place::new();
    for arguments in ["worker", "batch m rows.jsonl -o out.jsonl --nats nats://localhost:4222"] {
        let output = place.cog(arguments.split(' ')).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("--features nats"), "{}", stderr(&output));
    }
}
