//! The command line of Cognitive Modules.

fn main() {}
