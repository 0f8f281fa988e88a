//! Which core runs what, and how many files may be open.

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_setaffinity},
};

/// The core of what is measured.
pub(crate) const MEASURED: usize = 0;
/// The core of everything else.
pub(crate) const REST: usize = 1;

/// Keeps this thread on one core.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("two cores: one for what is measured, one for the rest");
}

/// Both ends of thousands of connections are open in this process.
pub(crate) fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).expect("the limit of open files may be raised to its maximum");
}
