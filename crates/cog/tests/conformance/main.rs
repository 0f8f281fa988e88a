//! The conformance cases, one named test each: `cargo test -p cogn --test conformance`.
//!
//! `conformance/cases/GROUP.json` contains the cases of one group of the specification's checklist, as data. A case makes a
//! directory, runs the `cog` binary in it, with a scripted model behind it where the case has a reply, and compares what
//! comes out. docs/conformance-cases.md describes the form.

use std::{path::Path, process::ExitCode, sync::Arc};

use cog_conformance::{Programs, Suite};
use cog_spec::Form;
use libtest_mimic::{Arguments, Trial};

mod library;

fn main() -> Result<ExitCode, String> {
    let mut words = std::env::args().skip(1);
    if words.next().as_deref() == Some("library") {
        return library::run(words).map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string());
    }
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let suite = Arc::new(Suite::read(&root)?);
    let programs = Arc::new(Programs {
        cog: env!("CARGO_BIN_EXE_cog").into(),
        cogn: env!("CARGO_BIN_EXE_cogn").into(),
        library: std::env::current_exe().map_err(|error| error.to_string())?,
    });
    let trial = |name: String| {
        let suite = Arc::clone(&suite);
        let programs = Arc::clone(&programs);
        Trial::test(name.clone(), move || suite.check(&name, &programs).map_err(Into::into))
    };
    let mut trials: Vec<Trial> = suite.names().into_iter().map(trial).collect();
    for form in Form::ALL.iter().skip(1) {
        let in_form = |name: String| {
            let suite = Arc::clone(&suite);
            let programs = Arc::clone(&programs);
            let title = format!("forms/{form}/{name}");
            Trial::test(title, move || suite.check_in_form(&name, form, &programs).map_err(Into::into))
        };
        trials.extend(suite.names_in_form(form).into_iter().map(in_form));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}
