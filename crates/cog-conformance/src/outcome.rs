//! The outcome of a step, and its expectation.

use std::path::Path;

use serde_json::{Map, Value};

use crate::directory;
use crate::expect::{Received, absent, present, texts};
use crate::matching::differences;
use crate::scene::Scene;
use crate::server::wait_until;
use crate::site::Site;

/// The outcome of a step.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) exit: Option<i32>,
    pub(crate) stderr: String,
    /// The response; of a command, its text is stdout.
    pub(crate) received: Received,
}

impl Outcome {
    /// Returns all differences from the expectation.
    pub(crate) fn check(&self, expect: &Map<String, Value>, scene: &Scene<'_>) -> Result<(), String> {
        let expect = expect.iter().map(|(what, expected)| (what, scene.filled_in(expected)));
        let faults: Vec<String> =
            expect.flat_map(|(what, expected)| self.check_one(scene, what, &expected)).collect();
        if faults.is_empty() {
            return Ok(());
        }
        let received = &self.received;
        Err(format!(
            "{}\n-- exit {:?}, status {:?}, headers {}\n-- stdout or body\n{}\n-- chunks {}\n-- stderr\n{}\n-- requests {}",
            faults.join("\n"),
            self.exit,
            received.status,
            Value::from(received.headers.clone()),
            received.text,
            Value::from(received.arrived.chunks.clone()),
            self.stderr,
            received.requests.len(),
        ))
    }

    fn check_one(&self, scene: &Scene<'_>, what: &str, expected: &Value) -> Vec<String> {
        let alias = match what {
            "stdout" => "body",
            "stdout_text" => "body_text",
            "stdout_without" => "body_without",
            other => other,
        };
        let faults = self.received.check(alias, expected);
        let faults = faults.unwrap_or_else(|| self.check_of_step(scene, what, expected));
        faults.into_iter().map(|fault| format!("{what}{fault}")).collect()
    }

    /// Checks what is not about a response.
    fn check_of_step(&self, scene: &Scene<'_>, what: &str, expected: &Value) -> Vec<String> {
        let (wanted, received) = (texts(expected), &self.received);
        match what {
            "exit" => differences(&Value::from(self.exit), expected),
            "stderr" => absent(&self.stderr, &wanted),
            "stderr_without" => present(&self.stderr, &wanted),
            "same_chunks" => scene.check_same(&received.arrived.chunks),
            "distinct" => scene.check_distinct(&wanted),
            "interrupted" => check_interrupted(scene, expected),
            "asked" => {
                let asked = scene.site.as_ref().map(Site::asked).unwrap_or_default();
                differences(&Value::from(asked), expected)
            }
            "same_request" => match scene.earlier.as_ref() == received.requests.last() {
                true => Vec::new(),
                false => vec![": the request differs from that of the step before".to_owned()],
            },
            "files" => files(scene.directory, expected),
            _ => vec![": there is no such expectation".to_owned()],
        }
    }
}

/// The model may notice a disconnect later.
fn check_interrupted(scene: &Scene<'_>, expected: &Value) -> Vec<String> {
    let count = || Value::from(scene.model.as_ref().map(|model| model.interrupted()));
    let is_so = wait_until(|| differences(&count(), expected).is_empty().then_some(()));
    is_so.map_or_else(|| differences(&count(), expected), |()| Vec::new())
}

/// Files that must contain texts, or, with null, not be there.
fn files(directory: &Path, expected: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, expected) in expected.as_object().into_iter().flatten() {
        match (directory::read(&directory.join(name)), expected.is_null()) {
            (Ok(_), true) => faults.push(format!(" {name}: is there")),
            (Ok(found), false) => {
                faults.extend(absent(&found, &texts(expected)).iter().map(|fault| format!(" {name}{fault}")));
            }
            (Err(_), true) => {}
            (Err(error), false) => faults.push(format!(" {error}")),
        }
    }
    faults
}
