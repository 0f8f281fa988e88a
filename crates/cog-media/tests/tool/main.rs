//! Documents, audio and video are read by a separate process: this binary, started again.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test with its own harness, which clippy does not recognise"
)]

/// Lists test functions with their names.
macro_rules! tests {
    ($($name:ident,)*) => { &[$((stringify!($name), $name)),*] };
}

mod convert;
mod documents;
mod files;
mod heif;
mod hostile;
mod mutate;
mod pictures;
mod prepare;
mod probe;
mod samples;

use std::{ffi::OsString, process::ExitCode};

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match arguments.split_first() {
        Some((command, rest)) if command == "internal-media" => cog_media::internal_media(rest),
        Some((command, rest)) if command == probe::FORGETFUL => {
            probe::forgetful(std::path::Path::new(&rest[0]))
        }
        _ => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
    }
}

fn trials() -> Vec<Trial> {
    let trial = |(name, test): &(&'static str, fn())| {
        let test = *test;
        Trial::test(*name, move || {
            test();
            Ok(())
        })
    };
    [probe::TESTS, convert::TESTS, pictures::TESTS, prepare::TESTS, hostile::TESTS, documents::TESTS]
        .concat()
        .iter()
        .map(trial)
        .collect()
}
