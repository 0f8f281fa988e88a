use super::*;
use crate::settings::{Environment, Flags, Shown};

fn read(variables: &[(&str, &str)], flags: &[(&str, &str)]) -> Result<(Serving, Vec<Row>), SettingsError> {
    let mut environment = Environment::default();
    for (name, value) in variables {
        environment.set(name, value);
    }
    let settings = Settings::read(Flags::default(), environment)?;
    Serving::read(&settings, |name| {
        flags.iter().find(|(flag, _)| *flag == name).map(|(_, text)| (*text).to_owned())
    })
}

#[test]
fn a_flag_beats_a_variable_beats_the_default() {
    let (serving, rows) =
        read(&[("COG_SERVE_PORT", "1"), ("COG_SERVE_DRAIN", "3s")], &[("port", "2")]).unwrap();
    assert_eq!((serving.port, serving.server.drain.as_secs()), (2, 3));
    assert_eq!(serving.server.max_body_bytes, 30 << 20);
    let row = rows.iter().find(|row| row.name == "server.port").unwrap();
    assert_eq!((&row.value, row.source.to_string().as_str()), (&Shown::Count(2), "port"));
}

#[test]
fn nonsense_is_told_with_the_name_of_the_setting() {
    let error = read(&[("COG_SERVE_MAX_BODY_BYTES", "many")], &[]).unwrap_err();
    assert!(error.to_string().starts_with("COG_SERVE_MAX_BODY_BYTES: `many` is no "), "{error}");
    let error = read(&[], &[("heartbeat", "-1s")]).unwrap_err();
    assert!(error.to_string().starts_with("--heartbeat: "), "{error}");
}

#[test]
fn names_agree_with_each_other() {
    for knob in KNOBS {
        assert_eq!(knob.key, knob.flag.replace('-', "_"));
        assert_eq!(knob.variable, format!("COG_SERVE_{}", knob.key.to_uppercase()));
    }
}

#[test]
fn every_limit_stands_in_the_documentation_with_its_default() {
    let page = include_str!("../../../../../docs/server.md");
    let mut defaults = Serving::default();
    let limits = KNOBS.iter().skip_while(|knob| knob.flag != "max-body-bytes");
    for knob in limits {
        let row = format!("| `--{}` | {} |", knob.flag, knob.show(&mut defaults));
        assert!(page.contains(&row), "{row}");
    }
}
