//! The parts of a composition: what each one does.

use cog_spec::{PartProgress, PartStatus};

use crate::output::text::printable;

/// The maximum number of parts that are shown. Parts that run and that failed come first.
const MAX_SHOWN: usize = 12;

/// The parts of a composition, in the order in which they were reported.
#[derive(Debug, Default)]
pub(super) struct PartList(Vec<Part>);

#[derive(Debug)]
struct Part {
    path: String,
    status: PartStatus,
    /// The field that grows.
    field: String,
    characters: usize,
    /// `confidence 0.93 · $0.01`, or the error.
    result: String,
}

impl PartList {
    /// Adds the progress of a part.
    pub(super) fn push(&mut self, progress: &PartProgress) {
        let part = self.part(&progress.path);
        if let Some(status) = progress.status {
            part.status = status;
        }
        if let Some(field) = &progress.field {
            part.field = printable(field);
        }
        part.characters += progress.delta.as_ref().map_or(0, |delta| delta.chars().count());
        if let Some(report) = &progress.report {
            let confidence = report.confidence.map(|confidence| format!("confidence {confidence:.2}"));
            let cost = report.usage.as_ref().and_then(|usage| usage.cost).map(|cost| cost.to_string());
            let cached = report.cache.filter(|cache| cache.hit).map(|_| "from the cache".to_owned());
            let restored = report.restored.then(|| "restored".to_owned());
            let error =
                report.error.as_ref().map(|error| printable(&format!("{}: {}", error.code, error.message)));
            part.result = [error, confidence, cost, cached, restored]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join(" · ");
        }
    }

    /// Returns one line for each part: `✓ style-reviewer  confidence 0.93 · $0.01`.
    pub(super) fn lines(&self, spinner: char) -> Vec<String> {
        let width = self.0.iter().map(|part| part.path.chars().count()).max().unwrap_or_default();
        let shown: Vec<&Part> = match self.0.len() > MAX_SHOWN {
            true => self.0.iter().filter(|part| part.is_urgent()).take(MAX_SHOWN).collect(),
            false => self.0.iter().collect(),
        };
        let mut lines: Vec<String> = shown.iter().map(|part| part.line(width, spinner)).collect();
        if self.0.len() > shown.len() {
            let done = self.count(PartStatus::Done);
            let waiting = self.count(PartStatus::Waiting);
            lines.push(format!("  {done} of {} parts done, {waiting} waiting", self.0.len()));
        }
        lines
    }

    fn count(&self, status: PartStatus) -> usize {
        self.0.iter().filter(|part| part.status == status).count()
    }

    fn part(&mut self, path: &str) -> &mut Part {
        let path = printable(path);
        let index = self.0.iter().position(|part| part.path == path).unwrap_or_else(|| {
            let index = self.place_of(&path);
            let part = Part {
                path,
                status: PartStatus::Waiting,
                field: String::new(),
                characters: 0,
                result: String::new(),
            };
            self.0.insert(index, part);
            index
        });
        #[expect(clippy::indexing_slicing, reason = "the part was found or added")]
        &mut self.0[index]
    }

    /// Returns the place of a new part: after the parts of the same part, otherwise at the end.
    fn place_of(&self, path: &str) -> usize {
        let Some((parent, _)) = path.rsplit_once('/') else { return self.0.len() };
        let last = self.0.iter().rposition(|part| part.is_in(parent));
        last.map_or(self.0.len(), |last| last + 1)
    }
}

impl Part {
    /// Whether it is this part, or a part below it.
    fn is_in(&self, parent: &str) -> bool {
        self.path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns whether the part is shown if there is no room for all.
    fn is_urgent(&self) -> bool {
        matches!(self.status, PartStatus::Running | PartStatus::Failed)
    }

    fn line(&self, width: usize, spinner: char) -> String {
        let sign = match self.status {
            PartStatus::Waiting => '·',
            PartStatus::Running => spinner,
            PartStatus::Done => '✓',
            PartStatus::Failed => '✗',
            PartStatus::Skipped | PartStatus::Cancelled => '–',
        };
        let doing = match self.status {
            PartStatus::Running if self.characters > 0 => {
                format!("{} · {} characters", self.field, self.characters)
            }
            PartStatus::Done | PartStatus::Failed => self.result.clone(),
            status => status.to_string(),
        };
        format!("{sign} {:width$}  {doing}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::{PartError, PartReport};

    use super::*;

    fn status(path: &str, status: PartStatus) -> PartProgress {
        PartProgress { path: path.to_owned(), status: Some(status), ..PartProgress::default() }
    }

    #[test]
    fn shows_what_each_part_does() {
        let mut list = PartList::default();
        list.push(&status("analyse", PartStatus::Waiting));
        list.push(&status("style", PartStatus::Waiting));
        list.push(&status("safety", PartStatus::Running));
        let mut report = PartReport::new("analyse", "analyse", PartStatus::Done);
        report.confidence = Some(0.934);
        list.push(&PartProgress { report: Some(Box::new(report)), ..status("analyse", PartStatus::Done) });
        let delta = Some("12345".to_owned());
        let field = Some("data.x".to_owned());
        list.push(&PartProgress { path: "safety".to_owned(), field, delta, ..PartProgress::default() });
        let expected =
            ["✓ analyse  confidence 0.93", "· style    waiting", "* safety   data.x · 5 characters"];
        assert_eq!(list.lines('*'), expected);
        let mut report = PartReport::new("style", "style", PartStatus::Failed);
        report.error = Some(PartError { code: "E2002".to_owned(), message: "late\u{1b}".to_owned() });
        list.push(&PartProgress { report: Some(Box::new(report)), ..status("style", PartStatus::Failed) });
        assert_eq!(list.lines('*')[1], "✗ style    E2002: late\u{fffd}");
    }

    #[test]
    fn parts_of_a_part_follow_it() {
        let mut list = PartList::default();
        for path in ["chain", "last", "chain/one", "chain/one/leaf", "chain/two", "chains"] {
            list.push(&status(path, PartStatus::Done));
        }
        let paths: Vec<&str> = list.0.iter().map(|part| part.path.as_str()).collect();
        assert_eq!(paths, ["chain", "chain/one", "chain/one/leaf", "chain/two", "last", "chains"]);
    }

    #[test]
    fn many_parts_are_counted() {
        let mut list = PartList::default();
        (0..100).for_each(|number| list.push(&status(&format!("part-{number}"), PartStatus::Waiting)));
        list.push(&status("part-7", PartStatus::Running));
        assert_eq!(list.lines('*'), ["* part-7   running", "  0 of 100 parts done, 99 waiting"]);
    }
}
