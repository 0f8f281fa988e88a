//! The store of halted runs: in memory, or in a directory that other processes read too.

use std::{
    cmp::Reverse,
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use cog_json::{ToJson as _, Value};
use cog_media::{Media, SourceContent};
use cog_module::Module;
use cog_spec::{Code, ErrorBody};
use cog_store::{Durability, Key, KeyedStore, Layout, Limits, Lookup, StoreError, private::ABANDONED};

use super::state::{HaltedState, Progressed};
use crate::{
    RunOptions, clock, error,
    media_files::MediaFiles,
    parts_state::{CompositionState, HaltedPart},
};

/// The maximum bytes of a state, and of the media of its input in a directory.
const MAX_BYTES: u64 = 64 << 20;

/// The maximum bytes of the media of all clients in a directory.
const MAX_CLIENT_MEDIA: u64 = 4 * MAX_BYTES;

/// The extension of the directory with the media of a state.
const MEDIA: &str = "media";

/// The limits of the operator's runs, and of the runs of all clients together. Beyond them the oldest are removed.
const LIMITS: Limits = Limits { entries: 1_000, bytes: 4 * MAX_BYTES, entry_bytes: MAX_BYTES };

/// The store of runs that wait for a confirmation. Clones share it.
#[derive(Debug, Clone)]
pub struct PendingApprovals(Arc<Storage>);

#[derive(Debug)]
struct Storage {
    states: KeyedStore,
    /// The media of states in memory. In a directory, the media of a state are in `ID.media` next to it.
    media: MediaInMemory,
}

/// A run that waits for a confirmation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PendingApproval {
    /// The identifier with which the run continues.
    pub id: String,
    /// The module, as [`Runtime::load`](crate::Runtime::load) finds it.
    pub module: String,
    /// Whether the user chose the module for this run. Otherwise a program that continues it loads it with
    /// [`ModuleRef::Found`](crate::ModuleRef::Found).
    pub is_trusted_for_run: bool,
    /// The provider that the run called, by name.
    pub provider: Option<String>,
    /// The model of that provider.
    pub model: Option<String>,
    /// The tool that was not executed.
    pub tool: String,
    /// The identifier of the call.
    pub call_id: String,
    /// The arguments of the call.
    pub arguments: Value,
    /// The creation time in milliseconds since 1970.
    pub created_ms: u64,
}

/// A store in memory, which ends with this process.
impl Default for PendingApprovals {
    fn default() -> Self {
        Self::new(KeyedStore::in_memory(LIMITS))
    }
}

impl PendingApprovals {
    /// Creates a store in a directory, which is created at the first use. Only this user may read its files.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        // On disk before the id is shown, and the claim before the confirmed call: after a power cut a confirmation counts once.
        let layout = Layout::DirectoryPerOwner;
        let durability = Durability::PowerCut;
        Self::new(KeyedStore::in_directory(directory, layout, durability, LIMITS))
    }

    fn new(states: KeyedStore) -> Self {
        Self(Arc::new(Storage { states, media: MediaInMemory::default() }))
    }

    /// Stores a state, with media of its input.
    ///
    /// # Errors
    /// E4000 if the state is too large or cannot be written.
    async fn store(&self, state: HaltedState, media: Vec<(String, Media)>) -> Result<(), ErrorBody> {
        let storage = Arc::clone(&self.0);
        let written = tokio::task::spawn_blocking(move || storage.store(state, &media)).await;
        written.map_err(|error| crate::error::from_task(&error))?.map_err(|reason| {
            let message = format!("the run needs a confirmation, but its state cannot be stored: {reason}");
            ErrorBody::new(Code::InternalError, message)
                .suggest("Set `tools.state_dir` to a directory that you own.")
        })
    }

    /// Stores a state with media of its input, each with its URL or upload. Returns the error that ends its run.
    pub(super) async fn halt(&self, state: HaltedState, media: Vec<(String, Media)>) -> ErrorBody {
        let error = state.error();
        match self.store(state, media).await {
            Ok(()) => error,
            Err(failed) => failed,
        }
    }

    /// Returns the state of a run of this owner.
    ///
    /// # Errors
    /// E4013 for an id that is unknown or belongs to another owner, E4014 for one that was used.
    pub(super) fn open(&self, id: &str, owner: Option<&str>) -> Result<HaltedState, ErrorBody> {
        match self.0.states.get(&Key::new(owner, id)) {
            Ok(Lookup::Claimed) => Err(used(id)),
            Ok(Lookup::Missing) | Err(_) => Err(unknown(id)),
            Ok(Lookup::Value(text)) => {
                let state = str::from_utf8(&text).ok().and_then(HaltedState::read);
                state.filter(|state| state.owner.as_deref() == owner).ok_or_else(|| unknown(id))
            }
        }
    }

    /// Returns the stored media of a run's input, by their URLs and uploads, until the run continues. Blocks on the disk.
    pub(super) fn media(&self, state: &HaltedState) -> HashMap<String, SourceContent> {
        self.0.media_of(&state.id, state.owner.as_deref()).open_all(&state.media)
    }

    /// Marks the state of a run as used, calls `claimed`, and removes the state with its media. Only one caller succeeds.
    ///
    /// # Errors
    /// E4014 if another caller was faster.
    pub(super) fn claim(
        &self,
        id: &str,
        owner: Option<&str>,
        claimed: impl FnOnce(),
    ) -> Result<(), ErrorBody> {
        let Storage { states, media } = &*self.0;
        // First the claim, which is on disk when it returns: a program that is killed in between executes nothing twice.
        if !states.claim(&Key::new(owner, id)) {
            return Err(used(id));
        }
        claimed();
        match states.directory_of(owner) {
            Some(_) => self.0.media_of(id, owner).remove_all(),
            None => media.release_removed(states),
        }
        Ok(())
    }

    /// Returns a run of this owner that waits for a confirmation.
    ///
    /// # Errors
    /// E4013 for an id that is unknown or belongs to another owner, E4014 for one that was used.
    pub fn get(&self, id: &str, owner: Option<&str>) -> Result<PendingApproval, ErrorBody> {
        let state = self.open(id, owner)?;
        let (call, _) = state.halted_call().ok_or_else(|| unknown(id))?;
        Ok(PendingApproval {
            id: state.id.clone(),
            module: state.directory.clone().unwrap_or_else(|| state.module.clone()),
            is_trusted_for_run: state.is_trusted_for_run,
            provider: state.provider.clone(),
            model: state.model.clone(),
            tool: call.name.clone(),
            call_id: call.id.clone(),
            arguments: Value::parse(&call.arguments).unwrap_or_default(),
            created_ms: state.created_ms,
        })
    }
}

impl Storage {
    /// Stores a state with media of its input. Blocks on the disk.
    fn store(&self, state: HaltedState, media: &[(String, Media)]) -> Result<(), StoreError> {
        let owner = state.owner.clone();
        let owner = owner.as_deref();
        let user = owner.unwrap_or_default();
        let bytes = media.iter().map(|(_, item)| item.bytes().len()).sum();
        let has_room = owner.is_none() || self.make_room_on_disk(owner, bytes);
        let files = self.media_of(&state.id, owner);
        let media = if has_room { files.add_all(user, media) } else { Vec::new() };
        let state = HaltedState { media, ..state };
        let key = Key::new(owner, &*state.id);
        let stored = self.states.insert(&key, state.to_text().as_bytes(), None, clock::now());
        stored.inspect_err(|_| files.release(user, state.media_names()))?;
        match self.states.directory_of(owner) {
            Some(directory) => self.remove_left_media(&directory, owner),
            None => {
                let names = state.media_names().map(str::to_owned).collect();
                self.media.keep(key, MediaNames { owner: user.to_owned(), names }, &self.states);
            }
        }
        Ok(())
    }

    /// Returns where the media of a state are stored.
    fn media_of(&self, id: &str, owner: Option<&str>) -> Arc<MediaFiles> {
        match self.states.directory_of(owner) {
            Some(directory) => {
                Arc::new(MediaFiles::below(&directory.join(format!("{id}.{MEDIA}")), MAX_BYTES))
            }
            None => self.media.files(),
        }
    }

    /// Removes media of clients in the directory until there is room for these bytes of a client: the oldest media of the client
    /// whose media have the most. A run without its media opens their sources again. Returns false if this client would have the
    /// most, and has no other media.
    fn make_room_on_disk(&self, owner: Option<&str>, needed: u64) -> bool {
        let Some(own) = self.states.directory_of(owner) else { return true };
        let Some(clients) = own.parent() else { return true };
        let needed = needed.min(MAX_BYTES); // of one state no more are stored
        let mut stored: HashMap<PathBuf, Vec<MediaOnDisk>> = HashMap::new();
        for client in std::fs::read_dir(clients).into_iter().flatten().flatten() {
            stored.insert(client.path(), media_in(&client.path()));
        }
        stored.entry(own.clone()).or_default();
        let mut total = needed + stored.values().flatten().map(|media| media.bytes).sum::<u64>();
        while total > MAX_CLIENT_MEDIA {
            let sums = stored.iter().map(|(client, media)| {
                let sum: u64 = media.iter().map(|media| media.bytes).sum();
                (if *client == own { sum + needed } else { sum }, client.clone())
            });
            let payer = sums.max().map(|(_, payer)| payer).unwrap_or_default();
            let Some(oldest) = stored.get_mut(&payer).and_then(Vec::pop) else { return false };
            MediaFiles::below(&oldest.path, MAX_BYTES).remove_all();
            total -= oldest.bytes;
        }
        true
    }

    /// Removes media without a state, except media that a run is storing which is being halted.
    fn remove_left_media(&self, directory: &Path, owner: Option<&str>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_media = path.extension().is_some_and(|extension| extension == MEDIA);
            let Some(id) = path.file_stem().and_then(|name| name.to_str()).filter(|_| is_media) else {
                continue;
            };
            let modified = entry.metadata().and_then(|about| about.modified());
            let age = modified.ok().and_then(|at| clock::now().duration_since(at).ok()).unwrap_or_default();
            if age > ABANDONED && !self.states.contains(&Key::new(owner, id)) {
                self.media_of(id, owner).remove_all();
            }
        }
    }
}

/// The media of a state in a directory.
struct MediaOnDisk {
    path: PathBuf,
    modified: SystemTime,
    bytes: u64,
}

/// Returns the media of all states of a client, the oldest last.
fn media_in(directory: &Path) -> Vec<MediaOnDisk> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != MEDIA) {
            continue;
        }
        let modified = entry.metadata().and_then(|about| about.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let files = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let bytes = files.filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum();
        found.push(MediaOnDisk { path, modified, bytes });
    }
    found.sort_by_key(|media| Reverse(media.modified));
    found
}

fn used(id: &str) -> ErrorBody {
    let message = format!("the halted run {} has continued already; a confirmation counts once", shown(id));
    ErrorBody::new(Code::CheckpointInvalid, message)
        .with_recoverable(false)
        .suggest("Run the module again. If a tool needs a confirmation, the run gets a new id.")
        .with_details(Value::from(serde_json::json!({ "reason": "used" })))
}

fn unknown(id: &str) -> ErrorBody {
    ErrorBody::new(Code::SessionExpired, format!("there is no halted run {}", shown(id)))
        .suggest("Check the id in `error.details.halted.id`, or run the module again.")
        .with_details(Value::from(serde_json::json!({ "reason": "unknown" })))
}

/// Returns an id for a message.
fn shown(id: &str) -> String {
    let short: String = id.chars().take(60).collect();
    short.to_json()
}

/// The media of halted runs in memory.
#[derive(Debug)]
struct MediaInMemory {
    files: Arc<MediaFiles>,
    /// The media of each state.
    names: Mutex<HashMap<Key, MediaNames>>,
}

/// The media of a state, and the owner to whom they count.
#[derive(Debug)]
struct MediaNames {
    owner: String,
    names: Vec<String>,
}

impl Default for MediaInMemory {
    fn default() -> Self {
        Self { files: Arc::new(MediaFiles::in_memory()), names: Mutex::default() }
    }
}

impl MediaInMemory {
    fn files(&self) -> Arc<MediaFiles> {
        Arc::clone(&self.files)
    }

    /// Keeps media as long as their state, which was stored before: it may have been removed since.
    fn keep(&self, state: Key, media: MediaNames, states: &KeyedStore) {
        self.lock().insert(state, media);
        self.release_removed(states);
    }

    /// Releases the media of states that were removed or claimed.
    fn release_removed(&self, states: &KeyedStore) {
        self.lock().retain(|state, media| {
            let is_stored = states.contains(state);
            if !is_stored {
                self.files.release(&media.owner, media.names.iter().map(String::as_str));
            }
            is_stored
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, MediaNames>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// Halts a composition with a part that waits for a confirmation.

/// Stores a composition whose parts wait for a confirmation, and returns the error that ends it: the error of the
/// first of these parts, with the id of the composition. `media` are the input's media whose sources can expire.
pub(crate) async fn halt_parts(
    halted: &PendingApprovals,
    module: &Arc<Module>,
    input: &Value,
    media: Vec<(String, Media)>,
    options: &RunOptions,
    parts: CompositionState,
) -> ErrorBody {
    let Some(first) = parts.halted.first().cloned() else {
        return ErrorBody::new(Code::InternalError, "no part of the halted composition waits");
    };
    let opened = open(halted.clone(), first.id.clone(), options.owner.clone()).await;
    let state = opened.and_then(|part| composition_state(module, input, options, part, &first));
    match state {
        Ok(state) => halted.halt(HaltedState { parts: Some(parts), ..state }, media).await,
        Err(error) => error,
    }
}

/// Reads the state of a part, without blocking the event loop.
async fn open(halted: PendingApprovals, id: String, owner: Option<String>) -> Result<HaltedState, ErrorBody> {
    let opened = tokio::task::spawn_blocking(move || halted.open(&id, owner.as_deref())).await;
    opened.unwrap_or_else(|failed| Err(error::from_task(&failed)))
}

/// Returns the state of the composition, which shows the call that its part waits for.
fn composition_state(
    module: &Arc<Module>,
    input: &Value,
    options: &RunOptions,
    part: HaltedState,
    first: &HaltedPart,
) -> Result<HaltedState, ErrorBody> {
    let path = match &part.part {
        Some(inner) => format!("{}/{inner}", first.path),
        None => first.path.clone(),
    };
    let state = HaltedState::new(module, input, options, part.round)?;
    let progressed = Progressed { notes: part.progressed.notes, ..Progressed::default() };
    let provider = part.provider;
    let model = part.model;
    Ok(HaltedState { part: Some(path), progressed, provider, model, ..state })
}

#[cfg(test)]
mod tests {
    use cog_media::{MediaDeclaration, MediaRules, Store, check, decode_base64};

    use super::*;

    async fn image(base64: &str) -> Media {
        let stored = decode_base64(base64, Store::with_limit(100)).unwrap();
        check(stored, &MediaDeclaration::default(), &MediaRules::default(), None).await.unwrap()
    }

    #[tokio::test]
    async fn media_of_the_owner_with_the_most_are_removed_and_states_stay() {
        let first = image("R0lGODlhAQABAIAAAP///wAAACH5BAAAAAAALAAAAAABAAEAAAICRAEAOw==").await;
        let next = image("UklGRh4AAABXRUJQVlA4TBIAAAAvA0AAAA8Q87//8x8O5iGi/xE=").await;
        let states = KeyedStore::in_memory(LIMITS);
        let files = Arc::new(MediaFiles::in_memory_up_to(first.bytes().len()));
        let in_memory = MediaInMemory { files, ..MediaInMemory::default() };
        let keys = [1, 2].map(|number| Key::new(Some("ada"), format!("halt_{number:032x}")));
        let mut names = Vec::new();
        for (key, item) in keys.iter().zip([first, next]) {
            let media = [("upl_1".to_owned(), item)];
            let stored = in_memory.files.add_all("ada", &media);
            names.push(stored[0].file.clone());
            states.insert(key, b"{}", None, clock::now()).unwrap();
            let stored = stored.into_iter().map(|media| media.file).collect();
            in_memory.keep(key.clone(), MediaNames { owner: "ada".to_owned(), names: stored }, &states);
        }
        assert_eq!(keys.clone().map(|key| states.contains(&key)), [true, true]);
        let is_stored = |name: &String| in_memory.files.open(name).is_ok();
        assert_eq!(names.iter().map(is_stored).collect::<Vec<_>>(), [false, true]);
        assert!(states.claim(&keys[0]) && states.claim(&keys[1]));
        in_memory.release_removed(&states);
        assert!(!is_stored(&names[1]));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test makes its own files")]
    fn client_that_fills_the_directory_with_media_loses_its_oldest() {
        const MIB: u64 = 1 << 20;
        let place = tempfile::tempdir().unwrap();
        let layout = Layout::DirectoryPerOwner;
        let states = KeyedStore::in_directory(place.path(), layout, Durability::PowerCut, LIMITS);
        let storage = Storage { states, media: MediaInMemory::default() };
        let media_of = |owner: &str, number: u64| {
            let directory = storage.states.directory_of(Some(owner)).unwrap();
            directory.join(format!("halt_{number:032x}.{MEDIA}"))
        };
        let store = |owner: &str, number: u64, bytes: u64, age: u64| {
            let directory = media_of(owner, number);
            std::fs::create_dir_all(&directory).unwrap();
            // Sparse: only its length counts.
            let file = std::fs::File::create(directory.join(format!("{}.webp", "0".repeat(64)))).unwrap();
            file.set_len(bytes).unwrap();
            let modified = clock::now() - std::time::Duration::from_secs(age);
            std::fs::File::open(&directory).unwrap().set_modified(modified).unwrap();
        };
        store("bob", 0, 40 * MIB, 1_000);
        store("alice", 1, 100 * MIB, 10);
        store("alice", 2, 100 * MIB, 20);
        assert!(storage.make_room_on_disk(Some("carol"), 16 * MIB));
        assert!(media_of("alice", 2).exists(), "exactly the limit fits");
        assert!(storage.make_room_on_disk(Some("carol"), 17 * MIB));
        assert!(!media_of("alice", 2).exists());
        assert!(media_of("alice", 1).exists() && media_of("bob", 0).exists());
        store("dora", 3, 60 * MIB, 5);
        assert!(storage.make_room_on_disk(Some("bob"), 64 * MIB));
        assert!(!media_of("bob", 0).exists(), "with the new media, bob has the most");
        assert!(media_of("alice", 1).exists());
        store("bob", 0, 40 * MIB, 5);
        store("carol", 4, 50 * MIB, 5);
        for (owner, number) in [("alice", 1), ("alice", 2)] {
            store(owner, number, 25 * MIB, 5);
        }
        assert!(!storage.make_room_on_disk(Some("eve"), 64 * MIB), "eve has the most, and nothing to remove");
        assert!(media_of("dora", 3).exists() && media_of("alice", 2).exists());
    }
}
