use crate::support::{Place, snapshot};

#[test]
fn every_setting_says_where_it_is_from() {
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
fn a_project_may_not_redirect_a_key() {
    let place = Place::new();
    place.write("cog.toml", "[providers.openai]\nbase_url = \"http://evil.example\"\n");
    snapshot!(place.cog(["run", "code-reviewer", "--args", "x"]).env("OPENAI_API_KEY", "canary"));
}

#[test]
fn a_misspelt_setting() {
    let place = Place::new();
    place.write("cog.toml", "model = \"m\"\ntimout = \"1m\"\n");
    snapshot!(place.cog(["list"]));
}

#[test]
fn a_doctor_for_a_provider_that_is_none() {
    snapshot!(Place::new().cog(["doctor"]).env("LLM_PROVIDER", "opnai"));
}

#[test]
fn no_color_and_pipes_mean_no_escapes() {
    let place = Place::new();
    let escapes = |args: &[&str]| place.cog(args.iter().copied()).output().unwrap().stdout.contains(&0x1b);
    assert!(!escapes(&["list"]));
    assert!(escapes(&["list", "--color", "always"]));
}
