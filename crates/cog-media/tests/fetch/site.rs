//! A local web server that responds by path and records its requests.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// Returns the complete response to the headers of a request; none to send nothing.
type Respond = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

/// A web server that runs until the test ends.
pub(crate) struct Site {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Starts a server at this IP address, on any free port.
    pub(crate) fn at(
        address: &str,
        respond: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self::on(address, 0, respond)
    }

    /// Starts a server at this IP address and port.
    pub(crate) fn on(
        address: &str,
        port: u16,
        respond: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let address: IpAddr = address.parse().unwrap();
        let listener = TcpListener::bind((address, port)).unwrap();
        let site = Self { address: listener.local_addr().unwrap(), requests: Arc::default() };
        let (requests, respond) = (Arc::clone(&site.requests), Arc::new(respond));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (requests, respond) = (Arc::clone(&requests), Arc::clone(&respond));
                thread::spawn(move || serve(stream, &requests, &*respond));
            }
        });
        site
    }

    /// Returns the IP address with the port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the headers of each connection; empty if none were received.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, requests: &Mutex<Vec<String>>, respond: &Respond) {
    let mut headers = Vec::new();
    let mut byte = [0];
    while !headers.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        headers.extend(byte);
    }
    let headers = String::from_utf8(headers).unwrap();
    requests.lock().unwrap().push(headers.clone());
    match respond(&headers) {
        // A client that has read enough disconnects.
        Some(response) => drop(stream.write_all(&response)),
        None => drop(stream.read(&mut byte)),
    }
}

/// Returns a response with these additional headers.
pub(crate) fn response(status: &str, lines: &[&str], body: &[u8]) -> Vec<u8> {
    let mut response = format!("HTTP/1.1 {status}\r\nconnection: close\r\n").into_bytes();
    for line in lines {
        response.extend(line.as_bytes());
        response.extend(b"\r\n");
    }
    response.extend(b"\r\n");
    response.extend(body);
    response
}

/// Returns the path of a request.
pub(crate) fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap_or_default()
}
