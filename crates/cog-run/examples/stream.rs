//! Streams an answer chunk by chunk: `cargo run -p cog-run --example stream`.
#![expect(clippy::print_stdout, reason = "an example prints its answer")]

use std::error::Error;

use cog_run::{Chunk, RunInput, RunOptions, Runtime};

async fn lines(code: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let runtime = Runtime::offline();
    let module = runtime.load("code-reviewer")?;
    let mut stream = runtime.stream(&module, RunInput::text(code), RunOptions::default())?;
    let mut lines = Vec::new();
    while let Some(chunk) = stream.next().await {
        lines.push(match chunk {
            Chunk::Delta { field, delta, .. } => format!("{field} += {delta}"),
            Chunk::Snapshot { field, data, .. } => format!("{} = {data}", field.unwrap_or_default()),
            Chunk::Error { error, .. } => return Err(error),
            other => other.event_name().to_owned(),
        });
    }
    Ok(lines)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for line in lines("fn main() {}").await? {
        println!("{line}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn stream_begins_with_meta_and_ends_with_final() {
        let lines = super::lines("fn main() {}").await.unwrap();
        assert_eq!((lines[0].as_str(), lines.last().unwrap().as_str()), ("meta", "final"));
        assert!(lines.iter().any(|line| line.starts_with("data.rationale += ")), "{lines:?}");
    }
}
