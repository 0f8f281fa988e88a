//! Media of a halted run whose source has expired when it continues.

#![expect(clippy::disallowed_methods, reason = "a test looks at files")]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_media::{Access, Fetched, MediaError, Store, Uploads, decode_base64};
use cog_run::{
    RunInput, RunOptions, Runtime,
    tools::{Decision, HaltedRuns},
};
use serde_json::json;

use super::script::{Setup, answer, calls, info};
use crate::support::{Scripted, input, write};

/// An upload that can be opened once.
#[derive(Default)]
pub(crate) struct Once(pub(crate) AtomicUsize);

impl Uploads for Once {
    fn open(&self, _: &str, _: Option<&str>) -> Result<Fetched, MediaError> {
        if self.0.fetch_add(1, Ordering::SeqCst) > 0 {
            return Err(MediaError::Upload { expired: true });
        }
        let image = "UklGRh4AAABXRUJQVlA4TBIAAAAvA0AAAA8Q87//8x8O5iGi/xE=";
        Ok(Fetched { stored: decode_base64(image, Store::with_limit(1 << 10))?, declared: None })
    }
}

/// Returns a run that looks at an upload and calls a tool that must be confirmed.
fn looking(uploads: &Arc<Once>, halted: HaltedRuns) -> (Setup, RunInput, Runtime) {
    let manifest = [
        "policies: { tools_allowed: true }",
        "tools: { allowed: [delete] }",
        "modalities: { input: [text, image], output: [text] }",
    ];
    let delete = info("delete").with_confirmation().function(async |_, _| Ok(json!({ "deleted": true })));
    let mut setup = Setup::with_manifest(&manifest, []).tool(delete);
    let provider = Scripted::new([calls(&[("c1", "delete", "{}")]), answer()]);
    setup.provider = Arc::new(provider.accepting_images(&["image/webp"]));
    write(
        &setup.directory,
        "schema.json",
        r##"{"input": {"type": "object", "properties": {"image": {"$ref": "#/$defs/MediaInput"}}},
            "data": {"type": "object", "properties": {"result": {"type": "string"}}}}"##,
    );
    let access = Access { uploads: Some(Arc::clone(uploads) as Arc<dyn Uploads>), ..Access::default() };
    let runtime = setup.builder().media(access).halted_runs(halted).build();
    (setup, input(r#"{"image": {"type": "upload_ref", "upload_id": "upl_1"}}"#), runtime)
}

/// Halts a run, looks at what is stored with its id, and continues it.
async fn continues_after_its_upload_expired(halted: HaltedRuns, look: impl Fn(&str)) {
    let uploads = Arc::new(Once::default());
    let (setup, image, runtime) = looking(&uploads, halted);
    let envelope = runtime.execute(&setup.module(), image, RunOptions::default()).await;
    let error = envelope.error().unwrap();
    assert_eq!(error.code.as_str(), "E4007", "{error:?}");
    let details = error.details.as_ref().unwrap().to_serde();
    let id = details["halted"]["id"].as_str().unwrap();
    look(id);
    let envelope = runtime.continue_run(id, Decision::yes(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let requests = setup.provider.requests();
    let [first, second] = [&requests[0], &requests[1]].map(|request| &request.messages.messages()[..2]);
    assert_eq!(first, second, "the model sees the same image");
    assert_eq!(uploads.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn continued_run_has_the_media_of_an_upload_that_expired() {
    continues_after_its_upload_expired(HaltedRuns::in_memory(), |_| {}).await;
}

#[tokio::test]
async fn media_of_a_halted_run_are_files_until_it_continues() {
    let place = tempfile::tempdir().unwrap();
    let look = |id: &str| {
        let text = std::fs::read_to_string(place.path().join(format!("{id}.json"))).unwrap();
        assert!(text.contains(".webp") && !text.contains("base64"), "{text}");
        let media = std::fs::read_dir(place.path().join(format!("{id}.media"))).unwrap();
        assert_eq!(media.count(), 1);
    };
    continues_after_its_upload_expired(HaltedRuns::in_directory(place.path()), look).await;
    let left = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let left: Vec<_> = left.map(|path| path.extension().unwrap().to_owned()).collect();
    assert_eq!(left, ["used"]);
}
