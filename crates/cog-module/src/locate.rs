//! Finds the locations of values in the files of a module that is loaded.

use std::ops::Range;

use crate::{
    Diagnostic, Module, layout,
    load::ManifestText,
    source::Source,
    text_location::{descend, range_in},
    yaml::Node,
};

/// Adds locations to diagnostics about a loaded module, for checks of other crates.
///
/// The files are read again. If they have changed or cannot be read, a diagnostic has no location.
#[derive(Debug)]
pub struct Locator<'a> {
    module: &'a Module,
    manifest: Option<(Source, Node)>,
    prompt: Option<(Source, usize)>,
}

impl<'a> Locator<'a> {
    /// Reads the manifest and the prompt of a module.
    pub fn new(module: &'a Module) -> Self {
        let family = layout::family_of(module.manifest.format);
        let manifest = ManifestText::read(&module.origin, family).ok();
        let prompt = layout::prompt_source(&module.origin, family).ok();
        // In a v1 module the prompt follows the front matter.
        let prompt = prompt.and_then(|source| {
            let offset = source.text.rfind(module.prompt.text())?;
            Some((source, offset))
        });
        Self { module, manifest: manifest.map(|text| (text.source, text.root)), prompt }
    }

    /// Sets the file and the location of a diagnostic about a value of the manifest: the JSON pointer of the value, and
    /// a byte range in its text. If there is no such value, it is the location of its nearest parent.
    #[must_use]
    pub fn in_manifest(
        &self,
        diagnostic: Diagnostic,
        pointer: &str,
        within: Option<Range<usize>>,
    ) -> Diagnostic {
        let diagnostic = Diagnostic { file: self.module.manifest_file(), ..diagnostic };
        let Some((source, root)) = &self.manifest else { return diagnostic };
        let Some((node, is_exact)) = descend(root, pointer) else { return diagnostic };
        let range = within.filter(|_| is_exact).and_then(|within| range_in(source, node, within));
        diagnostic.at(source, range.unwrap_or_else(|| node.written.clone()))
    }

    /// Sets the file and the location of a diagnostic about a byte range of the prompt.
    #[must_use]
    pub fn in_prompt(&self, diagnostic: Diagnostic, range: Range<usize>) -> Diagnostic {
        let prompt = layout::family_of(self.module.manifest.format).prompt();
        let diagnostic = Diagnostic { file: self.module.origin.path_of(prompt), ..diagnostic };
        match &self.prompt {
            Some((source, offset)) => diagnostic.at(source, offset + range.start..offset + range.end),
            None => diagnostic,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Rule, testing::Directory, testing::MANIFEST};

    use super::*;

    fn located(more: &str, pointer: &str, within: Range<usize>) -> (u32, u32) {
        let directory = Directory::v22().with("module.yaml", format!("{MANIFEST}{more}"));
        let module = directory.load().unwrap();
        let found = Diagnostic::error(Rule::KeyValue, "", "wrong");
        let found = Locator::new(&module).in_manifest(found, pointer, Some(within));
        assert!(found.file.ends_with("module.yaml"));
        let location = found.location.unwrap();
        (location.line, location.column)
    }

    #[test]
    fn value_of_the_manifest_has_a_line_and_a_column() {
        let more = "composition:\n  routing:\n    - condition: $.a == 1\n      next: null\n    - condition: \"$.b == 1\"\n      next: x\n";
        assert_eq!(located(more, "/composition/routing/0/condition", 4..6), (9, 22));
        assert_eq!(located(more, "/composition/routing/1/condition", 4..6), (11, 23));
        assert_eq!(located(more, "/composition/routing/1/from", 0..1).0, 11);
    }

    #[test]
    fn string_with_escapes_has_the_location_of_its_start() {
        let more = "composition:\n  routing:\n    - condition: \"\\u0024.b == 1\"\n      next: x\n";
        assert_eq!(located(more, "/composition/routing/0/condition", 4..6), (9, 18));
    }

    #[test]
    fn range_of_the_prompt_has_a_line_and_a_column() {
        let directory = Directory::v22().with("prompt.md", "Sort.\nSee @call:a.\n");
        let module = directory.load().unwrap();
        let found = Diagnostic::error(Rule::KeyValue, "", "wrong");
        let found = Locator::new(&module).in_prompt(found, 10..17);
        let location = found.location.unwrap();
        assert_eq!((location.line, location.column, &location.excerpt[location.marked]), (2, 5, "@call:a"));
    }
}
