//! `cog`: the command line of Cognitive Modules.

use std::process::ExitCode;

fn main() -> ExitCode {
    cog::main()
}
