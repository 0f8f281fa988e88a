use cog_provider::vendors::ModelPrice;

use super::*;

/// Reads settings from variables and an operator's file in a temporary home.
fn settings(variables: &[(&str, &str)], operator: Option<&str>) -> Result<Settings, SettingsError> {
    let home = tempfile::tempdir().unwrap();
    if let Some(text) = operator {
        let file = ("config.toml".to_owned(), text.as_bytes().to_vec());
        cog_module::files::write_directory(&home.path().join(".config/cog"), &[file]).unwrap();
    }
    let mut environment = Environment::from([("HOME", home.path().to_str().unwrap())]);
    for (name, value) in variables {
        environment.set(name, value);
    }
    Settings::read(Flags::default(), environment)
}

fn project(text: &str) -> Result<Option<SettingsFile>, SettingsError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cog.toml");
    cog_module::files::write_atomic(&path, text).unwrap();
    SettingsFile::read(path, Owner::Project)
}

#[test]
fn flag_wins_over_variable_over_file_over_default() {
    let file = "model = \"of-file\"\ntimeout = \"7s\"\n";
    let found = settings(&[("LLM_MODEL", "of-variable")], Some(file)).unwrap();
    assert_eq!(found.model.value.as_deref(), Some("of-variable"));
    assert_eq!(found.model.source, Source::variable("LLM_MODEL"));
    assert_eq!(found.timeout.value, Duration::from_secs(7));
    assert!(matches!(found.timeout.source, Source::File(_)));
    assert_eq!(found.retries, Setting::default(2));

    let flags = Flags { model: Some("of-flag".to_owned()), ..Flags::default() };
    let found = Settings::read(flags, Environment::from([("LLM_MODEL", "of-variable")])).unwrap();
    assert_eq!(
        (found.model.value.as_deref(), found.model.source),
        (Some("of-flag"), Source::flag("--model"))
    );
}

#[test]
fn blank_variable_is_unset() {
    let found = settings(&[("LLM_PROVIDER", " "), ("OPENAI_API_KEY", "")], None).unwrap();
    assert_eq!((found.provider.value.as_deref(), found.variable("OPENAI_API_KEY")), (None, None));
}

#[test]
fn invalid_variable_is_named() {
    let error = settings(&[("COG_TIMEOUT", "soon")], None).unwrap_err();
    assert_eq!(error.to_string(), "COG_TIMEOUT: `soon` is not a valid duration: use a form such as 30s");
}

#[test]
fn operator_file_sets_keys_that_no_variable_sets() {
    let file = "[providers.gemini]\nkey = \"of-file\"\n[providers.ollama]\nbase_url = \"http://gpu:11434\"\n";
    let found = settings(&[], Some(file)).unwrap();
    assert_eq!(found.variable("GEMINI_API_KEY").as_deref(), Some("of-file"));
    assert_eq!(found.variable("OLLAMA_BASE_URL").as_deref(), Some("http://gpu:11434"));

    let found = settings(&[("OLLAMA_HOST", "here")], Some(file)).unwrap();
    assert_eq!(found.variable("OLLAMA_BASE_URL"), None, "the environment sets a server already");
}

#[test]
fn variable_of_one_provider_sets_its_model() {
    let file = "model = \"m\"\n[providers.vllm]\nmodel = \"of-file\"\n[providers.azure]\nmodel = \"d\"\n";
    let found = settings(&[("VLLM_MODEL", "of-variable"), ("AZURE_OPENAI_MODEL", " ")], Some(file)).unwrap();
    let of = |name| found.model_for(Vendor::by_name(name).unwrap());
    let vllm = of("vllm").unwrap();
    assert_eq!((vllm.value.as_str(), vllm.source), ("of-variable", Source::variable("VLLM_MODEL")));
    assert_eq!(of("azure").unwrap().value, "d", "a blank variable is unset");
    assert_eq!((of("openai"), found.model.value.as_deref()), (None, Some("m")));
}

#[test]
fn protocol_is_set_by_variable_or_operator_file() {
    let file = "[providers.openai]\nprotocol = \"chat\"\n";
    assert_eq!(settings(&[], Some(file)).unwrap().variable("OPENAI_PROTOCOL").as_deref(), Some("chat"));
    let found = settings(&[("OPENAI_PROTOCOL", "responses")], Some(file)).unwrap();
    assert_eq!(found.variable("OPENAI_PROTOCOL").as_deref(), Some("responses"));
}

#[test]
fn operator_file_sets_prices() {
    let file = "[providers.custom.prices.\"a.b\"]\ninput = 1\noutput = 2.5\ncached_input = 0.5\n";
    let found = settings(&[], Some(file)).unwrap();
    let custom = Vendor::by_name("custom").unwrap();
    let price = ModelPrice { input: 1.0, output: 2.5, cached_input: Some(0.5), cache_write: None };
    assert_eq!(found.prices_for(custom), [("a.b".to_owned(), price)].into_iter().collect());
    assert_eq!(found.prices_for(Vendor::by_name("openai").unwrap()), ModelPrices::NONE);
    let rows = found.rows();
    let row = rows.iter().find(|row| row.name == "providers.custom.prices.a.b").unwrap();
    assert_eq!(row.value.to_string(), "input 1, output 2.5, cached_input 0.5");
    for (price, expected) in [
        ("input = -1\noutput = 0", "-1 is not a price: use US dollars per million tokens"),
        ("input = inf\noutput = 0", "inf is not a price: use US dollars per million tokens"),
        ("input = 1", "missing field `output`"),
        ("input = 1\noutput = 1\nreasoning = 2", "unknown key `reasoning`"),
    ] {
        let error = settings(&[], Some(&format!("[providers.custom.prices.m]\n{price}\n"))).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn rejects_unknown_protocol() {
    let error = settings(&[("OPENAI_PROTOCOL", "Chat")], None).unwrap_err();
    assert_eq!(error.to_string(), "OPENAI_PROTOCOL: `Chat` is not a protocol: use chat or responses");
    for (provider, protocol, expected) in [
        ("openai", "rest", "`providers.openai.protocol`: `rest` is not a protocol: use chat or responses"),
        ("gemini", "chat", "`providers.gemini.protocol`: Gemini has only one protocol"),
    ] {
        let file = format!("[providers.{provider}]\nprotocol = \"{protocol}\"\n");
        assert_eq!(settings(&[], Some(&file)).unwrap_err().to_string(), expected);
    }
}

#[test]
fn hides_keys() {
    let rows = settings(&[("OPENAI_API_KEY", "sk-canary")], None).unwrap().rows();
    let key = rows.iter().find(|row| row.name == "OPENAI_API_KEY").unwrap();
    assert_eq!((key.value.to_string().as_str(), &key.source), ("***", &Source::variable("OPENAI_API_KEY")));
    assert!(!format!("{rows:?}").contains("canary"));
}

#[test]
fn project_file_can_set_model_but_not_url_key_or_root() {
    let file = project("model = \"m\"\n[providers.openai]\nmodel = \"n\"\n").unwrap().unwrap();
    assert_eq!(file.content.model.as_deref(), Some("m"));
    for (text, key) in [
        ("[providers.openai]\nbase_url = \"http://evil\"\n", "providers.openai.base_url"),
        ("[providers.openai]\nkey = \"k\"\n", "providers.openai.key"),
        ("[providers.openai]\nprotocol = \"chat\"\n", "providers.openai.protocol"),
        ("[providers.openai.prices.m]\ninput = 0.0\noutput = 0.0\n", "providers.openai.prices"),
        ("modules = [\"/\"]\n", "modules"),
        ("[media]\nallow = [\"10.0.0.0/8\"]\n", "media"),
    ] {
        let error = project(text).unwrap_err();
        assert!(matches!(&error, SettingsError::Forbidden { key: found, .. } if found == key), "{error}");
    }
}

#[test]
fn misspelt_key_is_an_error_with_line() {
    let error = project("# mine\n\nmodle = \"m\"\n").unwrap_err();
    assert_eq!(error.to_string(), "unknown key `modle`");
    assert!(error.location().unwrap().ends_with(":3"), "{:?}", error.location());
    assert_eq!(error.suggestion(), "Did you mean `model`?");
    let help = project("zzz = 1\n").unwrap_err().suggestion();
    assert!(help.starts_with("The keys here are provider, model"), "{help}");
}

#[test]
fn rejects_section_of_unknown_provider() {
    let error = project("[providers.opneai]\nmodel = \"m\"\n").unwrap_err();
    assert_eq!(error.to_string(), "unknown provider `opneai`");
}

#[test]
fn module_directories_are_relative_to_file_or_home() {
    let found = settings(&[], Some("modules = [\"shared\", \"~/mine\"]\n")).unwrap();
    let home = found.directories.home.clone().unwrap();
    assert_eq!(found.modules.value, [home.join(".config/cog/shared"), home.join("mine")]);
}
