//! The scripts of `cog completions`, loaded by the shells they are for.

use std::process::Command;

/// Runs a script in a shell with the program on its path, and returns the output.
fn told_by(shell: &str, script: &str) -> String {
    let cog = std::path::Path::new(env!("CARGO_BIN_EXE_cog")).parent().unwrap();
    let path = std::env::join_paths([cog, "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(shell);
    command.env_clear().env("PATH", path).env("HOME", home.path()).env("TERM", "xterm");
    let output = command.args(["-c", script]).current_dir(home.path()).output();
    let output = output.unwrap_or_else(|error| panic!("{shell} (Debian: apt-get install {shell}): {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && err.is_empty(), "{shell}: {out}{err}");
    out.into_owned()
}

#[test]
fn bash_completes() {
    let script = r#"
        source <(cog completions bash)
        complete -p cog
        complete_at() { COMP_WORDS=(cog "$@"); COMP_CWORD=$#; _cog cog "${@: -1}" "${COMP_WORDS[-2]}"; echo "${COMPREPLY[@]}"; }
        complete_at vali
        complete_at run x --prov
        complete_at run x --provider olla
        complete_at errors --format ""
    "#;
    let told = told_by("bash", script);
    let lines: Vec<&str> = told.lines().skip(1).collect();
    assert!(told.contains("-F _cog cog"), "{told}");
    assert_eq!(lines, ["validate", "--provider", "ollama", "human json"]);
}

#[test]
fn fish_completes() {
    let script = r#"
        cog completions fish | source
        complete -C "cog vali"
        complete -C "cog run x --prov"
        complete -C "cog run x --provider olla"
    "#;
    let told = told_by("fish", script);
    let words: Vec<&str> = told.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["validate", "--provider", "ollama"]);
}

/// zsh completes only on a terminal, so a second zsh gets a terminal and a tab.
#[test]
fn zsh_completes() {
    let script = r#"
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell 'autoload -Uz compinit; compinit -u -D; source <(cog completions zsh)'
        zpty -w shell 'cog() { print -r "ran: $*." }; print -r re""ady'
        zpty -r -m shell told '*ready*'
        zpty -w shell $'cog vali\t'
        zpty -r -m shell told '*ran: *.*'
        print -r -- "$told"
    "#;
    assert!(told_by("zsh", script).contains("ran: validate."));
}
