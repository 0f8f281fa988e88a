//! A local DNS server and a resolver that queries it (a subset of RFC 1035).

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::{Arc, Mutex},
    thread,
};

use cog_media::{ResolveFuture, Resolver};

const A: u16 = 1;
const AAAA: u16 = 28;

/// A server that returns these answers in order, and then repeats the last one.
#[derive(Clone)]
pub(crate) struct Dns {
    address: SocketAddr,
    queried: Arc<Mutex<Vec<String>>>,
}

impl Dns {
    /// Starts a server with these answers, for any name.
    pub(crate) fn start(answers: &[&[&str]]) -> Self {
        let answers: Vec<Vec<IpAddr>> = answers
            .iter()
            .map(|lookup| lookup.iter().map(|address| address.parse().unwrap()).collect())
            .collect();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let dns = Self { address: socket.local_addr().unwrap(), queried: Arc::default() };
        let queried = Arc::clone(&dns.queried);
        thread::spawn(move || {
            let mut packet = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut packet) {
                let question = &packet[..length];
                let (name, kind) = read_question(question);
                let lookup = {
                    let mut queried = queried.lock().unwrap();
                    // A lookup sends a question of each kind, A first.
                    queried.extend((kind == A).then_some(name));
                    queried.len() - 1
                };
                let answer = answers.get(lookup).or(answers.last()).unwrap();
                socket.send_to(&reply(question, kind, answer), from).unwrap();
            }
        });
        dns
    }

    /// Returns the names that were looked up.
    pub(crate) fn queried(&self) -> Vec<String> {
        self.queried.lock().unwrap().clone()
    }
}

impl Resolver for Dns {
    fn resolve(&self, name: &str) -> ResolveFuture {
        let (server, name) = (self.address, name.to_owned());
        Box::pin(async move {
            let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await?;
            socket.connect(server).await?;
            let mut found = Vec::new();
            for kind in [A, AAAA] {
                socket.send(&question(&name, kind)).await?;
                let mut packet = [0; 512];
                let length = socket.recv(&mut packet).await?;
                found.extend(read_addresses(&packet[..length], question(&name, kind).len()));
            }
            if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
        })
    }
}

fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut packet = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        packet.push(u8::try_from(label.len()).unwrap());
        packet.extend(label.as_bytes());
    }
    packet.push(0);
    packet.extend(kind.to_be_bytes());
    packet.extend([0, 1]);
    packet
}

fn read_question(packet: &[u8]) -> (String, u16) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while packet[at] != 0 {
        let end = at + 1 + usize::from(packet[at]);
        labels.push(String::from_utf8(packet[at + 1..end].to_vec()).unwrap());
        at = end;
    }
    (labels.join("."), u16::from_be_bytes([packet[at + 1], packet[at + 2]]))
}

/// Returns the question with a record for each address of its kind, without a time to live.
fn reply(question: &[u8], kind: u16, addresses: &[IpAddr]) -> Vec<u8> {
    let records: Vec<Vec<u8>> = addresses
        .iter()
        .filter_map(|address| match (address, kind) {
            (IpAddr::V4(address), A) => Some(address.octets().to_vec()),
            (IpAddr::V6(address), AAAA) => Some(address.octets().to_vec()),
            _ => None,
        })
        .collect();
    let mut packet = question.to_vec();
    packet[2..4].copy_from_slice(&[0x81, 0x80]);
    packet[7] = u8::try_from(records.len()).unwrap();
    for record in records {
        packet.extend([0xc0, 12]);
        packet.extend(kind.to_be_bytes());
        packet.extend([0, 1, 0, 0, 0, 0, 0]);
        packet.push(u8::try_from(record.len()).unwrap());
        packet.extend(record);
    }
    packet
}

fn read_addresses(packet: &[u8], question: usize) -> Vec<IpAddr> {
    let mut records = &packet[question..];
    let mut found = Vec::new();
    while let [_, _, _, _, _, _, _, _, _, _, 0, length, rest @ ..] = records {
        let (record, rest) = rest.split_at(usize::from(*length));
        found.push(match *length {
            4 => IpAddr::from(<[u8; 4]>::try_from(record).unwrap()),
            _ => IpAddr::from(<[u8; 16]>::try_from(record).unwrap()),
        });
        records = rest;
    }
    found
}
