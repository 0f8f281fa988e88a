//! How much a check of a value goes through, found out before there is a value.

use super::{Id, SchemaGraph};
use crate::schema_error::SchemaError;

/// A document wider than this is not left to the engine, which would go through a schema once for each way that
/// leads to it: twice the next, twenty times over, is a million ways.
const WIDEST: u64 = 4_096;

/// How many schemas may apply to one value, each within the other, where schemas come back to themselves: a value may
/// be 128 levels deep, and at each of them a check goes as deep as this.
const DEEPEST: u32 = 16;

/// What there is to know of each schema.
struct WidthMeasure {
    /// The ways through it; 0 while it is being gone through.
    ways: Vec<Option<u64>>,
    /// Schemas for the same value, each within the other.
    levels: Vec<u32>,
    /// Whether any schema comes back to itself.
    comes_back: bool,
}

impl SchemaGraph {
    /// Whether there are very many ways through the schemas. One that comes back to itself counts up to there.
    ///
    /// # Errors
    /// Where a check could go deeper than its stack is.
    pub(super) fn measure(&self) -> Result<bool, SchemaError> {
        let count = self.shapes.len();
        let mut measure = WidthMeasure { ways: vec![None; count], levels: vec![0; count], comes_back: false };
        (0..count).for_each(|number| self.measure_from(Id(number as u32), &mut measure));
        let deepest = measure.levels.iter().zip(&self.shapes).max_by_key(|(levels, _)| **levels);
        match deepest.filter(|(levels, _)| measure.comes_back && **levels > DEEPEST) {
            Some((levels, shape)) => Err(too_deep(*levels, &shape.pointer)),
            None => Ok(measure.ways.into_iter().flatten().any(|ways| ways > WIDEST)),
        }
    }

    /// Depth first, with a stack of our own. A schema is met twice: before what it leads to, and after.
    fn measure_from(&self, start: Id, measure: &mut WidthMeasure) {
        let mut open = vec![(start, false)];
        while let Some((id, is_done)) = open.pop() {
            if is_done {
                measure.close(id, self.leads_to(id), self.in_place(id));
                continue;
            }
            match measure.ways.get_mut(id.index()) {
                Some(ways @ None) => {
                    *ways = Some(0);
                    open.push((id, true));
                    open.extend(self.leads_to(id).map(|inner| (inner, false)));
                }
                Some(Some(0)) => measure.comes_back = true,
                _ => {}
            }
        }
    }

    /// The schemas that a schema applies, to whatever value.
    fn leads_to(&self, id: Id) -> impl Iterator<Item = Id> {
        let links = &self.get(id).links;
        self.below(id).chain(links.not).chain(links.contains)
    }

    /// The schemas that a schema applies to the same value as itself.
    fn in_place(&self, id: Id) -> impl Iterator<Item = Id> {
        let links = &self.get(id).links;
        links.all.iter().copied().chain(links.branches()).chain(links.not)
    }
}

impl WidthMeasure {
    /// Everything that a schema leads to has been gone through.
    fn close(&mut self, id: Id, inner: impl Iterator<Item = Id>, in_place: impl Iterator<Item = Id>) {
        let ways = inner.filter_map(|inner| self.ways.get(inner.index()).copied().flatten());
        let ways = ways.fold(1_u64, u64::saturating_add);
        let levels = in_place.filter_map(|inner| self.levels.get(inner.index())).max();
        let levels = levels.map_or(0, |levels| levels + 1);
        self.ways.get_mut(id.index()).into_iter().for_each(|known| *known = Some(ways));
        self.levels.get_mut(id.index()).into_iter().for_each(|known| *known = levels);
    }
}

fn too_deep(levels: u32, pointer: &str) -> SchemaError {
    let message =
        format!("recursive schemas apply {levels} nested schemas to one value; the maximum is {DEEPEST}");
    SchemaError::new(pointer, message).suggest("Shorten the chain of `allOf`, `anyOf` and `oneOf`.")
}
