//! `cogn`: the same program as `cog` (supplement R1).

use std::process::ExitCode;

fn main() -> ExitCode {
    cog::main()
}
