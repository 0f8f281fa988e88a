//! The platforms of a release.

use std::process::Command;

use crate::project::{Outcome, capture};

/// A platform for which a release has an archive.
#[derive(Debug)]
pub(crate) struct Platform {
    /// The target of the compiler.
    pub(super) target: &'static str,
    /// Its name in the names of archives, and in `install.sh`.
    pub(super) name: &'static str,
    /// The architecture of its image, as Docker names it.
    pub(super) image: Option<&'static str>,
}

const PLATFORMS: [Platform; 5] = [
    Platform { target: "x86_64-unknown-linux-gnu", name: "linux-x86_64", image: Some("amd64") },
    Platform { target: "aarch64-unknown-linux-gnu", name: "linux-arm64", image: Some("arm64") },
    Platform { target: "x86_64-apple-darwin", name: "macos-x86_64", image: None },
    Platform { target: "aarch64-apple-darwin", name: "macos-arm64", image: None },
    Platform { target: "x86_64-pc-windows-msvc", name: "windows-x86_64", image: None },
];

impl Platform {
    /// That of the compiler.
    pub(super) fn host() -> Outcome<Self> {
        let about = capture(Command::new("rustc").arg("-vV"))?;
        let host = about.lines().find_map(|line| line.strip_prefix("host: "));
        let host = host.ok_or("rustc names no host")?;
        let platform = PLATFORMS.into_iter().find(|platform| platform.target == host);
        platform.ok_or_else(|| {
            format!(
                "a release has nothing for {host}, only for {}",
                PLATFORMS.map(|one| one.target).join(", ")
            )
        })
    }

    pub(super) fn is_linux(&self) -> bool {
        self.target.contains("linux")
    }

    /// Has the C library linked into the binary.
    pub(super) fn make_static<'a>(&self, build: &'a mut Command) -> &'a mut Command {
        let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", self.target.to_uppercase().replace('-', "_"));
        build.env(variable, self.flags().join(" "))
    }

    fn flags(&self) -> &'static [&'static str] {
        const STATIC: &str = "-Ctarget-feature=+crt-static";
        // By default, the crate looks for this function among the shared libraries, and needs /dev/urandom without them.
        const RANDOM: &str = r#"--cfg=getrandom_backend="linux_getrandom""#;
        // Linux on x86-64 is linked with LLD: it packs relative relocations, and keeps one of equal functions.
        const PACKED: &str = "-Clink-args=-Wl,-z,pack-relative-relocs,--icf=all";
        if self.target == "x86_64-unknown-linux-gnu" {
            &[STATIC, RANDOM, PACKED]
        } else if self.is_linux() {
            &[STATIC, RANDOM]
        } else if self.is_windows() {
            &[STATIC]
        } else {
            // The libraries of macOS cannot be linked into a program.
            &[]
        }
    }

    /// The file name of the program.
    pub(super) fn program(&self) -> &'static str {
        if self.is_windows() { "cog.exe" } else { "cog" }
    }

    /// The file extension of its archive.
    pub(super) fn archive(&self) -> &'static str {
        if self.is_windows() { "zip" } else { "tar.gz" }
    }

    fn is_windows(&self) -> bool {
        self.target.contains("windows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::read;

    #[test]
    fn script_and_workflow_know_the_platforms() {
        let (script, workflow) =
            (read("install.sh").unwrap(), read(".github/workflows/release.yml").unwrap());
        for platform in PLATFORMS {
            assert!(workflow.contains(platform.target), "{}", platform.target);
            assert_eq!(script.contains(&format!("echo {} ;;", platform.name)), !platform.is_windows());
        }
    }

    #[test]
    fn flags_of_the_compiler_depend_on_the_platform() {
        let flags = |platform: &Platform| {
            let mut command = Command::new("cargo");
            let mut variables = platform.make_static(&mut command).get_envs();
            let (name, value) = variables.next().unwrap();
            format!("{}={}", name.display(), value.unwrap().display())
        };
        let [linux, arm, macos, ..] = &PLATFORMS;
        let random = r#"--cfg=getrandom_backend="linux_getrandom""#;
        let packed = "-Clink-args=-Wl,-z,pack-relative-relocs,--icf=all";
        assert_eq!(
            flags(linux),
            format!(
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+crt-static {random} {packed}"
            )
        );
        assert_eq!(
            flags(arm),
            format!("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Ctarget-feature=+crt-static {random}")
        );
        assert_eq!(flags(macos), "CARGO_TARGET_X86_64_APPLE_DARWIN_RUSTFLAGS=");
    }
}
