//! Metrics of the process, with the names that the clients of Prometheus give them. Only Linux tells them.

use std::{fmt::Write as _, path::Path};

use cog_module::files::read_text;

/// The maximum size of a file of the kernel.
const MAX_FILE: u64 = 1 << 20;

/// The unit of times in `/proc`: Linux shows hundredths of a second on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// The end of an OpenMetrics text.
const END: &str = "# EOF\n";

/// Adds the metrics of this process before the end of a text.
pub(super) fn with_process(text: String) -> String {
    let Some(found) = Process::read() else { return text };
    let mut text = text.strip_suffix(END).unwrap_or(&text).to_owned();
    let values = [
        ("process_cpu_seconds", "counter", "Processor time, user and system", found.cpu_seconds),
        ("process_resident_memory_bytes", "gauge", "Memory in use", found.memory_bytes),
        ("process_open_fds", "gauge", "Open files and connections", found.open_files),
        ("process_start_time_seconds", "gauge", "Start of the process, in seconds since 1970", found.started),
    ];
    for (name, kind, help, value) in values {
        let suffix = if kind == "counter" { "_total" } else { "" };
        // Writing to a string does not fail.
        let _ = write!(text, "# HELP {name} {help}.\n# TYPE {name} {kind}\n{name}{suffix} {value}\n");
    }
    text + END
}

struct Process {
    cpu_seconds: f64,
    memory_bytes: f64,
    open_files: f64,
    started: f64,
}

impl Process {
    /// Reads `/proc`; none where it does not exist.
    fn read() -> Option<Self> {
        let stat = read("/proc/self/stat")?;
        // The second field is the name of the program in brackets, which may contain spaces. Field 3 follows it.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let boot = line(&read("/proc/stat")?, "btime")?;
        let status = read("/proc/self/status")?;
        Some(Self {
            cpu_seconds: (field(14)? + field(15)?) / TICKS_PER_SECOND,
            memory_bytes: line(&status, "VmRSS:")? * 1024.0,
            open_files: f64::from(u32::try_from(Path::new("/proc/self/fd").read_dir().ok()?.count()).ok()?),
            started: boot + field(22)? / TICKS_PER_SECOND,
        })
    }
}

fn read(path: &str) -> Option<String> {
    read_text(Path::new(path), MAX_FILE).ok()
}

/// Returns the number after a word at the beginning of a line.
fn line(text: &str, word: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(word)?.split_whitespace().next()?.parse().ok())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn process_is_described_before_the_end() {
        let text = with_process("a 1\n# EOF\n".to_owned());
        assert!(
            text.starts_with("a 1\n# HELP process_cpu_seconds ") && text.ends_with("\n# EOF\n"),
            "{text}"
        );
        assert_eq!(text.matches(END).count(), 1);
        let found = Process::read().unwrap();
        assert!(found.memory_bytes > 1e6 && found.open_files >= 3.0 && found.started > 1.7e9);
    }
}
