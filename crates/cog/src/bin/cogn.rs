//! `cogn`: the same program as `cog` (ruling R1).

use std::process::ExitCode;

fn main() -> ExitCode {
    cog::main()
}
