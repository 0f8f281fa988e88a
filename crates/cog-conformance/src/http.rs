//! An HTTP client that shows what a library would hide: every header, the chunks of the body, and its end.

use std::{
    io::{BufRead, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use cog_provider::{PlainClient, PlainRequest};
use serde_json::{Map, Value};

use crate::{
    server::{PATIENCE, Server},
    stream::{Stream, read_events, read_lines},
};

/// The time limit for a request to another runtime.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The maximum bytes of its response.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The server that requests are sent to.
pub(crate) enum Endpoint {
    /// `cog serve`, which the case started.
    Server(Server),
    /// Another runtime, possibly over TLS.
    Remote(Remote),
}

/// A runtime at a URL.
pub(crate) struct Remote {
    /// The URL before `/v1`, without a final slash.
    url: String,
    client: PlainClient,
    events: tokio::runtime::Runtime,
}

impl Remote {
    /// Creates a client for a URL.
    ///
    /// # Errors
    /// The reason why the URL cannot be used.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let url = url.trim_end_matches('/').to_owned();
        let client = PlainClient::new(&url, TIMEOUT, MAX_BYTES)?;
        let events = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self { url, client, events: events.map_err(|error| error.to_string())? })
    }

    fn send(&self, request: &Request) -> Result<Response, String> {
        let sent = PlainRequest {
            method: request.method.clone(),
            url: format!("{}{}", self.url, request.target),
            headers: request.headers.clone(),
            body: request.body.clone(),
        };
        let received = self.events.block_on(self.client.send(&sent))?;
        let headers = received.headers.into_iter().map(|(name, value)| (name, Value::from(value)));
        Ok(Response {
            status: received.status,
            headers: headers.collect(),
            reader: Box::new(std::io::empty()),
            frame: Frame::Ended,
            body: received.body,
        })
    }
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// The path and the query.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A response whose body may be incomplete.
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Map<String, Value>,
    reader: Box<dyn BufRead>,
    frame: Frame,
    body: Vec<u8>,
}

/// The framing of a body.
#[derive(Debug, Clone, Copy)]
enum Frame {
    Length(usize),
    Chunked,
    Closed,
    Ended,
}

impl Request {
    /// Sends the request and reads the response headers.
    pub(crate) fn send(&self, endpoint: &Endpoint) -> Result<Response, String> {
        match endpoint {
            Endpoint::Server(server) => self
                .try_send(&server.address)
                .map_err(|error| format!("{} {}: {error}", self.method, self.target)),
            Endpoint::Remote(remote) => remote.send(self),
        }
    }

    fn try_send(&self, address: &str) -> std::io::Result<Response> {
        let mut connection = TcpStream::connect(address)?;
        connection.set_read_timeout(Some(PATIENCE))?;
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.has_header("host") {
            head += &format!("host: {address}\r\n");
        }
        if !self.has_header("content-length")
            && !self.has_header("transfer-encoding")
            && (!self.body.is_empty() || self.method == "POST")
        {
            head += &format!("content-length: {}\r\n", self.body.len());
        }
        self.headers.iter().for_each(|(name, value)| head += &format!("{name}: {value}\r\n"));
        connection.write_all(head.as_bytes())?;
        connection.write_all(b"connection: close\r\n\r\n")?;
        // A server may respond and close before it has read a rejected body.
        let _ = connection.write_all(&self.body);
        Response::read(BufReader::new(connection))
    }

    fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name))
    }
}

impl Response {
    fn read(mut reader: BufReader<TcpStream>) -> std::io::Result<Self> {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| std::io::Error::other(format!("no status line: {line:?}")))?;
        let mut headers = Map::new();
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.insert(name.to_lowercase(), Value::from(value.trim()));
        }
        let length = headers.get("content-length").and_then(Value::as_str);
        let frame = match length.and_then(|length| length.parse().ok()) {
            Some(length) => Frame::Length(length),
            None if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") => {
                Frame::Chunked
            }
            None => Frame::Closed,
        };
        Ok(Self { status, headers, reader: Box::new(reader), frame, body: Vec::new() })
    }

    /// Reads more bytes; returns false at the end.
    pub(crate) fn more(&mut self) -> Result<bool, String> {
        self.try_more().map_err(|error| format!("after {} bytes of body: {error}", self.body.len()))
    }

    fn try_more(&mut self) -> std::io::Result<bool> {
        let had = self.body.len();
        match self.frame {
            Frame::Length(length) => {
                self.reader.by_ref().take((length - had) as u64).read_to_end(&mut self.body)?;
                self.frame = Frame::Ended;
            }
            Frame::Closed => {
                let part = self.reader.fill_buf()?;
                self.body.extend_from_slice(part);
                let read = part.len();
                self.reader.consume(read);
                if read == 0 {
                    self.frame = Frame::Ended;
                }
            }
            Frame::Chunked => self.read_chunk()?,
            Frame::Ended => {}
        }
        Ok(!matches!(self.frame, Frame::Ended))
    }

    fn read_chunk(&mut self) -> std::io::Result<()> {
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim_end(), 16)
            .map_err(|_| std::io::Error::other(format!("the body breaks off: {line:?}")))?;
        self.reader.by_ref().take(size as u64).read_to_end(&mut self.body)?;
        line.clear();
        self.reader.read_line(&mut line)?;
        if size == 0 {
            self.frame = Frame::Ended;
        }
        Ok(())
    }

    /// Returns the body so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the chunks so far, by the type of the body.
    pub(crate) fn stream(&self) -> Stream {
        match self.headers.get("content-type").and_then(Value::as_str) {
            Some(kind) if kind.starts_with("text/event-stream") => read_events(&self.text()),
            Some(kind) if kind.starts_with("application/x-ndjson") => read_lines(&self.text()),
            _ => Stream::default(),
        }
    }
}
