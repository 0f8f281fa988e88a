//! Media of a halted run whose source has expired when it continues.

#![expect(clippy::disallowed_methods, reason = "a test looks at files")]

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cog_media::{Access, MediaError, SourceContent, Store, Uploads, decode_base64};
use cog_run::{
    RunContext, RunInput, RunOptions, Runtime,
    sessions::StoredRuns,
    tools::{Approval, Decision, PendingApprovals},
};
use cog_spec::Envelope;
use serde_json::json;

use super::script::{Setup, answer, calls, info};
use crate::support::{Scripted, code, input, record_of, write};

/// An upload that can be opened once.
#[derive(Default)]
pub(crate) struct Once(pub(crate) AtomicUsize);

impl Uploads for Once {
    fn open(&self, _: &str, _: Option<&str>) -> Result<SourceContent, MediaError> {
        if self.0.fetch_add(1, Ordering::SeqCst) > 0 {
            return Err(MediaError::Upload { expired: true });
        }
        let image = "UklGRh4AAABXRUJQVlA4TBIAAAAvA0AAAA8Q87//8x8O5iGi/xE=";
        Ok(SourceContent { stored: decode_base64(image, Store::with_limit(1 << 10))?, declared: None })
    }
}

/// Returns a run that looks at an upload and calls a tool that must be confirmed.
fn looking(uploads: &Arc<Once>, halted: PendingApprovals) -> (Setup, RunInput, Runtime) {
    let manifest = [
        "policies: { tools_allowed: true }",
        "tools: { allowed: [delete] }",
        "modalities: { input: [text, image], output: [text] }",
    ];
    let delete = info("delete").with_confirmation().function(async |_, _| Ok(json!({ "deleted": true })));
    let mut setup = Setup::with_manifest(&manifest, []).tool(delete);
    let provider = Scripted::new([calls(&[("c1", "delete", "{}")]), answer()]); // the answer is repeated
    setup.provider = Arc::new(provider.accepting_images(&["image/webp"]));
    write(
        &setup.directory,
        "schema.json",
        r##"{"input": {"type": "object", "properties": {"image": {"$ref": "#/$defs/MediaInput"}}},
            "data": {"type": "object", "properties": {"result": {"type": "string"}}}}"##,
    );
    let access = Access { uploads: Some(Arc::clone(uploads) as Arc<dyn Uploads>), ..Access::default() };
    let runtime = setup.builder().media(access).pending_approvals(halted).build().unwrap();
    (setup, input(r#"{"image": {"type": "upload_ref", "upload_id": "upl_1"}}"#), runtime)
}

/// Halts a run, looks at what is stored with its id, and continues it.
async fn continues_after_its_upload_expired(halted: PendingApprovals, look: impl Fn(&str)) {
    let uploads = Arc::new(Once::default());
    let (setup, image, runtime) = looking(&uploads, halted);
    let envelope = runtime.run(&setup.module(), image, RunOptions::default()).await;
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
    continues_after_its_upload_expired(PendingApprovals::default(), |_| {}).await;
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
    continues_after_its_upload_expired(PendingApprovals::in_directory(place.path()), look).await;
    let left = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path());
    let left: Vec<_> = left.map(|path| path.extension().unwrap().to_owned()).collect();
    assert_eq!(left, ["used"]);
}

/// Copies the halted runs of a directory and then its stored runs, as a program leaves them that is killed.
fn copy(from: &Path) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for name in ["halted", "runs"] {
        copy_directory(&from.join(name), &place.path().join(name));
    }
    place
}

fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).into_iter().flatten().flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy_directory(&path, &to),
            // The program may remove it meanwhile.
            false => drop(std::fs::copy(path, to)),
        }
    }
}

/// A run that was halted and continued, with a copy of its directories for each time at which it could be killed.
struct Killed {
    setup: Setup,
    uploads: Arc<Once>,
    /// The id of the stored run that continued.
    run: String,
    copies: Vec<tempfile::TempDir>,
}

fn halted_in(place: &Path) -> PendingApprovals {
    PendingApprovals::in_directory(place.join("halted"))
}

impl Killed {
    async fn new() -> Self {
        let (place, uploads) = (tempfile::tempdir().unwrap(), Arc::new(Once::default()));
        let (setup, image, runtime) = looking(&uploads, halted_in(place.path()));
        let module = setup.module();
        let envelope = runtime.run(&module, image, RunOptions::default()).await;
        let details = envelope.error().unwrap().details.as_ref().unwrap().to_serde();
        let mut options = RunOptions::default();
        let id = details["halted"]["id"].as_str().unwrap().to_owned();
        options.approval = Some(Approval { id, decision: Decision::yes() });
        let record = record_of(input("null"), options);
        let run = StoredRuns::in_directory(place.path().join("runs")).create(record).unwrap();
        let options = run.options(&run.record().options);
        let context = run.context(RunContext::default());
        let mut chunks = runtime.prepare(&module, input("null"), options, context).unwrap();
        let mut copies = vec![copy(place.path())];
        while setup.provider.requests().len() == 1 {
            let _ = tokio::time::timeout(Duration::from_millis(1), chunks.next()).await;
            copies.push(copy(place.path()));
        }
        Self { setup, uploads, run: run.id().to_owned(), copies }
    }

    /// Continues the run with the directories `halted` and `runs` of these places.
    async fn resumed(&self, halted: &Path, runs: &Path) -> Envelope {
        let runtime = self.setup.builder().pending_approvals(halted_in(halted)).build().unwrap();
        let run = StoredRuns::in_directory(runs.join("runs")).open(&self.run).unwrap();
        let options = run.options(&RunOptions::default());
        let context = run.context(RunContext::default());
        runtime.prepare(&self.setup.module(), input("null"), options, context).unwrap().fold().await
    }

    /// Returns the path of the log of the run's tool calls.
    fn log_in(&self, place: &Path) -> std::path::PathBuf {
        place.join("runs").join(format!("{}.calls", self.run))
    }
}

#[tokio::test]
async fn run_that_is_killed_after_its_confirmation_has_its_media() {
    let killed = Killed::new().await;
    for copied in killed.copies.iter().map(tempfile::TempDir::path) {
        let log = std::fs::read_to_string(killed.log_in(copied)).unwrap_or_default();
        let envelope = killed.resumed(copied, copied).await;
        if code(&envelope) == Some("E4014") {
            // Killed between the claim and its entry: another program may have claimed the run.
            assert!(log.contains("\"continued\"") && !log.contains("\"claimed\""), "{:?}", envelope.error());
            continue;
        }
        assert!(envelope.is_ok(), "{:?}", envelope.error());
        let requests = killed.setup.provider.requests();
        let [first, last] =
            [&requests[0], &requests[requests.len() - 1]].map(|request| &request.messages.messages()[..2]);
        assert_eq!(first, last, "the model sees the same image");
    }
    assert_eq!(killed.uploads.0.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn run_that_logged_its_decision_continues_only_if_no_other_has_continued() {
    let killed = Killed::new().await;
    let [first, last] = [&killed.copies[0], &killed.copies[killed.copies.len() - 1]].map(|it| it.path());
    // As a program leaves the log that is killed before its claim.
    let log = std::fs::read_to_string(killed.log_in(last)).unwrap();
    let (before, _) = log.split_once("{\"claimed\"").unwrap();
    std::fs::write(killed.log_in(last), before).unwrap();
    let requests = killed.setup.provider.requests().len();
    let refused = killed.resumed(last, last).await;
    assert_eq!(code(&refused), Some("E4014"), "{:?}", refused.error());
    assert_eq!(killed.setup.provider.requests().len(), requests);
    assert!(killed.resumed(first, last).await.is_ok(), "the halted run is not used");
    assert!(std::fs::read_to_string(killed.log_in(last)).unwrap().contains("\"claimed\""));
}
