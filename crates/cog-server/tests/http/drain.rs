use std::time::Duration;

use cog_testkit::Reply;
use futures_util::StreamExt as _;

use crate::support::{ANSWER, BODY, Stage, begun, code, failure, lines};

#[tokio::test]
async fn shutdown_waits_for_running_streams() {
    let reply = Reply::text(ANSWER).chunk_size(20).pause(Duration::from_millis(10));
    let mut stage = Stage::start([reply]).await;
    let request = stage.execute("live", BODY).header("accept", "application/x-ndjson");
    let mut body = request.send().await.unwrap().bytes_stream();
    let mut text = String::from_utf8(body.next().await.unwrap().unwrap().to_vec()).unwrap();
    stage.stop.take().unwrap().send(()).unwrap();
    while let Some(chunk) = body.next().await {
        text += std::str::from_utf8(&chunk.unwrap()).unwrap();
    }
    assert!(lines(&text).last().unwrap().get("final").is_some());
    (&mut stage.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn stopped_streams_can_be_resumed() {
    let mut stage = Stage::with([begun()], |settings| {
        settings.shutdown_timeout = Duration::from_millis(200);
    })
    .await;
    let request = stage.execute("live", BODY).header("accept", "application/x-ndjson");
    let mut body = request.send().await.unwrap().bytes_stream();
    let mut text = String::from_utf8(body.next().await.unwrap().unwrap().to_vec()).unwrap();
    stage.stop.take().unwrap().send(()).unwrap();
    while let Some(chunk) = body.next().await {
        text += std::str::from_utf8(&chunk.unwrap()).unwrap();
    }
    let end = lines(&text).pop().unwrap();
    assert_eq!(code(&end), "E2010");
    assert_eq!(end.pointer("/error/details/reason").unwrap().as_str(), Some("shutdown"));
    assert!(end.pointer("/error/recovery/last_seq").is_some());
    (&mut stage.served).await.unwrap().unwrap();
    while stage.mock.interrupted() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn sync_run_ends_with_e2010_at_shutdown() {
    let mut stage =
        Stage::with([begun()], |settings| settings.shutdown_timeout = Duration::from_millis(100)).await;
    let request = tokio::spawn(failure(stage.execute("once", BODY)));
    while stage.mock.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stage.stop.take().unwrap().send(()).unwrap();
    assert_eq!(request.await.unwrap(), (502, "E2010".to_owned()));
    (&mut stage.served).await.unwrap().unwrap();
}
