//! HTTP/1.1 as far as a load client needs it: one request at a time over one connection, nothing parsed that is not needed.
//!
//! A client that costs little leaves the core to what is measured; what the whole answers say is checked by the scenarios.

use std::{
    io::{Error, ErrorKind, Result},
    net::SocketAddr,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A request, written out once and sent many times.
pub(crate) fn post(path: &str, accept: &str, body: &str) -> Vec<u8> {
    post_with(path, &format!("accept: {accept}\r\n"), body)
}

/// The same with these lines of headers.
pub(crate) fn post_with(path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A connection that is kept open.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    read: usize,
    body: Body,
}

/// What is still to come of the body of the present response.
enum Body {
    Length(usize),
    /// So much of the present chunk.
    Chunk(usize),
    /// The size of the next chunk.
    Size,
    Over,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self::new(stream))
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::with_capacity(8192), read: 0, body: Body::Over }
    }

    /// Sends the request and reads the complete body into `into`. Returns the status.
    pub(crate) async fn ask(&mut self, request: &[u8], into: &mut Vec<u8>) -> Result<u16> {
        let status = self.begin(request).await?;
        into.clear();
        while self.more(into).await? {}
        Ok(status)
    }

    /// Sends the request and reads nothing.
    pub(crate) async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await
    }

    /// Sends the request and reads the headers of the response. Returns the status.
    pub(crate) async fn begin(&mut self, request: &[u8]) -> Result<u16> {
        self.send(request).await?;
        let end = loop {
            if let Some(end) = find(self.unread(), b"\r\n\r\n") {
                break end;
            }
            self.fill().await?;
        };
        let head =
            self.unread().get(..end).map(String::from_utf8_lossy).unwrap_or_default().to_ascii_lowercase();
        self.read += end + 4;
        self.body = match field(&head, "content-length").and_then(|length| length.parse().ok()) {
            Some(length) => Body::Length(length),
            None if field(&head, "transfer-encoding").is_some() => Body::Size,
            None => Body::Over,
        };
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| malformed("no status"))
    }

    /// Adds what has come of the body; false once it is over.
    pub(crate) async fn more(&mut self, into: &mut Vec<u8>) -> Result<bool> {
        loop {
            match self.body {
                Body::Over | Body::Length(0) => return Ok(false),
                Body::Length(left) => {
                    let taken = self.take(left, into).await?;
                    self.body = Body::Length(left - taken);
                    return Ok(true);
                }
                Body::Chunk(0) => {
                    self.line().await?;
                    self.body = Body::Size;
                }
                Body::Chunk(left) => {
                    let taken = self.take(left, into).await?;
                    self.body = Body::Chunk(left - taken);
                    return Ok(true);
                }
                Body::Size => {
                    let line = self.line().await?;
                    let size = usize::from_str_radix(line.trim(), 16)
                        .map_err(|_| malformed("no size of a chunk"))?;
                    self.body = if size > 0 { Body::Chunk(size) } else { Body::Over };
                    if size == 0 {
                        self.line().await?;
                    }
                }
            }
        }
    }

    /// Up to so many bytes of those that are there, or come next.
    async fn take(&mut self, most: usize, into: &mut Vec<u8>) -> Result<usize> {
        if self.unread().is_empty() {
            self.fill().await?;
        }
        let taken = self.unread().len().min(most);
        into.extend_from_slice(self.unread().get(..taken).unwrap_or_default());
        self.read += taken;
        Ok(taken)
    }

    async fn line(&mut self) -> Result<String> {
        loop {
            if let Some(end) = find(self.unread(), b"\r\n") {
                let line =
                    self.unread().get(..end).map(String::from_utf8_lossy).unwrap_or_default().into_owned();
                self.read += end + 2;
                return Ok(line);
            }
            self.fill().await?;
        }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.read..).unwrap_or_default()
    }

    async fn fill(&mut self) -> Result<()> {
        self.buffer.drain(..self.read);
        self.read = 0;
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(Error::from(ErrorKind::UnexpectedEof)),
            _ => Ok(()),
        }
    }
}

/// Returns the index of the first occurrence of these bytes.
pub(crate) fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}
