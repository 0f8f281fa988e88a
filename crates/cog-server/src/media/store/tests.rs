use std::{io::Read as _, time::Duration};

use cog_json::Value;
use cog_media::DeliveryPlace;

use super::*;

const PIXEL: &[u8] =
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

fn store(set: impl FnOnce(&mut UploadSettings)) -> MediaStore {
    let mut settings = UploadSettings::default();
    set(&mut settings);
    MediaStore::new(settings, None)
}

fn wanted(text: &str) -> UploadRequest {
    UploadRequest::read(&Value::parse(text).unwrap()).unwrap()
}

fn created(store: &MediaStore, owner: &str) -> String {
    store.create(owner, UploadRequest::default()).unwrap().id
}

async fn sent(store: &MediaStore, id: &str, bytes: &[u8]) -> Result<Progress, UploadError> {
    let mut upload = store.begin(id, "me", None, 0)?;
    upload.push(bytes)?;
    upload.finish().await
}

fn code(error: &UploadError) -> String {
    cog_spec::ErrorBody::from(error).code.as_str().to_owned()
}

fn bytes(store: &MediaStore, id: &str, owner: Option<&str>) -> Result<Vec<u8>, MediaError> {
    let mut bytes = Vec::new();
    store.open(id, owner)?.stored.reader().read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[tokio::test]
async fn upload_is_visible_only_to_its_owner() {
    let store = store(|_| {});
    let id = created(&store, "me");
    let progress = sent(&store, &id, PIXEL).await.unwrap();
    assert_eq!((progress.is_complete(), progress.received), (true, 35));
    assert_eq!(bytes(&store, &id, Some("me")).unwrap(), PIXEL);
    for owner in [None, Some(""), Some("you")] {
        let error = bytes(&store, &id, owner).unwrap_err();
        assert!(matches!(error, MediaError::Upload { expired: false }), "{owner:?}");
    }
}

#[tokio::test]
async fn interrupted_upload_continues_at_its_offset() {
    let store = store(|_| {});
    let id = created(&store, "me");
    let mut upload = store.begin(&id, "me", None, 0).unwrap();
    upload.push(&PIXEL[..20]).unwrap();
    assert!(matches!(store.begin(&id, "me", None, 0), Err(UploadError::Busy)));
    drop(upload);
    assert_eq!(store.progress(&id, "me").unwrap().received, 20);
    assert!(matches!(
        store.begin(&id, "me", Some(19), 0),
        Err(UploadError::WrongOffset { first: 19, received: 20 })
    ));
    assert!(bytes(&store, &id, Some("me")).is_err(), "not all of it is there");
    let mut upload = store.begin(&id, "me", Some(20), 0).unwrap();
    upload.push(&PIXEL[20..]).unwrap();
    upload.finish().await.unwrap();
    assert_eq!(bytes(&store, &id, Some("me")).unwrap(), PIXEL);
    assert!(matches!(store.begin(&id, "me", None, 0), Err(UploadError::Complete)));
}

#[tokio::test]
async fn upload_must_match_its_declaration_and_can_be_sent_again() {
    let store = store(|_| {});
    for (declared, expected) in [
        (r#"{"media_type": "image/png"}"#, "E1014"),
        (r#"{"size_bytes": 34}"#, "E1011"),
        (r#"{"size_bytes": 36}"#, "E1001"),
        (r#"{"checksum": {"algorithm": "crc32", "value": "00000000"}}"#, "E1020"),
    ] {
        let id = store.create("me", wanted(declared)).unwrap().id;
        assert_eq!(code(&sent(&store, &id, PIXEL).await.unwrap_err()), expected, "{declared}");
        assert_eq!(code(&sent(&store, &id, PIXEL).await.unwrap_err()), expected, "{declared}");
    }
    let id = store.create("me", wanted(r#"{"media_type": "IMAGE/GIF", "size_bytes": 35}"#)).unwrap().id;
    assert_eq!(code(&sent(&store, &id, b"not media").await.unwrap_err()), "E1001");
    assert!(sent(&store, &id, PIXEL).await.is_ok());
    assert_eq!(code(&store.create("me", wanted(r#"{"media_type": "text/html"}"#)).unwrap_err()), "E1010");
    let large = r#"{"media_type": "image/png", "size_bytes": 20971521}"#;
    assert_eq!(code(&store.create("me", wanted(large)).unwrap_err()), "E1011");
}

#[tokio::test]
async fn number_and_bytes_of_uploads_are_limited() {
    let store = store(|settings| {
        settings.max_files = 3;
        settings.max_files_per_client = 2;
        settings.max_bytes = 100;
        settings.max_bytes_per_client = 50;
    });
    let first = created(&store, "me");
    let second = created(&store, "me");
    assert_eq!(code(&store.create("me", UploadRequest::default()).unwrap_err()), "E4002");
    created(&store, "you");
    assert_eq!(code(&store.create("others", UploadRequest::default()).unwrap_err()), "E4002");
    sent(&store, &first, PIXEL).await.unwrap();
    let error = sent(&store, &second, PIXEL).await.unwrap_err();
    assert!(matches!(error, UploadError::Full { limit: "max_upload_bytes_per_client", max: 50, .. }));
}

#[tokio::test]
async fn declared_size_is_reserved() {
    let store = store(|settings| settings.max_bytes_per_client = 80);
    let declared = || store.create("me", wanted(r#"{"size_bytes": 35}"#));
    let ids = [declared().unwrap().id, declared().unwrap().id];
    assert_eq!(code(&declared().unwrap_err()), "E4002");
    let open = created(&store, "me");
    let announced = store.begin(&open, "me", None, 35).map(drop);
    assert_eq!(code(&announced.unwrap_err()), "E4002", "the length of the request is reserved too");
    for id in &ids {
        sent(&store, id, PIXEL).await.unwrap();
    }
    store.remove(&ids[0], "me").unwrap();
    sent(&store, &open, PIXEL).await.unwrap();
}

#[tokio::test]
async fn upload_over_the_limit_releases_its_space() {
    let store = store(|settings| settings.max_bytes_per_client = 50);
    let first = created(&store, "me");
    let second = created(&store, "me");
    let (mut one, mut two) =
        (store.begin(&first, "me", None, 0).unwrap(), store.begin(&second, "me", None, 0).unwrap());
    one.push(&PIXEL[..20]).unwrap();
    two.push(&PIXEL[..20]).unwrap();
    assert_eq!(code(&one.push(&PIXEL[20..]).unwrap_err()), "E4002");
    drop(one);
    assert_eq!(store.progress(&first, "me").unwrap().received, 0);
    two.push(&PIXEL[20..]).unwrap();
    assert!(two.finish().await.unwrap().is_complete());
}

#[tokio::test]
async fn only_the_owner_removes_a_file() {
    let store = store(|_| {});
    let id = created(&store, "me");
    let mut upload = store.begin(&id, "me", None, 0).unwrap();
    assert_eq!(code(&store.remove(&id, "you").unwrap_err()), "E1019");
    store.remove(&id, "me").unwrap();
    assert_eq!(code(&upload.push(PIXEL).unwrap_err()), "E1019", "it was removed during the transfer");
    assert_eq!(code(&store.remove(&id, "me").unwrap_err()), "E1019");
}

#[tokio::test(start_paused = true)]
async fn file_is_removed_when_it_expires() {
    let store = store(|settings| settings.ttl = Duration::from_secs(900));
    let id = created(&store, "me");
    sent(&store, &id, PIXEL).await.unwrap();
    let (media, _) = store.media(&id, "me").unwrap();
    tokio::time::advance(Duration::from_millis(899_999)).await;
    assert_eq!(bytes(&store, &id, Some("me")).unwrap(), PIXEL);
    let (made, _) = store.publish("me", media).unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert_eq!(store.0.stored.lock().unwrap().entries.len(), 1, "no request was needed");
    assert!(matches!(bytes(&store, &id, Some("me")), Err(MediaError::Upload { expired: true })));
    assert_eq!(bytes(&store, &made, Some("me")).unwrap(), PIXEL, "its own time began when it was made");
}

#[tokio::test]
async fn retained_file_is_removed_when_its_space_is_needed() {
    let store = store(|settings| settings.max_files_per_client = 2);
    let ids = [created(&store, "me"), created(&store, "me")];
    for (at, id) in ids.iter().enumerate() {
        sent(&store, id, PIXEL).await.unwrap();
        let mut lent = store.lend(id);
        if at == 0 {
            lent.retain();
        }
    }
    assert_eq!(bytes(&store, &ids[0], Some("me")).unwrap(), PIXEL);
    assert!(matches!(bytes(&store, &ids[1], Some("me")), Err(MediaError::Upload { expired: false })));
    created(&store, "me");
    assert!(bytes(&store, &ids[0], Some("me")).is_ok(), "there is a place yet");
    created(&store, "me");
    assert!(matches!(bytes(&store, &ids[0], Some("me")), Err(MediaError::Upload { expired: true })));
    assert_eq!(code(&store.create("me", UploadRequest::default()).unwrap_err()), "E4002");
}

#[tokio::test(start_paused = true)]
async fn expired_upload_returns_e1018_to_its_owner() {
    let store = store(|settings| settings.ttl = Duration::ZERO);
    let id = created(&store, "me");
    assert!(matches!(
        store.begin(&id, "me", None, 0),
        Err(UploadError::Media(MediaError::Upload { expired: true }))
    ));
    assert_eq!(code(&store.progress(&id, "me").unwrap_err()), "E1018");
    assert_eq!(code(&store.progress(&id, "you").unwrap_err()), "E1019");
    assert!(store.lock().entries.is_empty());
}

#[tokio::test]
async fn upload_that_expires_during_transfer_leaves_nothing() {
    let store = store(|_| {});
    let id = created(&store, "me");
    let mut upload = store.begin(&id, "me", None, 0).unwrap();
    let mut stored = store.lock();
    stored.entries.get_mut(&id).unwrap().until = Instant::now();
    stored.next_expiry = Some(Instant::now());
    drop(stored);
    assert_eq!(code(&upload.push(PIXEL).unwrap_err()), "E1018");
    drop(upload);
    assert!(store.lock().entries.is_empty());
}

#[tokio::test]
async fn generated_file_can_be_fetched_until_it_expires() {
    let store = store(|_| {});
    let id = created(&store, "me");
    sent(&store, &id, PIXEL).await.unwrap();
    let (media, _) = store.media(&id, "me").unwrap();
    let delivery = store.delivery("https://cog.example/");
    let Ok(DeliveryPlace::Url(published)) = delivery.deliver("draws", Some("me"), &media) else {
        panic!("{delivery:?}")
    };
    let id = published.url.strip_prefix("https://cog.example/v1/media/").unwrap();
    assert!(id.starts_with("med_") && published.expires_at.ends_with('Z'));
    assert_eq!(bytes(&store, id, Some("me")).unwrap(), PIXEL);
    assert!(bytes(&store, id, Some("you")).is_err());
}

#[tokio::test(start_paused = true)]
async fn one_task_removes_all_expired_files() {
    let store = store(|settings| settings.ttl = Duration::from_secs(900));
    for _ in 0..20 {
        created(&store, "me");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(store.0.stored.lock().unwrap().sweeper.len(), 1);
    tokio::time::sleep(Duration::from_millis(889_500)).await;
    assert_eq!(store.0.stored.lock().unwrap().entries.len(), 10);
    tokio::time::sleep(Duration::from_secs(100)).await;
    let stored = store.0.stored.lock().unwrap();
    assert!(stored.entries.is_empty() && !stored.is_sweeping);
}
