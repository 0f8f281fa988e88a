//! The unit file of systemd in `deploy`.

use std::{io::Read as _, path::Path};

use super::{Serving, TOKEN};
use crate::support::Place;

/// Returns the value of a key of the unit file.
#[expect(clippy::disallowed_methods, reason = "a test reads a file of the repository")]
fn value(key: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/cog.service");
    let unit = std::fs::read_to_string(path).unwrap();
    let value = unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("the unit has no {key}")).to_owned()
}

/// Returns a number of seconds, as `30s`.
fn seconds(text: &str) -> u32 {
    text.strip_suffix('s').unwrap().parse().unwrap()
}

#[test]
fn unit_of_systemd_serves_the_modules_with_the_tokens() {
    let place = Place::new();
    place.write("etc/tokens", format!("web:{TOKEN}\n")).copy_module("format-v25", "etc/modules/format-v25");
    let start = value("ExecStart").replace("/etc/cog", "etc").replace("/var/lib/cog", "lib");
    let start = start.replace("--port 8000", "--port 0");
    let arguments = start.strip_prefix("/usr/local/bin/cog ").unwrap().split(' ');
    let mut command = place.cog(arguments.clone());
    command.env("LLM_PROVIDER", "offline");
    let mut server = Serving::start(command);
    let mut answer = String::new();
    let head = format!("GET /v1/modules HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}");
    server.send(&head, "").read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("format-v25"), "{answer}");
    assert!(place.path().join("lib/state/sessions").is_dir());

    assert_eq!(value("ExecReload"), "/bin/kill -HUP $MAINPID");
    server.signal("HUP");
    server.wait_for("SIGHUP: using 1 tokens");
    server.signal("KILL");
    server.ended();

    let option = |name: &str| arguments.clone().skip_while(|word| *word != name).nth(1).unwrap();
    let stop = seconds(option("--drain-delay")) + seconds(option("--shutdown-timeout"));
    assert!(seconds(&value("TimeoutStopSec")) > stop);
}
