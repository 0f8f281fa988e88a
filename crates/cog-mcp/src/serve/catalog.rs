//! The modules that a model may call, and each as a tool.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use cog_module::export;
use cog_run::{Module, ModuleRef, Runtime};
use rmcp::model::Tool;

use super::annotations;

/// The modules as tools, each described once until its files change.
#[derive(Default)]
pub(super) struct Catalog(Mutex<HashMap<String, (Weak<Module>, Tool)>>);

/// Returns the modules that a model may call, sorted by name. Reads files.
pub(super) fn modules(runtime: &Runtime) -> Vec<(String, Arc<Module>)> {
    let mut names: Vec<String> = runtime.finder().origins().into_iter().map(|(name, _)| name).collect();
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
