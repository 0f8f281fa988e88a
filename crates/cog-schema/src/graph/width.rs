//! Measures how many schemas a check of a value visits.

use super::{Id, SchemaGraph};
use crate::schema_error::SchemaError;

/// The maximum number of paths through a document that the engine checks. It visits a schema once per path: twenty levels
/// with two references to the next level are a million paths.
const MAX_PATHS: u64 = 4_096;

/// The maximum nesting of schemas for one value in recursive documents: a value can have 128 levels, and a check goes this
/// deep at each of them.
const MAX_NESTING: u32 = 16;

/// The measurements of each schema.
struct WidthMeasure {
    /// The number of paths through it; 0 while it is being visited.
    paths: Vec<Option<u64>>,
    /// The nesting of schemas for the same value.
    levels: Vec<u32>,
    /// Whether any schema is recursive.
    is_recursive: bool,
}

impl SchemaGraph {
    /// Returns whether very many paths lead through the schemas. Recursive schemas count up to the recursion.
    ///
    /// # Errors
    /// If a check could overflow its stack.
    pub(super) fn measure(&self) -> Result<bool, SchemaError> {
        let count = self.nodes.len();
        let mut measure =
            WidthMeasure { paths: vec![None; count], levels: vec![0; count], is_recursive: false };
        (0..count).for_each(|number| self.measure_from(Id(number as u32), &mut measure));
        let deepest = measure.levels.iter().zip(&self.nodes).max_by_key(|(levels, _)| **levels);
        match deepest.filter(|(levels, _)| measure.is_recursive && **levels > MAX_NESTING) {
            Some((levels, shape)) => Err(too_deep(*levels, &shape.pointer)),
            None => Ok(measure.paths.into_iter().flatten().any(|paths| paths > MAX_PATHS)),
        }
    }

    /// Measures depth first with an explicit stack. A schema is on it twice: before and after the schemas that it leads to.
    fn measure_from(&self, start: Id, measure: &mut WidthMeasure) {
        let mut open = vec![(start, false)];
        while let Some((id, is_done)) = open.pop() {
            if is_done {
                measure.close(id, self.leads_to(id), self.in_place(id));
                continue;
            }
            match measure.paths.get_mut(id.index()) {
                Some(paths @ None) => {
                    *paths = Some(0);
                    open.push((id, true));
                    open.extend(self.leads_to(id).map(|inner| (inner, false)));
                }
                Some(Some(0)) => measure.is_recursive = true,
                _ => {}
            }
        }
    }

    /// Returns the schemas that a schema applies to any value.
    fn leads_to(&self, id: Id) -> impl Iterator<Item = Id> {
        let links = &self.get(id).links;
        self.below(id).chain(links.not).chain(links.contains)
    }

    /// Returns the schemas that a schema applies to the same value.
    fn in_place(&self, id: Id) -> impl Iterator<Item = Id> {
        let links = &self.get(id).links;
        links.all.iter().copied().chain(links.branches()).chain(links.not)
    }
}

impl WidthMeasure {
    /// Completes a schema after all schemas that it leads to.
    fn close(&mut self, id: Id, inner: impl Iterator<Item = Id>, in_place: impl Iterator<Item = Id>) {
        let paths = inner.filter_map(|inner| self.paths.get(inner.index()).copied().flatten());
        let paths = paths.fold(1_u64, u64::saturating_add);
        let levels = in_place.filter_map(|inner| self.levels.get(inner.index())).max();
        let levels = levels.map_or(0, |levels| levels + 1);
        self.paths.get_mut(id.index()).into_iter().for_each(|known| *known = Some(paths));
        self.levels.get_mut(id.index()).into_iter().for_each(|known| *known = levels);
    }
}

fn too_deep(levels: u32, pointer: &str) -> SchemaError {
    let message =
        format!("recursive schemas apply {levels} nested schemas to one value; the maximum is {MAX_NESTING}");
    SchemaError::new(pointer, message).suggest("Shorten the chain of `allOf`, `anyOf` and `oneOf`.")
}
