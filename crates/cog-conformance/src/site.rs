//! A web site on this machine, with pages from a case.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use serde::Deserialize;
use serde_json::Value;

use crate::directory;

/// A page.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// As the content of a file of the case.
    #[serde(default)]
    body: Value,
}

const fn ok() -> u16 {
    200
}

/// A site that runs until the case ends.
pub(crate) struct Site {
    /// `127.0.0.1:PORT`.
    pub(crate) host: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Starts the site. `{site}` in its headers is its own URL.
    pub(crate) fn start(pages: &BTreeMap<String, Page>) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
        let host = listener.local_addr().map_err(|error| error.to_string())?.to_string();
        let written: BTreeMap<String, Vec<u8>> = pages
            .iter()
            .map(|(path, page)| Ok((path.clone(), response(page, &host)?)))
            .collect::<Result<_, String>>()?;
        let site = Self { host, asked: Arc::default() };
        let asked = Arc::clone(&site.asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client may disconnect early.
                let _ = answer(stream, &written, &asked);
            }
        });
        Ok(site)
    }

    /// Returns the requested paths, without queries.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn response(page: &Page, host: &str) -> Result<Vec<u8>, String> {
    let body = if page.body.is_null() { Vec::new() } else { directory::bytes_of(&page.body)? };
    let mut response = format!("HTTP/1.1 {} x\r\nconnection: close\r\n", page.status);
    for (name, value) in &page.headers {
        response += &format!("{name}: {}\r\n", value.replace("{site}", &format!("http://{host}")));
    }
    Ok([response.as_bytes(), b"\r\n", &body].concat())
}

fn answer(
    mut stream: TcpStream,
    pages: &BTreeMap<String, Vec<u8>>,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    let missing = b"HTTP/1.1 404 x\r\nconnection: close\r\n\r\n".as_slice();
    // A page that is named with its query is only found with this query.
    let page = pages.get(target).or_else(|| pages.get(path));
    stream.write_all(page.map_or(missing, Vec::as_slice))
}
