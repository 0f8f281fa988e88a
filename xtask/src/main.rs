//! The chores of this workspace, as one program: `cargo xtask COMMAND`.

mod autobahn;
mod bench;
mod clients;
mod conformance;
mod dag;
mod deny;
mod dist;
mod docs;
mod editors;
mod engine;
mod fuzz;
mod generate;
mod library;
mod links;
mod mcp_servers;
mod mutants;
mod prices;
mod probe;
mod project;
mod python;
mod record;
mod replies;
mod sizes;
mod source;
mod terminal;
mod test;
mod types;
mod words;

use std::process::ExitCode;

use project::{Outcome, say};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  autobahn [PYTHON]   test the WebSocket connection with Autobahn, on Python 2.7
  bench [commands]    run the benchmarks, with the peers that they are compared to
  bench answers [MODEL [CASES [FORM...]]]  count the right answers of small models in each form of asking
  bench batch         compare batches with other programs that run the same rows, and a plan with a run
  bench insights      compare the memory of `cog insights` for a million runs and for ten thousand
  bench model         count the accepted answers of a random and of a real model
  bench python        measure the Python package, beside the Rust call and other packages
  bench replies       compare the parser of replies with those of other projects
  bench trust         simulate how often the promise of a calibrated threshold is broken
  clients             run other people's clients against the server
  conformance         print which lines of the checklist are covered
  dag                 check which crates and modules may use each other
  dist                build what a release has for this machine, in target/distribution, and check it
  docs [--check]      build the pages as a site, in target/docs/book, or fail if a link of it is dead
  editors             test the extension for Visual Studio Code, and package it in target/tmp/vscode
  engine              run the shipped modules on llama.cpp with a random model
  features            compile cog-run and cog-host with each set of their features
  deny                check licenses, sources, and advisories if their database can be reached
  fuzz --check        compile the fuzz targets
  fuzz SECONDS [TARGET]  run each fuzz target, or one, for this many seconds
  generate [--check]  write the generated pages, or fail where one is out of date; check links
  load [WORD]         put the server under load, with ratios against the raw mock
  mcp-servers         call the tools of ten MCP servers of other people, in the wire form of each vendor
  mutants [PACKAGE [FILE]]  change the pure crates in small ways, and fail where no test notices
  outside             compile and run a program outside the workspace that uses cog-run
  package             package every crate that is published
  probe URL           measure which keywords of a schema an engine enforces; `random` starts llama.cpp
  python              build the wheel of the Python package, and run its tests
  semver              compare cog-run with the version published last
  record              write docs/terminal.svg, the recording in the README
  siege [SECONDS]     put the server under siege by hostile clients, beside healthy ones
  sizes               check the lengths of files and functions
  test [--rust-only | --all]  install what the tests need and run them; --all downloads a browser, Node, Ray and an engine
  types               compile what `cog types` prints with mypy, pyright, tsc, rustc and go
  words [PATH]        check help, messages, pages, public names and comments for words to avoid";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            say(format_args!("error: {reason}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        ["autobahn"] => autobahn::run("python2.7"),
        ["autobahn", python] => autobahn::run(python),
        ["bench"] => bench::run(),
        ["bench", "answers", rest @ ..] => bench::answers::run(rest),
        ["bench", "batch"] => bench::batch::run(),
        ["bench", "commands"] => bench::commands::run(),
        ["bench", "insights"] => bench::insights::run(),
        ["bench", "model"] => engine::bench(),
        ["bench", "python"] => python::bench(),
        ["bench", "replies"] => replies::compare(),
        ["bench", "trust"] => bench::trust::run(),
        ["clients"] => clients::check(),
        ["conformance"] => conformance::run(),
        ["dag"] => dag::run(),
        ["deny"] => deny::run(),
        ["dist"] => dist::run(),
        ["dist", "bare", program] => dist::bare::run(program),
        ["docs"] => docs::build().map(drop),
        ["docs", "--check"] => docs::check(),
        ["editors"] => editors::check(),
        ["engine"] => engine::check(),
        ["features"] => library::features(),
        ["fuzz", "--check"] => fuzz::check(),
        ["fuzz", seconds] => fuzz::run(seconds, None),
        ["fuzz", seconds, target] => fuzz::run(seconds, Some(target)),
        ["generate"] => generate::run(generate::Mode::Write),
        ["generate", "--check"] => generate::run(generate::Mode::Check),
        ["load"] => bench::load(""),
        ["load", word] => bench::load(word),
        ["mcp-servers"] => mcp_servers::check(),
        ["mutants"] => mutants::run(None, None),
        ["mutants", package] => mutants::run(Some(package), None),
        ["mutants", package, file] => mutants::run(Some(package), Some(file)),
        ["outside"] => library::outside(),
        ["package"] => library::package(),
        ["python"] => python::check(test::Extent::All),
        ["semver"] => library::semver(),
        ["probe", url] => probe::run(url),
        ["record"] => record::run(),
        ["siege"] => bench::siege(bench::SIEGE),
        ["siege", seconds] => bench::siege(seconds),
        ["sizes"] => sizes::run(),
        ["test"] => test::run(test::Extent::Usual),
        ["test", "--all"] => test::run(test::Extent::All),
        ["test", "--rust-only"] => test::run(test::Extent::RustOnly),
        ["types"] => types::check(),
        ["words"] => words::run(None),
        ["words", path] => words::run(Some(path)),
        _ => Err(USAGE.to_owned()),
    }
}
