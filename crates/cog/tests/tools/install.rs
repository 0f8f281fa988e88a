//! `install.sh` as a user runs it, against a server with a release.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

/// The programs that the script needs, without those that download or compute checksums.
const TOOLS: [&str; 12] =
    ["awk", "chmod", "cp", "gzip", "ln", "mkdir", "mktemp", "mv", "rm", "sed", "sh", "tar"];

/// The archive of the release.
const ARCHIVE: &str = "cog-1.2.3-linux-x86_64.tar.gz";

/// A release on a server of this machine, and the machine of a user.
struct Trial {
    directory: TempDir,
    url: String,
    environment: BTreeMap<&'static str, String>,
}

impl Trial {
    /// A release whose program prints its version, on a machine with these tools and a name.
    fn new(tools: &[&str], uname: (&str, &str)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("tools")).unwrap();
        let mut trial = Self { url: String::new(), environment: BTreeMap::new(), directory };
        for tool in TOOLS.iter().chain(tools) {
            trial.link(tool);
        }
        let (system, machine) = uname;
        trial.script("tools/uname", &format!("[ \"$1\" = -s ] && echo {system} || echo {machine}"));
        trial.release("echo cog 1.2.3");
        trial.url = serve(trial.path("release"));
        trial.set("COG_INSTALL_URL", trial.url.clone());
        trial.set("COG_INSTALL_VERSION", "1.2.3".to_owned());
        trial.set("HOME", trial.path("home").display().to_string());
        trial.set("PATH", trial.path("tools").display().to_string());
        trial
    }

    fn set(&mut self, variable: &'static str, value: String) {
        self.environment.insert(variable, value);
    }

    fn path(&self, path: &str) -> PathBuf {
        self.directory.path().join(path)
    }

    fn link(&self, tool: &str) {
        let found = printed(Command::new("sh").args(["-c", &format!("command -v {tool}")]));
        symlink(found.trim(), self.path("tools").join(tool)).unwrap();
    }

    fn script(&self, path: &str, text: &str) {
        let place = self.path(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(self.path(path), PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Packs a release as `cargo xtask dist` does.
    fn release(&self, program: &str) {
        self.script("built/cog", program);
        std::fs::create_dir_all(self.path("built/book/cli")).unwrap();
        std::fs::write(self.path("built/book/cli/run.html"), "<h1>cog run</h1>").unwrap();
        let archive = self.path("release").join(ARCHIVE);
        std::fs::create_dir_all(self.path("release")).unwrap();
        let mut pack = Command::new("python3");
        pack.arg(root().join("xtask/src/dist/pack.py")).arg(archive).args(["cog-1.2.3-linux-x86_64", "0"]);
        pack.arg(self.path("built/cog")).arg(root().join("README.md"));
        printed(pack.arg(format!("docs={}", self.path("built/book").display())));
        let sums = format!("{}  {ARCHIVE}\n", self.sha256());
        std::fs::write(self.path("release/SHA256SUMS"), sums).unwrap();
    }

    /// The checksum of the archive.
    fn sha256(&self) -> String {
        let line = printed(Command::new("sha256sum").arg(self.path("release").join(ARCHIVE)));
        line.split(' ').next().unwrap().to_owned()
    }

    /// The exit code and both outputs of the script.
    fn run(&self) -> (i32, String) {
        let output = Command::new(self.path("tools/sh"))
            .arg(root().join("install.sh"))
            .env_clear()
            .envs(&self.environment)
            .output()
            .unwrap();
        let texts = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(texts).unwrap())
    }

    /// Fails for this reason, and installs nothing.
    fn fails(&self, reason: &str) {
        let (code, text) = self.run();
        assert!(code == 1 && text.contains(reason), "{code} {text}");
        assert!(!self.path("home/.local/bin/cog").exists());
    }
}

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// What a program that succeeds prints.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?} {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Serves the files of a directory, and returns the URL.
fn serve(directory: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let directory = Arc::new(directory);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            send(stream, &directory);
        }
    });
    url
}

fn send(mut stream: TcpStream, directory: &Path) {
    let head: Vec<_> =
        BufReader::new(&stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = head[0].split(' ').nth(1).unwrap().trim_start_matches('/');
    let (status, body) = match std::fs::read(directory.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(&[head.into_bytes(), body].concat());
}

const LINUX: (&str, &str) = ("Linux", "x86_64");
const USUAL: [&str; 2] = ["curl", "sha256sum"];

#[test]
fn both_programs_are_installed_for_the_user() {
    let trial = Trial::new(&USUAL, LINUX);
    let (code, text) = trial.run();
    let place = trial.path("home/.local/bin");
    assert_eq!(
        (code, text),
        (0, format!("Installed cog 1.2.3 in {0}.\nAdd {0} to PATH.\n", place.display()))
    );
    for name in ["cog", "cogn"] {
        assert_eq!(printed(&mut Command::new(place.join(name))), "cog 1.2.3\n");
    }
    // The same again replaces them, and the documentation of an older version.
    let share = trial.path("home/.local/share/cog");
    std::fs::rename(share.join("cog-1.2.3-docs"), share.join("cog-1.2.2-docs")).unwrap();
    assert_eq!(trial.run().0, 0);
    assert_eq!(std::fs::read_dir(place).unwrap().count(), 2);
    assert_eq!(std::fs::read_dir(&share).unwrap().count(), 1);
    let page = std::fs::read_to_string(share.join("cog-1.2.3-docs/cli/run.html")).unwrap();
    assert_eq!(page, "<h1>cog run</h1>");
}

#[test]
fn directory_and_version_can_be_chosen() {
    let mut trial = Trial::new(&USUAL, LINUX);
    let place = trial.path("my programs").display().to_string();
    trial.set("COG_INSTALL_DIR", place.clone());
    trial.set("COG_INSTALL_VERSION", "v1.2.3".to_owned());
    let url = trial.url.clone();
    std::fs::rename(trial.path("release"), trial.path("files")).unwrap();
    std::fs::create_dir_all(trial.path("release")).unwrap();
    std::fs::rename(trial.path("files"), trial.path("release/v1.2.3")).unwrap();
    trial.set("COG_INSTALL_URL", format!("{url}/v{{version}}"));
    trial.set("PATH", format!("{}:{place}", trial.path("tools").display()));
    assert_eq!(trial.run(), (0, format!("Installed cog 1.2.3 in {place}.\n")));
    assert!(trial.path("share/cog/cog-1.2.3-docs/cli/run.html").exists());
}

#[test]
fn other_tools_do_the_same() {
    let trial = Trial::new(&["wget", "shasum", "perl"], LINUX);
    assert_eq!(trial.run().0, 0);
}

#[test]
fn an_archive_with_another_checksum_is_not_installed() {
    let trial = Trial::new(&USUAL, LINUX);
    let expected = trial.sha256();
    std::fs::write(trial.path("release").join(ARCHIVE), "something else").unwrap();
    let found = trial.sha256();
    trial.fails(&format!("the checksum of {ARCHIVE} is {found}, not {expected}; nothing was installed"));
    std::fs::write(trial.path("release/SHA256SUMS"), "").unwrap();
    trial.fails(&format!("SHA256SUMS does not list {ARCHIVE}; nothing was installed"));
}

#[test]
fn an_unknown_platform_is_named() {
    Trial::new(&USUAL, ("FreeBSD", "amd64"))
        .fails("install.sh: there is no archive for FreeBSD on amd64; see");
    Trial::new(&USUAL, ("Linux", "riscv64")).fails("there is no archive for Linux on riscv64");
    Trial::new(&USUAL, ("MINGW64_NT-10.0", "x86_64")).fails("MINGW64_NT-10.0 on x86_64");
}

#[test]
fn missing_tools_are_named() {
    Trial::new(&["sha256sum"], LINUX).fails("curl or wget is needed, and neither was found");
    Trial::new(&["curl"], LINUX).fails("sha256sum or shasum is needed, and neither was found");
    let trial = Trial::new(&USUAL, LINUX);
    std::fs::remove_file(trial.path("tools/tar")).unwrap();
    trial.fails("tar is needed, and was not found");
}

#[test]
fn a_version_that_is_not_there_is_an_error() {
    let mut trial = Trial::new(&USUAL, LINUX);
    trial.set("COG_INSTALL_VERSION", "9.9.9".to_owned());
    trial.fails(&format!("cannot download {}/cog-9.9.9-linux-x86_64.tar.gz", trial.url));
}

#[test]
fn a_program_that_does_not_start_is_not_installed() {
    let trial = Trial::new(&USUAL, LINUX);
    trial.release("exit 7");
    trial.fails("cog-1.2.3-linux-x86_64 does not start on this machine; nothing was installed");
}

#[test]
fn a_script_that_is_not_of_a_release_needs_both_variables() {
    let mut trial = Trial::new(&USUAL, LINUX);
    trial.environment.remove("COG_INSTALL_VERSION");
    trial.fails("this script is not of a release: set COG_INSTALL_VERSION");
    trial.environment.remove("COG_INSTALL_URL");
    trial.fails("this script is not of a release: set COG_INSTALL_URL");
}
