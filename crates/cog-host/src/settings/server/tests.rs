use super::*;
use crate::settings::{DisplayValue, Environment, Flags, Row, Settings, SettingsError};

fn read(
    variables: &[(&str, &str)],
    flags: &[(&str, &str)],
) -> Result<(ServeSettings, Vec<Row>), SettingsError> {
    let mut environment = Environment::default();
    for (name, value) in variables {
        environment.set(name, value);
    }
    let settings = Settings::read(Flags::default(), environment)?;
    ServeSettings::read(&settings, |name| {
        flags.iter().find(|(flag, _)| *flag == name).map(|(_, text)| (*text).to_owned())
    })
}

#[test]
fn flag_wins_over_variable_over_default() {
    let (serving, rows) =
        read(&[("COG_SERVE_PORT", "1"), ("COG_SERVE_SHUTDOWN_TIMEOUT", "3s")], &[("port", "2")]).unwrap();
    assert_eq!((serving.port, serving.server.shutdown_timeout.as_secs()), (2, 3));
    assert_eq!(serving.server.max_body_bytes, 30 << 20);
    let row = rows.iter().find(|row| row.name == "server.port").unwrap();
    assert_eq!((&row.value, row.source.to_string().as_str()), (&DisplayValue::Count(2), "--port"));
}

#[test]
fn switches_accept_every_form() {
    for (text, is_on) in [("true", true), ("on", true), ("1", true), ("off", false), ("no", false)] {
        assert_eq!(read(&[], &[("resume", text)]).unwrap().0.resume, is_on, "{text}");
    }
    assert!(read(&[], &[("resume", "maybe")]).is_err());
}

#[test]
fn errors_name_the_setting() {
    let error = read(&[("COG_SERVE_MAX_BODY_BYTES", "many")], &[]).unwrap_err();
    assert!(error.to_string().starts_with("COG_SERVE_MAX_BODY_BYTES: `many` is not a "), "{error}");
    let error = read(&[], &[("keepalive-interval", "-1s")]).unwrap_err();
    assert!(error.to_string().starts_with("--keepalive-interval: "), "{error}");
}

#[test]
fn every_limit_is_documented_with_its_default() {
    let page = include_str!("../../../../../docs/server-access.md");
    let mut defaults = ServeSettings::default();
    let limits = SERVER_SETTINGS.iter().skip_while(|setting| setting.flag != "max-body-bytes");
    for setting in limits {
        let row = format!("| `--{}` | {} |", setting.flag, setting.show(&mut defaults));
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn base_url_is_an_origin_with_an_optional_path() {
    for (text, read) in [
        ("https://cog.example", "https://cog.example"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
        ("https://example.org/cog/", "https://example.org/cog"),
    ] {
        assert_eq!(url(text).as_deref(), Ok(read));
    }
    for text in
        ["", "cog.example", "https://", "https:///x", "ftp://x", "https://x?a", "https://a@b", "https://a b"]
    {
        assert!(url(text).is_err(), "{text}");
    }
}

#[test]
fn parses_ip_addresses() {
    assert!(ip_address("localhost").unwrap().is_loopback());
    assert!(ip_address("[::1]").unwrap().is_loopback());
    assert!(ip_address("example.org").is_err());
}

#[test]
fn credentials_of_nats_are_not_shown() {
    let mut serve = ServeSettings::default();
    let setting = SERVER_SETTINGS.iter().find(|setting| setting.flag == "nats").unwrap();
    setting.set(&mut serve, "nats://me:secret@a:4222,nats://b").unwrap();
    assert_eq!(setting.show(&mut serve).to_string(), "nats://***@a:4222, nats://b");
}
