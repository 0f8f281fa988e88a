//! A program on a core of its own, and what it costs.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};

use crate::cores;

/// A running server; it ends when this is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: std::net::SocketAddr,
}

impl Process {
    /// Starts the command on the measured core, and reads its address from what it says on stderr.
    pub(crate) fn start(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", &cores::MEASURED.to_string(), program]).args(arguments);
        command.env_clear().envs(environment.iter().copied());
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("taskset (util-linux)");
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "{program} {arguments:?} printed no URL");
            if let Some(address) = address_in(&line) {
                break address;
            }
        };
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Self { child, address }
    }

    /// Resident memory, in KiB.
    pub(crate) fn resident(&self) -> f64 {
        self.status("VmRSS:")
    }

    /// The peak of resident memory so far, in KiB.
    pub(crate) fn peak(&self) -> f64 {
        self.status("VmHWM:")
    }

    /// A line of the status of the process.
    fn status(&self, key: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Processor time used so far, in clock ticks of the system.
    pub(crate) fn ticks(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let after_name = stat.rsplit(')').next().unwrap();
        let fields: Vec<&str> = after_name.split_whitespace().collect();
        // Fields 14 and 15 of the whole line: time in user mode and in the kernel.
        fields.iter().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The address after `http://`.
fn address_in(line: &str) -> Option<std::net::SocketAddr> {
    let (_, after) = line.split_once("http://")?;
    let end = after
        .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | ':'))
        .unwrap_or(after.len());
    after.get(..end)?.parse().ok()
}
