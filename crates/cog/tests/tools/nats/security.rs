//! Encrypted connections, and credentials files.

use std::{
    path::Path,
    process::{Command, Output},
};

use base64_simd::URL_SAFE_NO_PAD;
use cog_testkit::{Mock, Reply};
use nkeys::KeyPair;
use serde_json::{Value, json};

use super::{ANSWER, Nats, Working, cog, place};

/// Runs one row in a worker, with these variables for both. Without a worker, the connection must fail.
fn batch(place: &Path, url: &str, variables: &[(&str, &Path)], has_worker: bool) -> Output {
    let mock = Mock::start([Reply::text(ANSWER)]);
    std::fs::write(place.join("rows.jsonl"), "{\"query\":\"x\"}\n").unwrap();
    let with = |args: &[&str]| {
        let mut command = cog(place, &mock, args);
        command.envs(variables.iter().copied());
        command
    };
    let worker = has_worker.then(|| Working::start(with(&["worker", "--nats", url])));
    let output = with(&["batch", "m", "rows.jsonl", "-o", "out.jsonl", "--force", "--nats", url]).output();
    worker.into_iter().for_each(|worker| drop(worker.stop()));
    output.unwrap()
}

/// Checks that the connection was rejected, and returns the message.
fn rejected(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && text.contains("E4007"), "{text}");
    text
}

fn answered(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Creates a certificate `NAME.pem` for a host, signed by `ca.pem`, which is created with it.
fn certificates(place: &Path, host: &str) {
    let openssl = |args: &str| {
        let output = Command::new("openssl").args(args.split(' ')).current_dir(place).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let key = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    openssl(&format!("{key} -keyout ca.key -out ca.pem -subj /CN=ca"));
    openssl(&format!(
        "{key} -keyout server.key -out server.pem -subj /CN=server -CA ca.pem -CAkey ca.key \
         -addext subjectAltName={host} -addext basicConstraints=critical,CA:FALSE"
    ));
}

fn encrypted(place: &Path) -> Nats {
    let file = |name: &str| place.join(name).display().to_string();
    Nats::with(&["--tls", "--tlscert", &file("server.pem"), "--tlskey", &file("server.key")])
}

#[test]
fn certificate_of_the_server_must_be_signed_by_the_file_of_the_operator() {
    let place = place();
    certificates(place.path(), "IP:127.0.0.1");
    let nats = encrypted(place.path());
    let url = nats.url().replace("nats://", "tls://");
    let ca = place.path().join("ca.pem");
    answered(&batch(place.path(), &url, &[("COG_NATS_CA", &ca)], true));
    let message = rejected(&batch(place.path(), &url, &[], false));
    assert!(message.contains("certificate"), "{message}");
    certificates(place.path(), "IP:127.0.0.1");
    rejected(&batch(place.path(), &url, &[("COG_NATS_CA", &ca)], false));
}

#[test]
fn certificate_of_another_host_is_rejected() {
    let place = place();
    certificates(place.path(), "DNS:other.example");
    let nats = encrypted(place.path());
    let ca = place.path().join("ca.pem");
    rejected(&batch(place.path(), &nats.url(), &[("COG_NATS_CA", &ca)], false));
}

#[test]
fn nothing_is_sent_to_a_server_without_encryption_if_certificates_are_set() {
    let (nats, place) = (Nats::start(), place());
    certificates(place.path(), "IP:127.0.0.1");
    let ca = place.path().join("ca.pem");
    rejected(&batch(place.path(), &nats.url(), &[("COG_NATS_CA", &ca)], false));
    rejected(&batch(place.path(), &nats.url().replace("nats://", "tls://"), &[], false));
}

/// Returns a signed token: the operator signs accounts, and an account its users.
fn token(issuer: &KeyPair, subject: &KeyPair, mut claims: Value) -> String {
    claims["version"] = json!(2);
    let head = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let body = json!({
        "jti": subject.public_key(), "iat": 1_790_000_000, "iss": issuer.public_key(), "name": "test",
        "sub": subject.public_key(), "nats": claims,
    });
    let encoded = |text: &[u8]| URL_SAFE_NO_PAD.encode_to_string(text);
    let signed = format!("{}.{}", encoded(head.to_string().as_bytes()), encoded(body.to_string().as_bytes()));
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", encoded(&signature))
}

/// Writes the credentials file of a new user of an account, and returns its seed.
fn credentials(path: &Path, account: &KeyPair) -> String {
    let user = KeyPair::new_user();
    let claims = json!({ "type": "user", "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1 });
    let (jwt, seed) = (token(account, &user, claims), user.seed().unwrap());
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    );
    std::fs::write(path, text).unwrap();
    seed
}

/// Starts a server whose operator trusts this account.
fn with_operator(place: &Path, account: &KeyPair) -> Nats {
    let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
    let account_claims = json!({
        "type": "account", "default_permissions": { "pub": {}, "sub": {} },
        "limits": {
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
            "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1,
        },
    });
    let mut system_claims = account_claims.clone();
    for limit in ["mem_storage", "disk_storage", "streams", "consumer"] {
        system_claims["limits"][limit] = json!(0);
    }
    let trust = token(&operator, &operator, json!({ "type": "operator" }));
    let config = format!(
        "operator: {trust}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n  {}: {}\n  {}: {}\n}}\n",
        system.public_key(),
        system.public_key(),
        token(&operator, &system, system_claims),
        account.public_key(),
        token(&operator, account, account_claims),
    );
    let path = place.join("nats.conf");
    std::fs::write(&path, config).unwrap();
    Nats::with(&["-c", &path.display().to_string()])
}

#[test]
fn credentials_file_of_a_user_is_required_and_not_shown() {
    let (place, account) = (place(), KeyPair::new_account());
    let nats = with_operator(place.path(), &account);
    let file = place.path().join("user.creds");
    credentials(&file, &account);
    answered(&batch(place.path(), &nats.url(), &[("COG_NATS_CREDENTIALS", &file)], true));
    rejected(&batch(place.path(), &nats.url(), &[], false));
    let seed = credentials(&file, &KeyPair::new_account());
    let message = rejected(&batch(place.path(), &nats.url(), &[("COG_NATS_CREDENTIALS", &file)], false));
    assert!(!message.contains(&seed), "{message}");
    std::fs::write(&file, format!("{seed}\n{seed}")).unwrap();
    let output = batch(place.path(), &nats.url(), &[("COG_NATS_CREDENTIALS", &file)], false);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("user.creds") && !message.contains(&seed), "{message}");
}
