use crate::support::{Place, snapshot, stdout};

const COMMANDS: [&str; 16] = [
    "run",
    "render",
    "test",
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
    assert!(stdout(&script).starts_with("_cogn()"));
}

#[test]
fn unknown_command() {
    snapshot!(Place::new().cog(["rnu"]));
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
fn capabilities() {
    snapshot!(Place::new().cog(["capabilities"]));
}

#[test]
fn scripts_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = Place::new().cog(["completions", shell]).output().unwrap();
        assert!(stdout(&output).contains("code-reviewer") || stdout(&output).contains("validate"), "{shell}");
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

#[test]
fn completion_offers_values_and_error_codes() {
    // The scripts for fish complete the values of flags only.
    let codes = ["E1000", "E4013"].as_slice();
    for (shell, codes) in [("bash", codes), ("zsh", codes), ("fish", &[])] {
        let script = stdout(&Place::new().cog(["completions", shell]).output().unwrap());
        for value in ["delta", "snapshot", "abort"].iter().chain(codes) {
            assert!(script.contains(value), "{shell}: {value}");
        }
    }
}
