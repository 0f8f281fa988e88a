use cog_spec::Effort;

use super::*;
use crate::{HttpProvider, Provider as _};

fn base_url(name: &str, configured: Option<&str>) -> Result<String, InvalidBaseUrl> {
    normalize_base_url(Vendor::by_name(name).unwrap(), configured)
}

#[test]
fn names_are_unique_and_plain() {
    for vendor in VENDORS {
        assert_eq!(VENDORS.iter().filter(|other| other.name == vendor.name).count(), 1, "{}", vendor.name);
        assert!(vendor.name.bytes().all(|byte| byte.is_ascii_lowercase()), "{}", vendor.name);
        assert!(!vendor.title.is_empty());
    }
}

#[test]
fn every_row_can_be_configured() {
    for vendor in VENDORS {
        assert!(vendor.input.contains(&Modality::Text), "{}", vendor.name);
        assert!(!vendor.key_vars.is_empty(), "{}", vendor.name);
        let own = vendor.base_url_vars.iter().any(|name| name.ends_with("_BASE_URL"));
        assert!(own, "{} has no …_BASE_URL", vendor.name);
        for (key, value) in vendor.quirks.extra {
            assert!(serde_json::from_str::<serde_json::Value>(value).is_ok(), "{} {key}", vendor.name);
        }
    }
}

#[test]
fn retirement_of_a_model_includes_its_versions() {
    let openai = Vendor::by_name("openai").unwrap();
    assert_eq!(openai.retires_at("gpt-5-mini"), Some("2026-12-11"));
    assert_eq!(openai.retires_at("gpt-4o-2024-11-20"), Some("2027-01-14"));
    assert_eq!(openai.retires_at("gpt-5.1"), Some("2027-04-01"));
    assert_eq!((openai.retires_at("gpt-5.4"), openai.retires_at("gpt-6-luna")), (None, None));
}

#[test]
fn no_default_model_is_about_to_retire() {
    for vendor in VENDORS {
        assert_eq!(vendor.default_model.and_then(|model| vendor.retires_at(model)), None, "{}", vendor.name);
    }
}

#[test]
fn every_model_entry_is_valid() {
    for vendor in VENDORS {
        for entry in vendor.models {
            for (effort, members) in entry.effort_members {
                let members: serde_json::Value = serde_json::from_str(members).unwrap();
                assert!(members.is_object(), "{} {effort}", vendor.name);
                assert!(!entry.efforts.contains(effort), "{} sets {effort} twice", vendor.name);
            }
        }
        let is_last = |entry: &ModelSettings| entry.names.contains(&"");
        let position = vendor.models.iter().position(is_last);
        assert_eq!(
            position,
            vendor.models.len().checked_sub(1),
            "{}: only the last entry matches every name",
            vendor.name
        );
    }
}

#[test]
fn first_matching_entry_applies_to_a_model() {
    let efforts = |vendor: &str, model: &str| {
        let settings = Vendor::by_name(vendor).unwrap().settings_of(model);
        settings.all_efforts().map(Effort::as_str).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(efforts("openai", "gpt-5"), "minimal low medium high");
    assert_eq!(efforts("openai", "gpt-5.1-codex"), "none low medium high");
    assert_eq!(efforts("openai", "gpt-5.6-sol"), "none low medium high xhigh max");
    assert_eq!(efforts("openai", "gpt-6.1-sol"), "low medium high xhigh max");
    assert_eq!(efforts("openai", "ft:gpt-4.1:me"), "none minimal low medium high xhigh max");
    assert_eq!(efforts("anthropic", "claude-opus-4-5-20251101"), "none low medium high");
    assert_eq!(efforts("groq", "openai/gpt-oss-120b"), "low medium high");
    assert_eq!(efforts("minimax", "MiniMax-M3"), "");
}

#[test]
fn every_input_modality_has_a_format() {
    for vendor in VENDORS {
        for modality in vendor.input.iter().filter(|modality| **modality != Modality::Text) {
            let has_format = modality.media_types().iter().any(|kind| vendor.formats.types.contains(kind));
            assert!(has_format, "{} has no format for {modality}", vendor.name);
        }
    }
}

#[test]
fn audio_models_of_openai_hear_and_accept_no_images_and_no_schema() {
    let vendor = Vendor::by_name("openai").unwrap();
    let key = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-test".to_owned());
    let provider = HttpProvider::new(vendor, ProviderSettings::from_variables(vendor, key)).unwrap();
    let info = provider.info();
    assert_eq!(info.input_media("gpt-audio"), [Modality::Text, Modality::Audio]);
    assert_eq!(info.input_media(""), [Modality::Text, Modality::Image, Modality::Document]);
    assert_eq!((info.has_schema("gpt-audio"), info.has_schema("")), (false, true));
    assert!(vendor.accepts(Modality::Audio) && !vendor.accepts(Modality::Video));
}

#[test]
fn every_default_base_url_is_normalized() {
    for vendor in VENDORS.iter().filter(|vendor| !vendor.base_url.is_empty()) {
        assert_eq!(normalize_base_url(vendor, None).as_deref(), Ok(vendor.base_url));
    }
}

#[test]
fn base_url_loses_only_its_trailing_slash() {
    assert_eq!(base_url("openai", Some("http://127.0.0.1:9/x/")).unwrap(), "http://127.0.0.1:9/x");
    assert_eq!(base_url("openai", Some("http://127.0.0.1:9")).unwrap(), "http://127.0.0.1:9");
}

#[test]
fn ollama_host_is_parsed_like_ollama_does() {
    for (configured, expected) in [
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("box.lan:80", "http://box.lan"),
        ("http://box.lan:5000/", "http://box.lan:5000"),
        ("https://ollama.example", "https://ollama.example"),
    ] {
        assert_eq!(base_url("ollama", Some(configured)).unwrap(), expected, "{configured}");
    }
}

#[test]
fn azure_has_a_default_path() {
    assert_eq!(
        base_url("azure", Some("https://me.openai.azure.com/")).unwrap(),
        "https://me.openai.azure.com/openai/v1"
    );
    assert_eq!(base_url("azure", None), Err(InvalidBaseUrl::Missing));
}

#[test]
fn rejects_credentials_queries_and_other_schemes() {
    assert_eq!(base_url("openai", Some("https://a:b@e.org/v1")), Err(InvalidBaseUrl::Credentials));
    assert_eq!(base_url("openai", Some("https://e.org/v1?key=1")), Err(InvalidBaseUrl::Query));
    assert_eq!(
        base_url("openai", Some("ftp://e.org")),
        Err(InvalidBaseUrl::NotHttp("ftp://e.org".to_owned()))
    );
    assert_eq!(base_url("openai", Some("http://")), Err(InvalidBaseUrl::NotHttp("http://".to_owned())));
}

#[test]
fn settings_are_read_from_the_variables_of_the_vendor() {
    let setting = |name: &str| match name {
        "DASHSCOPE_API_KEY" => Some(" k ".to_owned()),
        "QWEN_BASE_URL" => Some(String::new()),
        "DASHSCOPE_BASE_URL" => Some("https://dashscope.aliyuncs.com/compatible-mode/v1".to_owned()),
        _ => None,
    };
    let settings = ProviderSettings::from_variables(Vendor::by_name("qwen").unwrap(), setting);
    assert_eq!(settings.key.unwrap().expose(), "k");
    assert_eq!(settings.base_url.as_deref(), Some("https://dashscope.aliyuncs.com/compatible-mode/v1"));
}

#[test]
fn sizes_are_within_limits() {
    let sizes =
        ImageSizes::Within { multiple: 16, max_side: 3840, max_ratio: 3, pixels: (655_360, 8_294_400) };
    for size in [(1024, 1024), (1536, 864), (3840, 2160), (2160, 3840), (480, 1440)] {
        assert!(sizes.contain(size), "{size:?}");
    }
    for size in [(512, 512), (1000, 1000), (3856, 2160), (3840, 1264), (3840, 2176), (0, 0)] {
        assert!(!sizes.contain(size), "{size:?}");
    }
    assert!(!ImageSettings::NONE.sizes.contain((1024, 1024)));
}
