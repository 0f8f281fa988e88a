//! `cog verify`: is it what the specification describes?

use cog_answer::verify::{self, Verdict};

use super::{input, targets::default_finder};
use crate::{
    args::VerifyArgs,
    error::CliError,
    exit::Exit,
    output::{Console, Paint},
    settings::Environment,
};

/// Checks a document, whoever produced it. Exit code 0 where it is valid, else 1.
pub(crate) fn verify(
    args: &VerifyArgs,
    environment: Environment,
    console: &Console,
) -> Result<Exit, CliError> {
    let module = match &args.module {
        Some(name) => {
            let module = cog_module::load(&default_finder(environment, console)?.find(name)?)?;
            console.diagnose(&module.warnings);
            Some(module)
        }
        None => None,
    };
    let text = input::any_text(&args.file)?;
    let contract = module.as_ref().map(|module| (&*module.manifest, &*module.contract));
    let verdict = verify::verify(&text, args.kind(), contract);
    if args.format.is_json() || !(console.out().is_terminal || args.format.is_human()) {
        console.print_json(&verdict)?;
    } else {
        console.print(&describe(&verdict, console.out().paint))?;
    }
    Ok(if verdict.valid { Exit::Ok } else { Exit::Failed })
}

/// Each violation on a line, then the verdict.
fn describe(verdict: &Verdict, paint: Paint) -> String {
    let mut text = String::new();
    for violation in &verdict.violations {
        let place = if violation.path.is_empty() { String::new() } else { format!("{}: ", violation.path) };
        let rule = paint.dim(format_args!("[{}]", violation.rule));
        text += &format!("{}{} {rule}\n", paint.name(place), violation.message);
    }
    let what = verdict.kind.map_or("unknown", |kind| kind.as_str());
    let word = if verdict.valid { paint.good("valid") } else { paint.bad("invalid") };
    text + &format!("{word} {what}\n")
}
