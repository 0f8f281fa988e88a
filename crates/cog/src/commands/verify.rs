//! `cog verify`: checks a document against the specification.

use cog_answer::verify::{self, Verdict};
use cog_host::settings::Environment;

use super::{input, targets::default_finder};
use crate::{
    args::VerifyArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Palette},
};

/// Checks a document. The exit code is 0 if it is valid, otherwise 1.
pub(crate) fn verify(
    args: &VerifyArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let module = match &args.module {
        Some(name) => {
            let module = cog_module::load(&default_finder(environment)?.find(name)?)?;
            console.diagnose(&module.warnings);
            Some(module)
        }
        None => None,
    };
    let contract = module.as_ref().map(|module| (&*module.manifest, &*module.contract));
    let verdict = match input::any_text(&args.file)? {
        Ok(text) if args.model.is_some() => verify::verify_messages(&text, args.model.as_ref()),
        Ok(text) => verify::verify(&text, args.kind(), contract),
        Err(error) => Verdict::not_text(args.kind(), &error.to_string()),
    };
    if console.prints_json(args.format) {
        console.print_json(&verdict)?;
    } else {
        console.print(&describe(&verdict, console.out().palette))?;
    }
    Ok(if verdict.valid { Exit::Ok } else { Exit::Failed })
}

/// Formats one violation per line, then the verdict.
fn describe(verdict: &Verdict, palette: Palette) -> String {
    let mut text = String::new();
    let marked = |list, mark| std::iter::repeat(mark).zip(list);
    let warning = palette.warning("warning: ").to_string();
    for (mark, violation) in marked(&verdict.violations, "").chain(marked(&verdict.warnings, &*warning)) {
        let path = if violation.path.is_empty() { String::new() } else { format!("{}: ", violation.path) };
        let rule = palette.dim(format_args!("[{}]", violation.rule));
        text += &format!("{mark}{}{} {rule}\n", palette.name(path), violation.message);
    }
    let what = verdict.kind.map_or("unknown", |kind| kind.as_str());
    let result = if verdict.valid { palette.success("valid") } else { palette.error("invalid") };
    text + &format!("{result} {what}\n")
}
