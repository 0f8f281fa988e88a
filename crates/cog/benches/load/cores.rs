//! Which core runs what, and how many files may be open.

use std::process::{Child, Command, Stdio};

use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CpuSet, sched_setaffinity},
};

/// The core that the measured program runs on.
pub(crate) const MEASURED: usize = 0;
/// The core of everything else.
pub(crate) const REST: usize = 1;

/// Keeps this thread on one core.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("two cores: one for what is measured, one for the rest");
}

/// Keeps both cores from falling asleep, at a priority that takes nothing from anything else. Where there is little to do,
/// how long a virtual machine takes to wake a core would else be most of a short answer's time, and more of it on a longer
/// way.
pub(crate) struct Awake([Child; 2]);

impl Awake {
    pub(crate) fn keep() -> Self {
        Self([MEASURED, REST].map(|core| {
            let mut command = Command::new("chrt");
            command.args(["--idle", "0", "taskset", "-c", &core.to_string()]);
            command.args(["sh", "-c", "while kill -0 $PPID; do :; done"]);
            command.stderr(Stdio::null()).spawn().expect("chrt and taskset (util-linux)")
        }))
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Both ends of thousands of connections are open in this process.
pub(crate) fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).expect("the limit of open files may be raised to its maximum");
}
