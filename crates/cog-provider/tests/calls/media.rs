//! Tests of replies with images: size limits, invalid images, and recording.

use cog_provider::{
    HttpProvider, Interruption, ModelRequest, Pace, ProviderError,
    protocol::{MAX_FRAME_BYTES, MAX_MEDIA_FRAME_BYTES},
    vendors::Vendor,
};
use cog_spec::{Code, Modality, ModelEvent, ModelMedia};
use cog_testkit::{Mock, Reply, Wire};

use crate::support::{ask, provider, question, settings, until_error};

/// The wire forms that return images, each with a model that generates them.
const MAKERS: [(Wire, &str, &str); 3] = [
    (Wire::Gemini, "gemini", "gemini-2.5-flash-image"),
    (Wire::OpenAi, "openrouter", "google/gemini-2.5-flash-image"),
    (Wire::OpenAiImages, "openai", "gpt-image-1"),
];

/// The base64 length of an image of 20 MB.
const LARGE: usize = (20 << 20) / 3 * 4 + 4;

fn asking(model: &str) -> ModelRequest {
    ModelRequest { model: model.to_owned(), output_media: vec![Modality::Image], ..question() }
}

fn maker(name: &str, base_url: &str) -> HttpProvider {
    let vendor = Vendor::by_name(name).unwrap();
    HttpProvider::new(vendor, settings(base_url)).unwrap()
}

fn media(events: &[ModelEvent]) -> Vec<&ModelMedia> {
    let media = events.iter().map(|event| if let ModelEvent::Media(one) = event { Some(one) } else { None });
    media.flatten().collect()
}

#[tokio::test]
async fn an_image_of_20_mb_arrives_where_images_were_asked_for() {
    for (wire, name, model) in MAKERS {
        let mock = Mock::start([Reply::text("A dot.").media("image/png", "A".repeat(LARGE))]);
        let events = ask(&maker(name, &mock.base_url(wire)), &asking(model)).await.unwrap();
        let lengths: Vec<usize> = media(&events).iter().map(|one| one.data.len()).collect();
        assert_eq!(lengths, [LARGE], "{name} {model}");
    }
}

#[tokio::test]
async fn a_larger_one_is_refused_and_sooner_where_none_was_asked_for() {
    let mock = Mock::start([Reply::text("").media("image/png", "A".repeat(MAX_MEDIA_FRAME_BYTES))]);
    for (request, limit) in
        [(asking("gemini-2.5-flash-image"), MAX_MEDIA_FRAME_BYTES), (question(), MAX_FRAME_BYTES)]
    {
        let error = until_error(&provider(Wire::Gemini, &mock), &request).await.1;
        assert!(matches!(error, ProviderError::TooLarge { limit: told, .. } if told == limit), "{error}");
    }
}

#[tokio::test]
async fn half_an_image_is_a_reply_that_was_cut() {
    for (wire, name, model) in MAKERS {
        let image = Reply::text("").media("image/png", "A".repeat(9000)).cut(5000);
        let whole = Reply::text("").media("image/png", "AAAA");
        let mock = Mock::start([image.clone(), whole]);
        let again = ask(&maker(name, &mock.base_url(wire)), &asking(model)).await.unwrap();
        assert_eq!((media(&again).len(), mock.requests().len()), (1, 2), "asked again: {name}");
        let mock = Mock::start([image]);
        let (events, error) = until_error(&maker(name, &mock.base_url(wire)), &asking(model)).await;
        assert_eq!((media(&events).len(), error.code()), (0, Code::StreamInterrupted), "{name}: {error}");
        assert!(matches!(error, ProviderError::Interrupted { by: Interruption::Network, .. }), "{error}");
    }
}

#[tokio::test]
async fn images_are_recorded_and_played() {
    for (wire, name, model) in MAKERS {
        let directory = tempfile::tempdir().unwrap();
        let mock = Mock::start([Reply::text("A dot.").media("image/png", "iVBORw0KGgo=").network(7)]);
        let recording = maker(name, &mock.base_url(wire)).record(directory.path()).unwrap();
        let told = ask(&recording, &asking(model)).await.unwrap();
        drop(mock);
        let row = Vendor::by_name(name).unwrap();
        let playing =
            HttpProvider::replay(row, settings("http://localhost"), directory.path(), Pace::Immediate);
        assert_eq!(ask(&playing.unwrap(), &asking(model)).await.unwrap(), told, "{name}");
        assert_eq!(media(&told).len(), 1);
    }
}
