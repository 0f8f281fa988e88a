//! A mock server of model providers, for programs in other languages.
//!
//! Reads JSON from standard input: a reply or an array of replies, as `cog_testkit::Reply::from_json` describes them. Prints
//! its URL, then serves until it is killed.
//!
//! ```text
//! $ echo '{"text": {"ok": true}}' | cargo run -q -p cog-testkit --bin cog-mock
//! http://127.0.0.1:40123
//! ```

use std::{
    io::{Read, Write, stdin, stdout},
    process::ExitCode,
};

use cog_testkit::{Mock, Reply};
use serde_json::Value;

fn main() -> ExitCode {
    match start() {
        Ok(_mock) => loop {
            std::thread::park();
        },
        Err(message) => {
            let _ = writeln!(std::io::stderr(), "cog-mock: {message}");
            ExitCode::from(2)
        }
    }
}

fn start() -> Result<Mock, String> {
    let mut script = String::new();
    stdin().read_to_string(&mut script).map_err(|error| error.to_string())?;
    let script: Value = serde_json::from_str(&script).map_err(|error| error.to_string())?;
    let replies = match script {
        Value::Array(replies) => replies.iter().map(Reply::from_json).collect::<Result<Vec<_>, _>>()?,
        reply => vec![Reply::from_json(&reply)?],
    };
    let mock = Mock::try_start(replies).map_err(|error| error.to_string())?.forgetting();
    writeln!(stdout(), "{}", mock.url()).map_err(|error| error.to_string())?;
    Ok(mock)
}
