//! A web site on this machine, with pages from a case.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use rustls::{
    ServerConfig, ServerConnection, Stream,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
};
use serde::Deserialize;
use serde_json::Value;

use crate::directory;

/// The certificate of `93.184.215.14`, a public address, for the host that a client reaches through the site as its proxy. Its
/// authority is `conformance/site/authority.pem`; nobody else trusts it.
const CERTIFICATE: &[u8] = include_bytes!("site/certificate.pem");
const KEY: &[u8] = include_bytes!("site/key.pem");

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

/// A site that runs until the case ends. It is also a proxy, behind which every host is this site, over TLS.
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

    /// Returns the requested paths, without queries, and the hosts that were requested through the site as a proxy.
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
) -> io::Result<()> {
    let head = read_head(&mut stream)?;
    if !head.starts_with("CONNECT ") {
        return stream.write_all(page(&head, pages, asked));
    }
    // A client may end here, if it does not trust the certificate.
    record(&head, asked);
    stream.write_all(b"HTTP/1.1 200 x\r\n\r\n")?;
    let mut connection = ServerConnection::new(tls()?).map_err(io::Error::other)?;
    let mut inside = Stream::new(&mut connection, &mut stream);
    let head = read_head(&mut inside)?;
    inside.write_all(page(&head, pages, asked))?;
    inside.conn.send_close_notify();
    inside.flush()
}

/// Returns the response to a request, and records it.
fn page<'a>(head: &str, pages: &'a BTreeMap<String, Vec<u8>>, asked: &Mutex<Vec<String>>) -> &'a [u8] {
    record(head, asked);
    let target = target(head);
    let missing = b"HTTP/1.1 404 x\r\nconnection: close\r\n\r\n".as_slice();
    // A page that is named with its query is only found with this query.
    let page = pages.get(target).or_else(|| pages.get(path(target)));
    page.map_or(missing, Vec::as_slice)
}

fn record(head: &str, asked: &Mutex<Vec<String>>) {
    asked.lock().unwrap_or_else(PoisonError::into_inner).push(path(target(head)).to_owned());
}

fn target(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

fn path(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}

fn read_head(stream: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte)? > 0 {
        head.extend(byte);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

fn tls() -> io::Result<Arc<ServerConfig>> {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE).map_err(io::Error::other)?;
    let key = PrivateKeyDer::from_pem_slice(KEY).map_err(io::Error::other)?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key);
    config.map(Arc::new).map_err(io::Error::other)
}
