use cog_testkit::{Mock, Reply, Wire};
use serde_json::json;

use crate::support::{Place, json, snapshot, stderr};

#[test]
fn every_setting_has_a_source() {
    let place = Place::new();
    place.write("cog.toml", "model = \"m\"\n").write(
        ".config/cog/config.toml",
        "timeout = \"1m\"\nmodel = \"never seen\"\n[providers.gemini]\nkey = \"canary\"\n",
    );
    let mut command = place.cog(["config"]);
    snapshot!(
        command.env("OPENAI_API_KEY", "canary").env("OPENAI_BASE_URL", "http://me:canary@localhost:1/v1")
    );
}

#[test]
fn json_settings_have_types() {
    let place = Place::new();
    let mut command = place.cog(["config", "--format", "json"]);
    command.env("COG_RETRIES", "2").env("COG_STRICT", "true").env("COG_SERVE_PORT", "9000");
    let rows = json(&command.env("LLM_MODEL", "7").output().unwrap());
    let value = |name: &str| {
        let mut settings = rows["settings"].as_array().unwrap().iter();
        settings.find(|setting| setting["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!((value("provider"), value("model")), (json!(null), json!("7")));
    assert_eq!((value("retries"), value("strict")), (json!(2), json!(true)));
    assert_eq!((value("modules"), value("media.strip_metadata")), (json!([]), json!(null)));
    assert_eq!((value("server.port"), value("server.token_file")), (json!(9000), json!(null)));
    assert_eq!(value("timeout"), json!("300s"));
}

#[test]
fn invalid_proxy_is_reported() {
    let place = Place::new();
    let mock = Mock::start([Reply::error(400, "no")]);
    for (proxy, is_reported) in [
        ("not an address", true),
        ("http://", true),
        ("proxy.example:many", true),
        ("proxy.example:3128", false),
        ("http://me:secret@proxy.example:3128/", false),
        ("http://[::1]:3128", false),
    ] {
        let mut command = place.cog(["run", "code-reviewer", "--args", "x"]);
        command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
        let messages = stderr(&command.env("HTTPS_PROXY", proxy).output().unwrap());
        let warning = "; HTTPS_PROXY is ignored, since it is not a URL such as http://proxy.example:3128";
        assert_eq!(messages.contains(warning), is_reported, "{proxy}: {messages}");
    }
}

#[test]
fn xdg_directories_are_used() {
    let place = Place::new();
    place.write("config/cog/config.toml", "model = \"mine\"\n");
    let [config, state] = ["config", "state"].map(|directory| place.path().join(directory));
    let xdg = |args: &[&'static str]| {
        let mut command = place.cog(args.iter().copied());
        command.env("XDG_CONFIG_HOME", &config).env("XDG_STATE_HOME", &state);
        command.output().unwrap()
    };
    let rows = json(&xdg(&["config", "--format", "json"]));
    let mut settings = rows["settings"].as_array().unwrap().iter();
    assert_eq!(settings.find(|setting| setting["name"] == "model").unwrap()["value"], "mine");
    assert!(xdg(&["run", "code-reviewer", "--args", "x", "--provider", "offline"]).status.success());
    assert!(place.read("state/cog/logs/runs.ndjson").contains("code-reviewer"));
    assert!(!place.path().join(".local").exists());
}

/// A service may have the home directory of another user, and a container one that is a file.
#[test]
fn home_that_cannot_be_entered_is_a_warning() {
    let place = Place::new();
    place.write("file", "");
    let mut command = place.cog(["run", "code-reviewer", "--args", "x"]);
    let output = command.env("HOME", place.path().join("file")).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let warning = "file/.config/cog/config.toml was not read: its directory cannot be entered";
    assert!(stderr(&output).contains(warning), "{}", stderr(&output));
    assert_eq!(
        place.cog(["list"]).env("HOME", place.path().join("file")).output().unwrap().status.code(),
        Some(0)
    );
}

#[test]
fn certificates_that_cannot_be_read_are_reported() {
    let place = Place::new();
    place.write("empty.pem", "nothing\n");
    for (file, problem) in
        [("nowhere.pem", "cannot read nowhere.pem: "), ("empty.pem", "contains no certificate in PEM")]
    {
        let mut command = place.cog(["run", "code-reviewer", "--args", "x"]);
        let messages = stderr(&command.env("SSL_CERT_FILE", file).output().unwrap());
        assert!(messages.contains("warning: SSL_CERT_FILE: ") && messages.contains(problem), "{messages}");
        assert!(messages.contains("no HTTPS server will be trusted"), "{messages}");
    }
}

#[cfg(unix)]
#[test]
fn settings_file_with_a_key_that_others_can_read_is_reported() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    place.write(".config/cog/config.toml", "[providers.openai]\nkey = \"sk-canary\"\n");
    let file = place.path().join(".config/cog/config.toml");
    for (mode, is_reported) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let mut command = place.cog(["run", "code-reviewer", "--args", "x", "--provider", "offline"]);
        let messages = stderr(&command.output().unwrap());
        assert_eq!(messages.contains("can read the keys in"), is_reported, "{mode:o}: {messages}");
        assert!(!messages.contains("canary"), "{messages}");
    }
}

#[test]
fn colour_is_forced_only_where_nothing_forbids_it() {
    let place = Place::new();
    for (args, variables, is_coloured) in [
        (&["--help"][..], &["CLICOLOR_FORCE"][..], true),
        (&["--help", "--color", "never"], &["CLICOLOR_FORCE"], false),
        (&["--color=never", "lsit"], &["CLICOLOR_FORCE"], false),
        (&["list"], &["CLICOLOR_FORCE"], true),
        (&["list"], &["FORCE_COLOR"], true),
        (&["list", "--color", "never"], &["CLICOLOR_FORCE"], false),
        (&["list"], &["CLICOLOR_FORCE", "NO_COLOR"], false),
        (&["list"], &[], false),
    ] {
        let mut command = place.cog(args.iter().copied());
        command.envs(variables.iter().map(|name| (*name, "1")));
        let output = command.output().unwrap();
        let bytes = [output.stdout, output.stderr].concat();
        assert_eq!(bytes.contains(&0x1b), is_coloured, "{args:?} {variables:?}");
    }
}

#[test]
fn upgrade_explains_how_to_install_a_new_version() {
    snapshot!(Place::new().cog(["upgrade"]));
}

#[test]
fn project_file_cannot_redirect_a_key() {
    let place = Place::new();
    place.write("cog.toml", "[providers.openai]\nbase_url = \"http://evil.example\"\n");
    snapshot!(place.cog(["run", "code-reviewer", "--args", "x"]).env("OPENAI_API_KEY", "canary"));
}

#[test]
fn misspelt_setting() {
    let place = Place::new();
    place.write("cog.toml", "model = \"m\"\ntimout = \"1m\"\n");
    snapshot!(place.cog(["list"]));
}

#[test]
fn doctor_with_unknown_provider() {
    snapshot!(Place::new().cog(["doctor"]).env("LLM_PROVIDER", "opnai"));
}

#[test]
fn pipes_get_no_colours() {
    let place = Place::new();
    let escapes = |args: &[&str]| place.cog(args.iter().copied()).output().unwrap().stdout.contains(&0x1b);
    assert!(!escapes(&["list"]));
    assert!(escapes(&["list", "--color", "always"]));
}

#[test]
fn note_names_the_file_that_configures_a_provider() {
    let place = Place::new();
    place.write(
        ".config/cog/config.toml",
        "[providers.openai]\nkey = \"k\"\nbase_url = \"http://127.0.0.1:1\"\n",
    );
    let mut command = place.cog(["run", "code-reviewer", "--args", "x"]);
    let text = stderr(&command.env("COG_RETRIES", "0").output().unwrap());
    assert!(text.contains(".config/cog/config.toml)\n"), "{text}");
    assert!(text.contains("(configured in /"), "{text}");
}

#[test]
fn empty_model_is_a_usage_error() {
    let output = Place::new().cog(["run", "code-reviewer", "--args", "x", "--model="]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
