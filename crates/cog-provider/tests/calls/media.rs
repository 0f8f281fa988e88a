//! Tests of replies with images: size limits, invalid images, and recording.

use cog_provider::{
    HttpProvider, Interruption, ModelRequest, Pace, ProviderError,
    protocol::{MAX_FRAME_BYTES, MAX_MEDIA_FRAME_BYTES},
    vendors::Vendor,
};
use cog_spec::{Code, Modality, ModelEvent, ModelMedia};
use cog_testkit::{Mock, Reply, Wire};

use crate::support::{events_of, provider, settings, simple_request, until_error};

/// The wire forms that return images, each with a model that generates them.
const IMAGE_MODELS: [(Wire, &str, &str); 3] = [
    (Wire::Gemini, "gemini", "gemini-2.5-flash-image"),
    (Wire::OpenAi, "openrouter", "google/gemini-2.5-flash-image"),
    (Wire::OpenAiImages, "openai", "gpt-image-1"),
];

/// The base64 length of an image of 20 MB.
const LARGE: usize = (20 << 20) / 3 * 4 + 4;

fn image_request(model: &str) -> ModelRequest {
    ModelRequest { model: model.to_owned(), output_media: vec![Modality::Image], ..simple_request() }
}

fn provider_named(name: &str, base_url: &str) -> HttpProvider {
    let vendor = Vendor::by_name(name).unwrap();
    HttpProvider::new(vendor, settings(base_url)).unwrap()
}

fn media(events: &[ModelEvent]) -> Vec<&ModelMedia> {
    let media = events.iter().map(|event| if let ModelEvent::Media(one) = event { Some(one) } else { None });
    media.flatten().collect()
}

#[tokio::test]
async fn requested_image_may_have_20_mb() {
    for (wire, name, model) in IMAGE_MODELS {
        let mock = Mock::start([Reply::text("A dot.").media("image/png", "A".repeat(LARGE))]);
        let events =
            events_of(&provider_named(name, &mock.base_url(wire)), &image_request(model)).await.unwrap();
        let lengths: Vec<usize> = media(&events).iter().map(|one| one.data.len()).collect();
        assert_eq!(lengths, [LARGE], "{name} {model}");
    }
}

#[tokio::test]
async fn rejects_image_over_the_limit() {
    let mock = Mock::start([Reply::text("").media("image/png", "A".repeat(MAX_MEDIA_FRAME_BYTES))]);
    for (request, limit) in [
        (image_request("gemini-2.5-flash-image"), MAX_MEDIA_FRAME_BYTES),
        (simple_request(), MAX_FRAME_BYTES),
    ] {
        let error = until_error(&provider(Wire::Gemini, &mock), &request).await.1;
        assert!(matches!(error, ProviderError::TooLarge { limit: found, .. } if found == limit), "{error}");
    }
}

#[tokio::test]
async fn incomplete_image_is_an_interrupted_reply() {
    for (wire, name, model) in IMAGE_MODELS {
        let image = Reply::text("").media("image/png", "A".repeat(9000)).interrupt_after(5000);
        let complete = Reply::text("").media("image/png", "AAAA");
        let mock = Mock::start([image.clone(), complete]);
        let again =
            events_of(&provider_named(name, &mock.base_url(wire)), &image_request(model)).await.unwrap();
        assert_eq!((media(&again).len(), mock.requests().len()), (1, 2), "retried: {name}");
        let mock = Mock::start([image]);
        let (events, error) =
            until_error(&provider_named(name, &mock.base_url(wire)), &image_request(model)).await;
        assert_eq!((media(&events).len(), error.code()), (0, Code::StreamInterrupted), "{name}: {error}");
        assert!(matches!(error, ProviderError::Interrupted { by: Interruption::Network, .. }), "{error}");
    }
}

#[tokio::test]
async fn records_and_replays_images() {
    for (wire, name, model) in IMAGE_MODELS {
        let directory = tempfile::tempdir().unwrap();
        let mock = Mock::start([Reply::text("A dot.").media("image/png", "iVBORw0KGgo=").packet_size(7)]);
        let recording = provider_named(name, &mock.base_url(wire)).record(directory.path()).unwrap();
        let recorded = events_of(&recording, &image_request(model)).await.unwrap();
        drop(mock);
        let row = Vendor::by_name(name).unwrap();
        let playing =
            HttpProvider::replay(row, settings("http://localhost"), directory.path(), Pace::Immediate);
        assert_eq!(events_of(&playing.unwrap(), &image_request(model)).await.unwrap(), recorded, "{name}");
        assert_eq!(media(&recorded).len(), 1);
    }
}
