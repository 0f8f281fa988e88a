use std::{fmt, sync::Arc};

use super::Tool;

/// The tools of one run, beside those of its runtime.
#[derive(Clone, Default)]
pub struct RunTools(Vec<Arc<dyn Tool>>);

impl RunTools {
    /// Adds a tool. One of the same name is replaced.
    pub fn add(&mut self, tool: Arc<dyn Tool>) {
        add(&mut self.0, tool);
    }

    /// Returns these tools and those of the runtime that have other names.
    pub(super) fn with_registered(&self, registered: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        let mut tools = registered.to_vec();
        self.0.iter().for_each(|tool| add(&mut tools, Arc::clone(tool)));
        tools
    }
}

/// Adds a tool to a list. One of the same name is replaced.
pub(crate) fn add(tools: &mut Vec<Arc<dyn Tool>>, tool: Arc<dyn Tool>) {
    let name = &tool.info().name;
    tools.retain(|other| other.info().name != *name);
    tools.push(tool);
}

/// The names.
impl fmt::Debug for RunTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|tool| &tool.info().name)).finish()
    }
}
