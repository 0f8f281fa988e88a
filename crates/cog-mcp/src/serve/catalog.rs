//! The modules that a client sees: those that a model may call as tools, and those that it reads as skills.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use cog_module::export::{self, ExportError, SkillFile};
use cog_run::{Module, ModuleRef, Runtime};
use rmcp::model::{
    ReadResourceResult, Resource, ResourceContents, Skill, SkillResource, SkillResources, Tool,
};
use serde_json::Value;

use super::annotations;

/// The modules as tools, each described once until its files change.
#[derive(Default)]
pub(super) struct Catalog(Mutex<HashMap<String, (Weak<Module>, Tool)>>);

/// Returns the modules that a model may call, sorted by name. Reads files.
pub(super) fn modules(runtime: &Runtime) -> Vec<(String, Arc<Module>)> {
    let mut names: Vec<String> = runtime.finder().offered().into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.into_iter().filter_map(|name| load(runtime, &name).map(|module| (name, module))).collect()
}

fn load(runtime: &Runtime, name: &str) -> Option<Arc<Module>> {
    match runtime.load(ModuleRef::Name(name)) {
        Ok(module) => module.manifest.invocation.agent_invocable.then_some(module),
        Err(error) => {
            tracing::warn!(
                module = name,
                error = error.message,
                "the module is not listed: it does not load"
            );
            None
        }
    }
}

impl Catalog {
    /// Returns the tools, sorted by name. Reads files.
    pub(super) fn list(&self, runtime: &Runtime) -> Vec<Tool> {
        modules(runtime).iter().map(|(name, module)| self.tool(name, module)).collect()
    }

    /// Returns the module as a tool.
    pub(super) fn tool(&self, name: &str, module: &Arc<Module>) -> Tool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, tool)) = known.get(name)
            // A changed module is loaded into another allocation; the weak reference keeps this one from being reused.
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(module))
        {
            return tool.clone();
        }
        let tool = describe(name, module);
        known.insert(name.to_owned(), (Arc::downgrade(module), tool.clone()));
        tool
    }
}

fn describe(name: &str, module: &Module) -> Tool {
    let manifest = &module.manifest;
    let mut description = manifest.responsibility.clone();
    if !manifest.excludes.is_empty() {
        description.push_str(&format!("\nExcludes: {}.", manifest.excludes.join("; ")));
    }
    Tool::new_with_raw(name.to_owned(), Some(description.into()), Arc::new(export::input_schema(module)))
        .with_raw_output_schema(Arc::new(export::envelope_schema(module)))
        .with_annotations(annotations(module))
}

// The modules as skills (SEP-2640): what they are, and their files.

/// The scheme of the URIs.
const SCHEME: &str = "skill://";

/// The modules as skills, each exported once until its files change.
#[derive(Default)]
pub(super) struct Skills(Mutex<HashMap<String, Exported>>);

/// A skill, and the module that it is of.
type Exported = (Weak<Module>, Arc<ServedSkill>);

/// A skill, with its files in the order of its entry.
pub(super) struct ServedSkill {
    entry: Skill,
    files: Vec<SkillFile>,
}

impl Skills {
    /// Returns the module as a skill; none if it cannot be one, with a line in the log. Reads files.
    pub(super) fn skill(&self, name: &str, module: &Arc<Module>) -> Option<Arc<ServedSkill>> {
        if let Some((of, skill)) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name)
            && std::ptr::eq(of.as_ptr(), Arc::as_ptr(module))
        {
            return Some(Arc::clone(skill));
        }
        match ServedSkill::new(name, module) {
            Ok(skill) => {
                let skill = Arc::new(skill);
                let of = Arc::downgrade(module);
                let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                known.insert(name.to_owned(), (of, Arc::clone(&skill)));
                Some(skill)
            }
            Err(reason) => {
                tracing::warn!(module = name, reason, "the module is not listed as a skill");
                None
            }
        }
    }
}

impl ServedSkill {
    fn new(name: &str, module: &Module) -> Result<Self, String> {
        let skill = export::skill(module).map_err(|error: ExportError| error.to_string())?;
        if skill.name != name {
            return Err(format!("its manifest names it `{}`", skill.name));
        }
        let front_matter = serde_json::from_value(Value::Object(skill.front_matter));
        let front_matter = front_matter.map_err(|error| error.to_string())?;
        let resource =
            |file: &SkillFile| SkillResource::from_bytes(uri(name, &file.path), file.text.as_bytes());
        let resources = SkillResources::Files(skill.files.iter().map(resource).collect());
        let entry = Skill::new(uri(name, "SKILL.md"), front_matter, resources);
        entry.validate().map_err(|error| error.to_string())?;
        Ok(Self { entry, files: skill.files })
    }

    /// Returns the entry of the skill: its front matter, and its files with their digests.
    pub(super) fn entry(&self) -> &Skill {
        &self.entry
    }

    /// Returns `SKILL.md` as a resource.
    pub(super) fn resource(&self) -> Resource {
        let resource = Resource::new(self.entry.uri.as_str(), self.entry.name())
            .with_description(self.entry.frontmatter.description.as_str())
            .with_mime_type(media_type("SKILL.md"));
        match self.files.first() {
            Some(file) => resource.with_size(file.text.len() as u64),
            None => resource,
        }
    }

    /// Returns the file at a URI.
    pub(super) fn read(&self, uri: &str) -> Option<ReadResourceResult> {
        let SkillResources::Files(known) = &self.entry.resources else { return None };
        let (_, file) = known.iter().zip(&self.files).find(|(known, _)| known.uri == uri)?;
        let contents = ResourceContents::text(file.text.as_str(), uri);
        Some(ReadResourceResult::new(vec![contents.with_mime_type(media_type(&file.path))]))
    }
}

/// Returns the name of the module in the URI of a skill's file.
pub(super) fn module_in(uri: &str) -> Option<&str> {
    uri.strip_prefix(SCHEME)?.split_once('/').map(|(name, _)| name)
}

/// Returns the URI of a file. Characters that a URI must not have are percent-encoded.
fn uri(name: &str, path: &str) -> String {
    let mut uri = format!("{SCHEME}{name}/");
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        Some("yaml") => "application/yaml",
        Some("sh") => "application/x-sh",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_the_modules_in_a_fixed_order() {
        let catalog = Catalog::default();
        let runtime = Runtime::offline();
        let tools = catalog.list(&runtime);
        assert!(tools.len() > 5);
        assert!(tools.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(
            serde_json::to_string(&tools).unwrap(),
            serde_json::to_string(&catalog.list(&runtime)).unwrap()
        );
        for tool in &tools {
            assert!(tool.name.len() <= 128 && !tool.description.as_ref().unwrap().is_empty());
            let input = serde_json::to_string(&tool.input_schema).unwrap();
            let output = tool.output_schema.as_ref().unwrap();
            assert_eq!(
                (&tool.input_schema["type"], &output["type"]),
                (&"object".into(), &"object".into()),
                "{input}"
            );
            assert!(output["properties"]["data"].is_object());
        }
    }
}
