//! The store of halted runs: in memory, or in a directory that other processes read too.

mod directory;
mod memory;
mod stored;

use std::{collections::HashMap, path::PathBuf, sync::Arc};

use cog_json::{ToJson as _, Value};
use cog_media::{Fetched, Media};
use cog_spec::{Code, ErrorBody};

use self::{
    directory::Directory,
    memory::Memory,
    stored::{MAX_BYTES, Stored, is_id},
};
use super::state::HaltedState;
use crate::private_files::MediaFiles;

/// The store of runs that wait for a confirmation. Clones share it.
#[derive(Debug, Clone)]
pub struct HaltedRuns(Arc<Storage>);

#[derive(Debug)]
enum Storage {
    Memory(Memory),
    Directory(Directory),
}

/// A run that waits for a confirmation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HaltedRun {
    /// The identifier with which the run continues.
    pub id: String,
    /// The module, as [`Runtime::load`](crate::Runtime::load) finds it.
    pub module: String,
    /// Whether the user chose the module for this run. Otherwise a program that continues it loads it with
    /// [`Runtime::load_found`](crate::Runtime::load_found).
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

impl Default for HaltedRuns {
    fn default() -> Self {
        Self::in_memory()
    }
}

impl HaltedRuns {
    /// Creates a store that ends with this process.
    pub fn in_memory() -> Self {
        Self(Arc::new(Storage::Memory(Memory::default())))
    }

    /// Creates a store in a directory, which is created at the first use. Only this user may read its files.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Storage::Directory(Directory::new(directory.into()))))
    }

    /// Stores a state, with media of its input.
    ///
    /// # Errors
    /// E4000 if the state is too large or cannot be written.
    async fn store(&self, state: HaltedState, media: Vec<(String, Media)>) -> Result<(), ErrorBody> {
        let storage = Arc::clone(&self.0);
        let write = move || {
            if let Storage::Memory(memory) = &*storage {
                memory.make_room(state.owner.as_deref(), &media);
            }
            let files = storage.media_of(&state.id, state.owner.as_deref());
            let state = HaltedState { media: files.add_all(&media), ..state };
            storage.write(&state).inspect_err(|_| files.release(state.media_names()))
        };
        let written = tokio::task::spawn_blocking(write).await;
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
        let stored = match (&*self.0, is_id(id)) {
            (_, false) => Stored::Unknown,
            (Storage::Memory(memory), _) => memory.read(id),
            (Storage::Directory(directory), _) => directory.of(owner).read(id),
        };
        match stored {
            Stored::Used => Err(used(id)),
            Stored::Unknown => Err(unknown(id)),
            Stored::Text(text) => {
                let state = HaltedState::read(&text).filter(|state| state.owner.as_deref() == owner);
                state.ok_or_else(|| unknown(id))
            }
        }
    }

    /// Returns the stored media of a run's input, by their URLs and uploads, until the run continues. Blocks on the disk.
    pub(super) fn media(&self, state: &HaltedState) -> HashMap<String, Fetched> {
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
        let is_first = match &*self.0 {
            Storage::Memory(memory) => memory.claim(id),
            Storage::Directory(directory) => directory.of(owner).claim(id),
        };
        if !is_first {
            return Err(used(id));
        }
        claimed();
        if let Storage::Directory(directory) = &*self.0 {
            directory.of(owner).clear(id);
        }
        Ok(())
    }

    /// Returns a run of this owner that waits for a confirmation.
    ///
    /// # Errors
    /// E4013 for an id that is unknown or belongs to another owner, E4014 for one that was used.
    pub fn get(&self, id: &str, owner: Option<&str>) -> Result<HaltedRun, ErrorBody> {
        let state = self.open(id, owner)?;
        let (call, _) = state.halted_call().ok_or_else(|| unknown(id))?;
        Ok(HaltedRun {
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
    fn write(&self, state: &HaltedState) -> Result<(), String> {
        let text = state.to_text();
        if text.len() > MAX_BYTES {
            return Err(format!("it has {} bytes; at most {MAX_BYTES} are stored", text.len()));
        }
        match self {
            Self::Memory(memory) => {
                let media = state.media_names().map(str::to_owned).collect();
                memory.store(&state.id, state.owner.as_deref(), text, media);
                Ok(())
            }
            Self::Directory(directory) => {
                let owner = state.owner.as_deref();
                directory.of(owner).store(&state.id, &text).map_err(|error| error.to_string())?;
                if owner.is_some() {
                    directory.prune_clients();
                }
                Ok(())
            }
        }
    }

    /// Returns where the media of a state are stored.
    fn media_of(&self, id: &str, owner: Option<&str>) -> Arc<MediaFiles> {
        match self {
            Self::Memory(memory) => memory.media(),
            Self::Directory(directory) => Arc::new(directory.of(owner).media_of(id)),
        }
    }
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
