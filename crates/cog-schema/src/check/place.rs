use cog_json::{Node, Path, Segment};

use super::{answer_code, unreported};
use crate::contract::{Contract, Part};
use crate::violation::Violation;

impl Contract {
    /// Checks one completed value of an answer that is still arriving (ruling R48). `path` starts at `data`,
    /// `meta` or `error`; one that is complete itself is checked as a whole, a place inside the data by what it
    /// must be along properties, items, `allOf` and `$ref`.
    ///
    /// Sound: whatever it reports, the check of the whole reports too. Not complete: what depends on values around
    /// the place (`oneOf`, `required`) is reported when those are complete, and the check of the whole decides.
    pub fn check_at(&self, path: &Path, node: Node<'_>) -> Vec<Violation> {
        let mut steps = path.segments();
        let Some(Segment::Key(part)) = steps.next() else { return Vec::new() };
        match (part, path.segments().len()) {
            ("data", 1) => self.check_data(node).violations,
            ("meta", 1) => self.check_meta(node),
            ("error", 1) => self.check_error(node),
            ("data", _) => self.check_inside_data(path, steps, node),
            _ => Vec::new(),
        }
    }

    fn check_inside_data<'p>(
        &self,
        path: &Path,
        steps: impl Iterator<Item = Segment<'p>>,
        node: Node<'_>,
    ) -> Vec<Violation> {
        if path.to_string() == "data.rationale"
            && let Some(violation) = self.check_rationale_text(node)
        {
            return vec![violation];
        }
        let Some(data) = &self.data else { return Vec::new() };
        let mut violations: Vec<Violation> = Vec::new();
        for place in self.shapes.follow(data.shape, steps) {
            let reported = self.violations(&self.errors(place, node), (path, node), answer_code);
            violations.extend(unreported(reported, &violations));
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
}
