//! Embeds the modules that ship: writes a table of `include_bytes!` over the directories in `modules/`.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("modules").canonicalize()?;
    let mut table = String::from("static SHIPPED: &[BuiltinModule] = &[\n");
    for directory in sorted_entries(&modules)?.into_iter().filter(|path| path.is_dir()) {
        let name =
            directory.file_name().and_then(|name| name.to_str()).ok_or("a directory's name is not text")?;
        writeln!(table, "    BuiltinModule {{ name: {name:?}, files: &[")?;
        write_files(&mut table, &directory, &directory)?;
        table.push_str("    ] },\n");
    }
    table.push_str("];\n");
    write_table(&table)
}

fn write_files(table: &mut String, root: &Path, directory: &Path) -> Result<(), Box<dyn Error>> {
    for path in sorted_entries(directory)? {
        if path.is_dir() {
            write_files(table, root, &path)?;
        } else {
            let relative =
                path.strip_prefix(root)?.to_str().ok_or("a file's name is not text")?.replace('\\', "/");
            writeln!(table, "        ({relative:?}, include_bytes!({path:?})),")?;
        }
    }
    Ok(())
}

fn sorted_entries(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    watch(directory);
    let mut paths = fs::read_dir(directory)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    Ok(paths)
}

fn watch(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

#[expect(clippy::disallowed_methods, reason = "a build script gets its output directory from a variable")]
fn write_table(table: &str) -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    Ok(fs::write(directory.join("shipped.rs"), table)?)
}
