//! `cog worker`: rejected settings.

use crate::support::{Place, snapshot};

#[test]
fn server_must_be_set() {
    snapshot!(Place::new().cog(["worker", "--provider", "offline"]));
}

#[test]
fn worker_without_a_provider_does_not_start() {
    snapshot!(Place::new().cog(["worker", "--nats", "nats://127.0.0.1:1"]));
}

#[test]
fn url_with_a_password_is_rejected_and_not_shown() {
    let url = "nats://me:sk-canary@localhost:4222";
    snapshot!(Place::new().cog(["worker", "--provider", "offline", "--nats", url]));
}

#[test]
fn name_of_the_queue_is_checked() {
    let place = Place::new();
    let mut command = place.cog(["worker", "--provider", "offline", "--nats", "nats://localhost:4222"]);
    snapshot!(command.env("COG_NATS_NAME", "my.queue"));
}

#[test]
fn project_file_cannot_set_the_server() {
    let place = Place::new();
    place.write("cog.toml", "[nats]\nurl = \"nats://evil.example\"\n");
    snapshot!(place.cog(["worker", "--provider", "offline"]));
}
