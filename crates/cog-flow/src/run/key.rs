//! What identifies the call of a part, so that its answer counts again after an interruption.

use std::{collections::BTreeSet, fmt::Write as _};

use cog_json::ToJson as _;
use cog_module::Module;
use cog_run::{RunInput, RunOptions};
use sha2::{Digest as _, Sha256};

use crate::{Flow, Plan};

/// The digest of a module and of all modules that it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digest(Vec<u8>);

impl Digest {
    /// Returns the digest of the module of a plan.
    pub(super) fn new(flow: &Flow, plan: &Plan) -> Self {
        let mut hash = Sha256::new();
        let mut known = BTreeSet::new();
        let mut open = vec![plan];
        while let Some(plan) = open.pop() {
            add(&mut hash, &plan.module);
            let new = plan.parts.iter().filter_map(|part| part.plan).filter(|id| known.insert(*id));
            open.extend(new.map(|id| flow.plan(id)).collect::<Vec<_>>());
        }
        Self(hash.finalize().to_vec())
    }

    /// Returns the key of a call: 128 bits in hexadecimal.
    pub(super) fn key(&self, input: &RunInput, texts: &[String], more: &str, options: &RunOptions) -> String {
        let mut hash = Sha256::new();
        hash.update(&self.0);
        match input {
            RunInput::Args(text) => field(&mut hash, text),
            RunInput::Json(value) => field(&mut hash, &value.to_string()),
            other => field(&mut hash, &format!("{other:?}")),
        }
        texts.iter().for_each(|text| field(&mut hash, text));
        field(&mut hash, more);
        field(&mut hash, &settings(options).to_json());
        field(&mut hash, &format!("{:?}", options.generation));
        let mut key = String::new();
        for byte in hash.finalize().iter().take(16) {
            let _ = write!(key, "{byte:02x}");
        }
        key
    }
}

/// Returns the options on which the answer of a part depends.
fn settings(options: &RunOptions) -> RunOptions {
    let mut settings = options.clone();
    (settings.timeout, settings.chunk_type, settings.handoff_to) = (None, None, None);
    settings
}

fn add(hash: &mut Sha256, module: &Module) {
    field(hash, &format!("{:?}", module.manifest));
    field(hash, module.prompt.text());
    field(hash, &module.schema.to_string());
}

/// Adds a text with its length, so that two texts cannot be read as others.
fn field(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}
