//! What a client can spend with simultaneous requests.

use tokio::{net::TcpSocket, task::LocalSet};

use crate::{
    client::count,
    http::Connection,
    report::Report,
    world::{World, execute},
};

/// The budget of a client, and what an answer of the mock costs.
const TOKENS: f64 = 1_000.0;
const TOKENS_OF_A_CALL: f64 = 50.0;
/// How many requests are sent at once, and how often.
const AT_ONCE: usize = 256;
const ROUNDS: usize = 5;

/// Has one client send all its requests at once: it spends its budget, and at most one call more. Another client is answered.
pub(super) async fn spend(report: &mut Report) {
    let world = World::with_limits(&["--client-max-tokens", "1000", "--request-burst", "10000"]);
    let server = world.server.address;
    let set = LocalSet::new();
    let statuses: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            set.spawn_local(async move {
                let socket = TcpSocket::new_v4().unwrap();
                socket.bind(([127, 0, 1, 1], 0).into()).unwrap();
                let mut connection = Connection::new(socket.connect(server).await.unwrap());
                let mut statuses = Vec::new();
                for _ in 0..ROUNDS {
                    let request = execute("load", "paced-10-10", "");
                    statuses.push(connection.ask(&request, &mut Vec::new()).await.unwrap());
                }
                statuses
            })
        })
        .collect();
    set.await;
    let mut refused = 0;
    for task in statuses {
        let statuses = task.await.unwrap();
        assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
        refused += statuses.iter().filter(|status| **status == 429).count();
    }
    let spent = count(usize::try_from(world.mock.calls()).unwrap()) * TOKENS_OF_A_CALL;
    report.note("requests of one client refused, of 1,280", count(refused), "");
    report.at_most("tokens of a client with a budget of 1,000", spent, "tokens", TOKENS + TOKENS_OF_A_CALL);
    let mut body = Vec::new();
    let other = Connection::open(server).await.unwrap().ask(&execute("load", "whole", ""), &mut body).await;
    assert_eq!(other.unwrap(), 200, "{}", String::from_utf8_lossy(&body));
}
