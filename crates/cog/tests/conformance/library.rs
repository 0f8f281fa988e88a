//! A program that runs a module with the library (SPEC 10.2), for the cases whose `program` is `library`.

use std::{
    error::Error,
    io::{Write as _, stdout},
};

use cog_run::{RunInput, RunOptions, ToJson as _, Value};

/// `MODULE INPUT [--stream]`: prints the envelope, or the chunks, one on each line.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = words.collect();
    let [module, input, options @ ..] = words.as_slice() else {
        return Err("usage: MODULE INPUT [--stream]".into());
    };
    let runtime = cog_host::runtime_from_env()?;
    let module = runtime.load(module.as_str())?;
    let input = RunInput::from(Value::parse(input)?);
    if options.is_empty() {
        let envelope = runtime.run(&module, input, RunOptions::default()).await;
        writeln!(stdout(), "{}", envelope.to_json())?;
        return Ok(());
    }
    let stream = runtime.stream(&module, input, RunOptions::default());
    let mut stream = stream.map_err(|refused| refused.to_json())?;
    while let Some(chunk) = stream.next().await {
        writeln!(stdout(), "{}", chunk.to_json())?;
    }
    Ok(())
}
