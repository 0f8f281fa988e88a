use cog_json::{ToJson, Writer};

/// A file before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The path in the module's directory.
    pub path: String,
    /// The current text; none for a new file.
    pub before: Option<String>,
    /// The new text; none for a removed file.
    pub after: Option<String>,
}

impl FileChange {
    /// Returns the change as a unified diff with its path below `directory`.
    pub(super) fn diff(&self, directory: &str) -> String {
        let (before, after) = (self.before.as_deref().unwrap_or(""), self.after.as_deref().unwrap_or(""));
        let name = |side: &str, text: &Option<String>| match text {
            Some(_) if matches!(directory, "" | ".") => format!("{side}/{}", self.path),
            Some(_) => format!("{side}/{directory}/{}", self.path),
            None => "/dev/null".to_owned(),
        };
        let diff = similar::TextDiff::from_lines(before, after);
        diff.unified_diff().header(&name("a", &self.before), &name("b", &self.after)).to_string()
    }
}

impl ToJson for FileChange {
    fn write_json(&self, w: &mut Writer<'_>) {
        let kind = match (&self.before, &self.after) {
            (None, _) => "created",
            (_, None) => "removed",
            _ => "changed",
        };
        w.object(|w| {
            w.field("path", &self.path);
            w.field("change", kind);
        });
    }
}
