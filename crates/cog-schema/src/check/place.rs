use cog_json::{Node, Path, Segment};

use super::answer_code;
use crate::contract::{Contract, Part};
use crate::shape::Id;
use crate::violation::Violation;

impl Contract {
    /// Checks one completed value of an answer that is still arriving (supplement R48): what its place must be,
    /// along properties, items, `allOf` and `$ref`. `path` starts at `data`, `meta` or `error`.
    ///
    /// Sound: whatever it tells, the check of the whole tells too. Not complete: what depends on values around
    /// the place (`oneOf`, `required`) is told when those are complete, and the check of the whole decides.
    pub fn check_at(&self, path: &Path, node: Node<'_>) -> Vec<Violation> {
        let mut steps = path.segments();
        let Some(Segment::Key(part)) = steps.next() else { return Vec::new() };
        let Some(shape) = self.part(part).map(|part| part.shape) else { return Vec::new() };
        let places = self.shapes.follow(shape, steps);
        let mut violations: Vec<Violation> = Vec::new();
        for place in places {
            for violation in self.check_place(place, path, node) {
                if !violations.contains(&violation) {
                    violations.push(violation);
                }
            }
        }
        violations
    }

    /// The part of an answer that has this name.
    pub(crate) fn part(&self, name: &str) -> Option<&Part> {
        match name {
            "data" => self.data.as_ref(),
            "meta" => self.meta.as_ref(),
            "error" => self.error.as_ref(),
            _ => None,
        }
    }

    fn check_place(&self, place: Id, path: &Path, node: Node<'_>) -> Vec<Violation> {
        match self.check_of(place) {
            Some(check) if !check.accepts(node) => {
                self.violations(&check.faults(node), (path, node), answer_code)
            }
            _ => Vec::new(),
        }
    }
}
