//! `cargo xtask types`: what `cog types` prints, compiled by mypy, tsc, rustc and go.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::clients::node;
use crate::project::{
    Outcome, capture, cargo, emptied, execute, programs, read, read_json, root, say, target_directory,
    tracked, write_new,
};
use crate::test::python;

/// Check Python. `typing_extensions` is needed before Python 3.11.
const PYTHON: &[&str] = &["mypy==2.4.1", "pyright[nodejs]==1.1.414", "typing_extensions"];
/// Checks TypeScript.
const NODE: &[&str] = &["typescript@7.0.2"];

/// Modules with every form of schema, their answers, and programs that use the types.
const FIXTURES: &str = "crates/cog/tests/types";

/// The modules there.
const OWN: [&str; 2] = ["every-type", "list"];

/// The package whose functions the printed Python calls.
const PACKAGE: &str = "crates/cog-py/python";

/// The types in the program of `cargo xtask outside`.
const OUTSIDE: &str = "examples/outside/modules.rs";

/// Prints the types of every module in each language, and compiles them.
pub(crate) fn check() -> Outcome {
    let printer = Printer::new()?;
    check_python(&printer)?;
    check_typescript(&printer)?;
    check_rust(&printer)?;
    check_go(&printer)?;
    say(format_args!("types: the types of {} modules compile", printer.modules.len()));
    Ok(())
}

/// `cog`, and the modules whose types it prints.
struct Printer {
    program: PathBuf,
    modules: Vec<String>,
    directory: PathBuf,
}

impl Printer {
    fn new() -> Outcome<Self> {
        let mut modules: Vec<String> = shipped()?;
        modules.extend(OWN.map(|name| root().join(FIXTURES).join(name).display().to_string()));
        let program = programs()?.join("cog");
        Ok(Self { program, modules, directory: emptied("types")? })
    }

    /// Prints the types to a file, and returns its path.
    fn print(&self, language: &str, file: &str, more: &[&str]) -> Outcome<PathBuf> {
        let path = self.directory.join(file);
        write_new(&path, "")?;
        let mut command = Command::new(&self.program);
        command.arg("types").args(&self.modules).args(["--lang", language, "--output"]).arg(&path).args(more);
        execute(&mut command)?;
        Ok(path)
    }
}

/// Returns the names of the modules that ship.
fn shipped() -> Outcome<Vec<String>> {
    let listed = tracked("modules", "/schema.json")?;
    let names = listed.iter().filter_map(|path| path.split('/').nth(1));
    let names: Vec<String> = names.map(str::to_owned).collect();
    if names.is_empty() { Err("modules/ has no module".to_owned()) } else { Ok(names) }
}

/// The types are checked as mypy and pyright do in strict mode, and loaded by the interpreter.
fn check_python(printer: &Printer) -> Outcome {
    let interpreter = python(PYTHON)?;
    printer.print("python", "modules.py", &[])?;
    let plain = printer.print("python", "only_types.py", &["--types-only"])?;
    execute(Command::new(&interpreter).arg(plain).env("PYTHONDONTWRITEBYTECODE", "1"))?;
    let directory = &printer.directory;
    let mut stubs = Command::new(&printer.program);
    execute(stubs.arg("types").args(&printer.modules).arg("--stubs").arg(directory.join("typings")))?;
    write_new(directory.join("use.py"), &read(format!("{FIXTURES}/use.py"))?)?;
    let package = root().join(PACKAGE).display().to_string();
    let here = directory.display();
    // The package imports the stub if there is one, and IPython in notebooks only.
    let settings = format!(
        "[mypy]\nstrict = True\ncache_dir = {here}/cache\nmypy_path = {here}:{here}/typings:{package}\n\
         [mypy-cognitive.modules]\nwarn_unused_ignores = False\n\
         [mypy-IPython.*]\nignore_missing_imports = True\n"
    );
    write_new(directory.join("mypy.ini"), &settings)?;
    let mut mypy = Command::new(&interpreter);
    mypy.args(["-m", "mypy", "--config-file"]).arg(directory.join("mypy.ini"));
    let files = ["modules.py", "only_types.py", "use.py", "typings/cognitive_modules.pyi"];
    execute(mypy.args(files.map(|file| directory.join(file))))?;
    let settings = format!(
        "{{\"include\": [\".\"], \"extraPaths\": [{package:?}], \"stubPath\": \"typings\", \"typeCheckingMode\": \"strict\"}}"
    );
    write_new(directory.join("pyrightconfig.json"), &settings)?;
    execute(Command::new(&interpreter).args(["-m", "pyright", "--project"]).arg(directory))
}

fn check_typescript(printer: &Printer) -> Outcome {
    let modules = node(NODE)?;
    let file = printer.print("typescript", "modules.ts", &[])?;
    write_new(printer.directory.join("use.ts"), &read(format!("{FIXTURES}/use.ts"))?)?;
    let mut compiler = Command::new("node");
    compiler.arg(modules.join("typescript/bin/tsc")).args([
        "--strict",
        "--noEmit",
        "--exactOptionalPropertyTypes",
    ]);
    compiler.args([
        "--noUncheckedIndexedAccess",
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--types",
        "",
    ]);
    execute(compiler.arg(file).arg(printer.directory.join("use.ts")))
}

/// The types are compiled with a program that reads every golden answer and writes it again. `cargo xtask outside`
/// compiles the functions, which need more crates.
fn check_rust(printer: &Printer) -> Outcome {
    let mut outside = Command::new(&printer.program);
    outside.args(["types", "text-writer", "--lang", "rust", "--check", "--output", OUTSIDE]);
    execute(&mut outside)?;
    let project = printer.directory.join("rust");
    write_new(project.join("src/main.rs"), &program()?)?;
    let manifest = "[package]\nname = \"types\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
                    serde = { version = \"1\", features = [\"derive\"] }\nserde_json = \"1\"\n";
    write_new(project.join("Cargo.toml"), manifest)?;
    write_new(project.join("Cargo.lock"), &read("Cargo.lock")?)?;
    printer.print("rust", "rust/src/modules.rs", &["--types-only"])?;
    let mut run = cargo();
    run.args(["run", "--quiet", "--manifest-path"]).arg(project.join("Cargo.toml"));
    let printed = capture(run.arg("--target-dir").arg(target_directory()?))?;
    say(format_args!("types: {}", printed.trim()));
    Ok(())
}

/// The types are checked by `go vet`, and tested with a program that calls a module, and reads every golden answer and writes it again.
fn check_go(printer: &Printer) -> Outcome {
    let directory = printer.directory.join("go");
    write_new(directory.join("go.mod"), "module modules\n\ngo 1.18\n")?;
    write_new(directory.join("use_test.go"), &read(format!("{FIXTURES}/use_test.go"))?)?;
    write_new(directory.join("answers_test.go"), &go_test()?)?;
    printer.print("go", "go/modules.go", &[])?;
    for arguments in [["vet", "./..."], ["test", "./..."]] {
        // Go runs in the directory of its module; its own option for that is younger than the Go of Debian 12.
        let mut go = Command::new("env");
        execute(go.arg("-C").arg(&directory).arg("GOPROXY=off").arg("go").args(arguments))?;
    }
    Ok(())
}

/// Returns a test that reads answers with the printed types.
fn go_test() -> Outcome<String> {
    let mut checks = String::new();
    for (module, data) in answers()? {
        let kind: String = module.split('_').map(capitalized).collect();
        // A string literal of JSON is one of Go too.
        let text = Value::from(data.to_string());
        let _ = writeln!(checks, "\tcheck[{kind}Data](t, {text})");
    }
    for (name, lost) in OWN.into_iter().zip([", \".mixed_fields.more\"", ""]) {
        let text = Value::from(read_json(format!("{FIXTURES}/{name}/answer.json"))?.to_string());
        let kind: String = name.split('-').map(capitalized).collect();
        let _ = writeln!(checks, "\tcheck[{kind}Data](t, {text}{lost})");
    }
    Ok(GO_TEST.replace("CHECKS", &checks))
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Returns a program that reads answers with the printed types.
fn program() -> Outcome<String> {
    let mut answers = answers()?;
    for name in OWN {
        answers.push((name.replace('-', "_"), read_json(format!("{FIXTURES}/{name}/answer.json"))?));
    }
    let mut checks = String::new();
    for (module, data) in &answers {
        let data = data.to_string();
        let _ = writeln!(checks, "    check::<modules::{module}::Data>({module:?}, {data:?});");
    }
    Ok(PROGRAM.replace("CHECKS", &checks).replace("COUNT", &answers.len().to_string()))
}

/// Returns the data of the golden answers of the modules that ship, each with the name of the module in Rust.
fn answers() -> Outcome<Vec<(String, Value)>> {
    let mut found = Vec::new();
    for path in tracked("modules", ".expected.json")? {
        let answer = read_json(&path)?;
        let data = answer.pointer("/$example/data").or_else(|| answer.get("data"));
        if let (Some(module), Some(data)) = (path.split('/').nth(1), data) {
            found.push((module.replace('-', "_"), data.clone()));
        }
    }
    Ok(found)
}

/// Numbers are compared by value, since the types read `1` as a number.
const PROGRAM: &str = r#"#![deny(warnings)]

mod modules;

fn check<T: serde::Serialize + serde::de::DeserializeOwned>(name: &str, text: &str) {
    let read: T = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let before: serde_json::Value = serde_json::from_str(text).unwrap();
    let after = serde_json::to_value(&read).unwrap();
    assert_eq!(plain(before), plain(after), "{name}");
}

fn plain(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(number) => number.as_f64().into(),
        serde_json::Value::Array(items) => items.into_iter().map(plain).collect(),
        serde_json::Value::Object(members) => members.into_iter().map(|(key, value)| (key, plain(value))).collect(),
        other => other,
    }
}

fn main() {
CHECKS    println!("COUNT answers are read and written without a loss");
}
"#;

/// What is not in the types, or is empty and optional, is lost.
const GO_TEST: &str = r#"package modules

import (
	"encoding/json"
	"reflect"
	"testing"
)

func check[T any](t *testing.T, text string, expected ...string) {
	t.Helper()
	var data T
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	written, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	var before, after any
	if json.Unmarshal([]byte(text), &before) != nil || json.Unmarshal(written, &after) != nil {
		t.Fatal(string(written))
	}
	if found := lost("", before, after); !reflect.DeepEqual(found, expected) {
		t.Fatalf("%T: lost %q, expected %q", data, found, expected)
	}
}

// lost returns the paths of the values that are not in the second document.
func lost(path string, before, after any) []string {
	var paths []string
	switch before := before.(type) {
	case map[string]any:
		members, _ := after.(map[string]any)
		for key, value := range before {
			paths = append(paths, lost(path+"."+key, value, members[key])...)
		}
	case []any:
		items, _ := after.([]any)
		for at, value := range before {
			if at >= len(items) {
				return append(paths, path)
			}
			paths = append(paths, lost(path, value, items[at])...)
		}
	default:
		if !reflect.DeepEqual(before, after) {
			paths = append(paths, path)
		}
	}
	return paths
}

func TestAnswers(t *testing.T) {
CHECKS}
"#;
