//! Connections that are kept open.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::{
    dns::Dns,
    support::{bytes, error_of, fetch, fetcher},
};

/// Starts a server that responds to the first requests of each connection, and closes it at the next one without a
/// word. Returns the number of requests too.
fn closing_after(responses: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let (address, requests) = (listener.local_addr().unwrap(), Arc::<AtomicUsize>::default());
    let counted = Arc::clone(&requests);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let requests = Arc::clone(&counted);
            thread::spawn(move || serve(stream, responses, &requests));
        }
    });
    (address, requests)
}

fn serve(mut stream: TcpStream, responses: usize, requests: &AtomicUsize) {
    for answered in 0.. {
        let (mut headers, mut byte) = (Vec::new(), [0]);
        while !headers.ends_with(b"\r\n\r\n") {
            if !stream.read(&mut byte).is_ok_and(|read| read == 1) {
                return;
            }
            headers.extend(byte);
        }
        requests.fetch_add(1, Ordering::SeqCst);
        if answered == responses {
            return;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc").unwrap();
    }
}

#[tokio::test]
async fn closed_connection_is_replaced() {
    let (address, _) = closing_after(1);
    let fetcher = fetcher(&[address.to_string()], Dns::start(&[&[]]));
    for number in 0..20 {
        let fetched = fetch(&fetcher, &format!("http://{address}/{number}.png")).await.unwrap();
        assert_eq!(bytes(&fetched), b"abc");
    }
}

#[tokio::test]
async fn request_is_repeated_once() {
    let (address, requests) = closing_after(0);
    let fetcher = fetcher(&[address.to_string()], Dns::start(&[&[]]));
    error_of(&fetcher, &format!("http://{address}/a.png")).await;
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}
