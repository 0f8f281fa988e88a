//! A web site of one machine's own: it answers by path, and counts who comes.

use std::{
    io::{Read, Write},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

/// What a site answers to a request: its head in, a whole response out; none where it stays silent.
type Answer = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

/// A site that runs until the test ends.
pub(crate) struct Site {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// A site at this address, on any port that is free.
    pub(crate) fn at(
        address: &str,
        answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self::on(address, 0, answer)
    }

    /// A site at this address and port.
    pub(crate) fn on(
        address: &str,
        port: u16,
        answer: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        let address: IpAddr = address.parse().unwrap();
        let listener = TcpListener::bind((address, port)).unwrap();
        let site = Self { address: listener.local_addr().unwrap(), heads: Arc::default() };
        let (heads, answer) = (Arc::clone(&site.heads), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (heads, answer) = (Arc::clone(&heads), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &heads, &*answer));
            }
        });
        site
    }

    /// The address with the port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The heads of what came: one for each connection, empty where nothing was said.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, heads: &Mutex<Vec<String>>, answer: &Answer) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    heads.lock().unwrap().push(head.clone());
    match answer(&head) {
        // Whoever has heard enough hangs up.
        Some(answer) => drop(stream.write_all(&answer)),
        None => drop(stream.read(&mut byte)),
    }
}

/// A response with these further lines of its head.
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

/// The path of a request.
pub(crate) fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}
