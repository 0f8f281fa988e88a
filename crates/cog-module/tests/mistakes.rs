//! Mistakes of first authors, as edits of a module: how many of them `validate` reports.
//!
//! `cargo test -p cog-module --test mistakes -- --nocapture` prints each one.

#[cfg(test)]
mod tests {
    use cog_module::{Diagnostic, Level, Origin};
    use cog_testkit::{EditedModule, Mistakes};

    /// The maximum number of mistakes that are not reported.
    const MAX_SILENT: usize = 2;

    fn diagnostics(case: &EditedModule) -> Vec<Diagnostic> {
        let place = tempfile::tempdir().unwrap();
        let directory = case.write(place.path());
        cog_module::validate(&Origin::Directory(directory), Level::Any).diagnostics
    }

    #[test]
    fn mistakes_of_first_authors_are_reported() {
        let mistakes = Mistakes::read().wrong;
        let mut silent = Vec::new();
        for case in &mistakes {
            match diagnostics(case).first() {
                Some(first) => println!("reported  {}: {} [{}]", case.name, first.message, first.rule),
                None => {
                    println!("silent    {}", case.name);
                    silent.push(&case.name);
                }
            }
        }
        println!("{} of {} reported", mistakes.len() - silent.len(), mistakes.len());
        assert!(mistakes.len() >= 86);
        assert!(silent.len() <= MAX_SILENT, "{silent:?}");
    }

    #[test]
    fn right_modules_have_no_warnings() {
        let right = Mistakes::read().right;
        assert!(right.len() >= 20);
        for case in &right {
            let found: Vec<_> = diagnostics(case).into_iter().map(|found| found.message).collect();
            assert!(found.is_empty(), "{}: {found:?}", case.name);
        }
    }
}
