//! Prints the JSON Schemas of this crate, one document per line. `cargo xtask generate` writes them to `schemas/`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for (name, schema) in cog_spec::schema::documents() {
        writeln!(out, "{}", serde_json::json!({ "name": name, "schema": schema }))?;
    }
    Ok(())
}
