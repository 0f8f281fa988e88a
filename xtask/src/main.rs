//! The chores of this workspace, as one program.

fn main() {}
