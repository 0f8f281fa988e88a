//! A conformance case, as in its file.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::directory;
use crate::matching;
use crate::parts::{Base, ModuleParts};
use crate::reply::Reply;
use crate::scene::Scene;
use crate::site::{Page, Site};
use crate::step::{CommandStep, Program, ServeStep, Step};

/// One case: its setup, its command, and the expected outcome.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// The expected behaviour, as words joined by hyphens.
    pub(crate) name: String,
    /// The lines of the checklist that it covers; read by `cargo xtask conformance`.
    #[serde(rename = "codes")]
    _codes: Vec<String>,
    /// The level of conformance, if `cog conformance` contains the case; read by `cargo xtask generate`.
    #[serde(rename = "level")]
    _level: Option<u8>,
    /// Whether the level can be reached without it.
    #[serde(default, rename = "optional")]
    _optional: bool,
    /// Directories of this workspace to copy: target, source.
    #[serde(default)]
    copy: BTreeMap<String, String>,
    /// Changes to the base module, which is written to `m`, or for a server to `cognitive/modules/m`.
    module: Option<ModuleParts>,
    /// Further modules, each with its changes to the base module, in `cognitive/modules/NAME`.
    #[serde(default)]
    modules: BTreeMap<String, ModuleParts>,
    /// Files to write: text as it is, bytes as base64, null removes, anything else as JSON.
    #[serde(default)]
    files: BTreeMap<String, Value>,
    /// The reply of the model to every step.
    reply: Option<Reply>,
    /// The replies of the model in order; the last one repeats.
    #[serde(default)]
    replies: Vec<Reply>,
    /// The pages of a web site on this machine, by path.
    #[serde(default)]
    site: BTreeMap<String, Page>,
    /// Arguments of a `cog serve` that runs before the steps.
    serve: Option<Vec<String>>,
    /// Shorthand for the command `run ./m --input-json INPUT`; without `module`, a copied module is used.
    input: Option<Value>,
    /// Arguments of `cog`.
    command: Option<Vec<String>>,
    /// The standard input of `cog`.
    #[serde(default)]
    stdin: String,
    /// Environment variables.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The expected outcome.
    #[serde(default)]
    expect: Map<String, Value>,
    /// Further commands in the same directory, in order.
    #[serde(default)]
    steps: Vec<Step>,
    /// Files of this workspace that must contain these texts: pages, and the names of Rust tests.
    #[serde(default)]
    contains: BTreeMap<String, Vec<String>>,
}

impl Case {
    /// Runs the case; the error lists everything that differs.
    pub(crate) fn check(&self, base: &Base, root: &Path) -> Result<(), String> {
        self.check_contains(root)?;
        let steps = self.steps();
        if steps.is_empty() {
            return if self.contains.is_empty() { Err("the case does nothing".to_owned()) } else { Ok(()) };
        }
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        self.fill(directory.path(), base, root)?;
        let replies: Vec<Reply> = self.reply.iter().chain(&self.replies).cloned().collect();
        let mut scene = Scene::new(directory.path(), &replies, &base.reply);
        if !self.site.is_empty() {
            scene.open(Site::start(&self.site)?);
        }
        steps.iter().try_for_each(|step| step.check(&mut scene))
    }

    fn fill(&self, target: &Path, base: &Base, root: &Path) -> Result<(), String> {
        for (name, source) in &self.copy {
            directory::copy(&root.join(source), &target.join(name))?;
        }
        if let Some(changes) = &self.module {
            let place = if self.serve.is_some() { "cognitive/modules/m" } else { "m" };
            directory::write_module(&base.module.changed(changes), &target.join(place))?;
        }
        for (name, changes) in &self.modules {
            let directory = target.join("cognitive/modules").join(name);
            directory::write_module(&base.module.changed(changes).named(name), &directory)?;
        }
        for (name, content) in &self.files {
            if content.is_null() {
                directory::remove(&target.join(name))?;
            } else {
                directory::write(&target.join(name), directory::bytes_of(content)?)?;
            }
        }
        Ok(())
    }

    fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let run = |input: &Value| {
            vec!["run".to_owned(), self.target(), "--input-json".to_owned(), input.to_string()]
        };
        if let Some(command) = self.command.clone().or_else(|| self.input.as_ref().map(run)) {
            let (stdin, env, expect) = (self.stdin.clone(), self.env.clone(), self.expect.clone());
            let program = Program::Cog;
            steps.push(Step::Command(CommandStep { program, command, stdin, env, reply: None, expect }));
        }
        steps.extend(self.serve.clone().map(|serve| Step::Serve(ServeStep { serve })));
        steps.extend(self.steps.iter().cloned());
        steps
    }

    fn target(&self) -> String {
        let copied = self.copy.keys().next().filter(|_| self.module.is_none());
        format!("./{}", copied.map_or("m", String::as_str))
    }

    fn check_contains(&self, root: &Path) -> Result<(), String> {
        for (path, texts) in &self.contains {
            let found = directory::read(&root.join(path))?;
            let missing = matching::missing(&found, texts);
            if !missing.is_empty() {
                return Err(format!("{path} does not contain {missing:?}"));
            }
        }
        Ok(())
    }
}
