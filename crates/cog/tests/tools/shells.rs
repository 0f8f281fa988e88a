//! The scripts of `cog completions`, loaded by the shells they are for.

use std::process::Command;

/// Runs a script in a shell with the program on its path, and returns the output.
fn output_of(shell: &str, script: &str) -> String {
    let cog = std::path::Path::new(env!("CARGO_BIN_EXE_cog")).parent().unwrap();
    let path = std::env::join_paths([cog, "/usr/bin".as_ref(), "/bin".as_ref()]).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new(shell);
    command
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        .env("PATH", path)
        .env("HOME", home.path())
        .env("TERM", "xterm");
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
        complete_at() {
            COMP_WORDS=(cog "$@") COMP_CWORD=$# COMP_TYPE=9
            _clap_complete_cog cog "${@: -1}" "${COMP_WORDS[-2]}"
            echo "${COMPREPLY[@]}"
        }
        complete_at vali
        complete_at run x --prov
        complete_at run x --provider olla
        complete_at run x --provider openai,olla
        complete_at errors --format ""
        cog new my-module --in cognitive/modules > new.log 2>&1 || cat new.log
        complete_at run my-
        complete_at test my-module code-r
        complete_at verify a.json --module my
        complete_at run ./cogni
    "#;
    let output = output_of("bash", script);
    assert!(output.contains("-F _clap_complete_cog cog"), "{output}");
    let lines: Vec<&str> = output.lines().skip(1).collect();
    let expected = [
        "validate",
        "--provider",
        "ollama",
        "openai,ollama",
        "human json",
        "my-module",
        "code-reviewer",
        "my-module",
        "./cognitive/",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn fish_completes() {
    let script = r#"
        cog completions fish | source
        complete -C "cog vali"
        complete -C "cog run x --prov"
        complete -C "cog run x --provider olla"
        complete -C "cog run code-r"
    "#;
    let output = output_of("fish", script);
    let words: Vec<&str> = output.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["validate", "--provider", "ollama", "code-reviewer"]);
}

/// zsh completes only on a terminal, so a second zsh gets a terminal and a tab.
#[test]
fn zsh_completes() {
    let script = r#"
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell 'autoload -Uz compinit; compinit -u -D; source <(cog completions zsh)'
        zpty -w shell 'print -r re""ady'
        zpty -r -m shell output '*ready*'
        zpty -w shell $'cog vali\t--help'
        zpty -r -m shell output '*(Exit code 0 if all|unrecognized)*'
        print -r -- "$output"
        zpty -w shell $'cog info code-rev\t--format json'
        zpty -r -m shell output '*(user_invocable|E4006)*'
        print -r -- "$output"
    "#;
    let output = output_of("zsh", script);
    assert!(output.contains("Exit code 0 if all") && output.contains("user_invocable"), "{output}");
}
