//! Media of a halted run whose source has expired when it continues.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_media::{Access, Fetched, MediaError, Store, Uploads, decode_base64};
use cog_run::{RunInput, RunOptions, Runtime, tools::Decision};
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
fn looking(uploads: &Arc<Once>) -> (Setup, RunInput, Runtime) {
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
    let runtime = setup.builder().media(access).build();
    (setup, input(r#"{"image": {"type": "upload_ref", "upload_id": "upl_1"}}"#), runtime)
}

#[tokio::test]
async fn continued_run_has_the_media_of_an_upload_that_expired() {
    let uploads = Arc::new(Once::default());
    let (setup, image, runtime) = looking(&uploads);
    let envelope = runtime.execute(&setup.module(), image, RunOptions::default()).await;
    let error = envelope.error().unwrap();
    assert_eq!(error.code.as_str(), "E4007", "{error:?}");
    let details = error.details.as_ref().unwrap().to_serde();
    let id = details["halted"]["id"].as_str().unwrap();
    let envelope = runtime.continue_run(id, Decision::yes(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let requests = setup.provider.requests();
    let [first, second] = [&requests[0], &requests[1]].map(|request| &request.messages.messages()[..2]);
    assert_eq!(first, second, "the model sees the same image");
    assert_eq!(uploads.0.load(Ordering::SeqCst), 1);
}
