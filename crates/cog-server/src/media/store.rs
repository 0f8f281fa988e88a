use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::SystemTime,
};

use cog_media::{Media, MediaError, MediaRules, SourceContent, Store, Tool, Uploads, check};
use tokio::{task::JoinSet, time::Instant};

use super::{
    DeclaredUpload, Entry, Progress, State, UploadError, UploadRequest, UploadSettings, UploadTicket, rfc3339,
};
use crate::media;

/// Uploads and generated media on disk, each with an owner and an expiry.
///
/// The files have no name and are removed when the process ends. Clones share one store: the runtime opens what the server
/// received ([`Uploads`]).
#[derive(Clone)]
pub struct MediaStore(Arc<Shared>);

struct Shared {
    settings: UploadSettings,
    tool: Option<Arc<Tool>>,
    stored: Mutex<StoredFiles>,
}

#[derive(Default)]
struct StoredFiles {
    entries: HashMap<String, Entry>,
    /// The expired ids with their owners; at most as many as there may be entries.
    expired: VecDeque<(String, String)>,
    /// When the next entry expires, or earlier.
    next_expiry: Option<Instant>,
    /// The task that removes expired files, while there are files.
    sweeper: JoinSet<()>,
    is_sweeping: bool,
}

/// A lease of an upload that came with a request. Dropping it removes the upload.
pub(crate) struct UploadLease {
    store: MediaStore,
    id: String,
    /// The run may be resumed.
    is_resumable: bool,
}

impl UploadLease {
    /// Retains the upload after the lease ends, until another one needs its space: the run may be resumed.
    pub(crate) fn retain(&mut self) {
        self.is_resumable = true;
    }
}

impl Drop for UploadLease {
    fn drop(&mut self) {
        let mut stored = self.store.lock();
        match stored.entries.get_mut(&self.id).filter(|_| self.is_resumable) {
            Some(entry) => entry.is_retained = true,
            None => drop(stored.entries.remove(&self.id)),
        }
    }
}

/// An upload that a request is sending. When it is dropped, the received bytes are retained.
pub(super) struct Receiving {
    store: MediaStore,
    id: String,
    owner: String,
    declared: DeclaredUpload,
    bytes: Option<Store>,
    received: u64,
}

impl MediaStore {
    /// Creates an empty store. The tool reads audio, video and documents; without it only images are accepted.
    pub fn new(settings: UploadSettings, tool: Option<Arc<Tool>>) -> Self {
        Self(Arc::new(Shared { settings, tool, stored: Mutex::default() }))
    }

    /// Stores a generated file for the client of the run, and returns its id and expiry. Must be called inside a Tokio runtime.
    pub(super) fn publish(&self, owner: &str, media: Media) -> Result<(String, String), UploadError> {
        let length = media.bytes().len();
        let state = State::Complete(media);
        let (id, expires_at) = self.add("med_", owner, (length, 0), DeclaredUpload::default(), state)?;
        Ok((id, rfc3339(expires_at)))
    }

    /// Creates an upload.
    pub(crate) fn create(&self, owner: &str, wanted: UploadRequest) -> Result<UploadTicket, UploadError> {
        let declared = wanted.declared()?;
        let max_bytes = declared.max_bytes;
        let media_type = declared.expected.media_type.clone();
        let reserved = declared.length.unwrap_or(0);
        let state = State::Open(declared.store());
        let (id, expires_at) = self.add("upl_", owner, (0, reserved), declared, state)?;
        Ok(UploadTicket { id, media_type, expires_at, max_bytes })
    }

    /// Returns a lease of an upload.
    pub(crate) fn lend(&self, id: &str) -> UploadLease {
        UploadLease { store: self.clone(), id: id.to_owned(), is_resumable: false }
    }

    /// Removes an upload or a generated file. A request that is sending it fails.
    pub(crate) fn remove(&self, id: &str, owner: &str) -> Result<(), UploadError> {
        let mut stored = self.lock();
        stored.get_owned(id, owner)?;
        stored.entries.remove(id);
        Ok(())
    }

    /// Returns the progress of an upload.
    pub(crate) fn progress(&self, id: &str, owner: &str) -> Result<Progress, UploadError> {
        self.lock().get_owned(id, owner).map(|entry| entry.progress(id))
    }

    /// Returns a complete file, and when it expires.
    pub(super) fn media(&self, id: &str, owner: &str) -> Result<(Media, Instant), UploadError> {
        match self.lock().get_owned(id, owner)? {
            Entry { state: State::Complete(media), until, .. } => Ok((media.clone(), *until)),
            _ => Err(UploadError::unknown()),
        }
    }

    /// Continues an upload after `after` bytes; `None` starts it again. The space for `announced` bytes is reserved.
    pub(super) fn begin(
        &self,
        id: &str,
        owner: &str,
        after: Option<u64>,
        announced: u64,
    ) -> Result<Receiving, UploadError> {
        let mut stored = self.lock();
        let entry = stored.get_owned(id, owner)?;
        match (&entry.state, after) {
            (State::Complete(_), _) => return Err(UploadError::Complete),
            (State::Receiving, _) => return Err(UploadError::Busy),
            (State::Open(_), Some(first)) if first != entry.received => {
                return Err(UploadError::WrongOffset { first, received: entry.received });
            }
            (State::Open(_), _) => {}
        }
        if after.is_none() {
            entry.state = State::Open(entry.declared.store());
            entry.received = 0;
        }
        let more = entry.growth_to(announced);
        stored.make_room(owner, |stored| stored.has_room(owner, more, &self.0.settings))?;
        let entry = stored.get_owned(id, owner)?;
        entry.reserved = entry.reserved.max(announced);
        let State::Open(bytes) = std::mem::replace(&mut entry.state, State::Receiving) else {
            return Err(UploadError::Busy);
        };
        let declared = entry.declared.clone();
        let received = entry.received;
        Ok(Receiving {
            store: self.clone(),
            id: id.to_owned(),
            owner: owner.to_owned(),
            declared,
            bytes: Some(bytes),
            received,
        })
    }

    fn add(
        &self,
        prefix: &str,
        owner: &str,
        (received, reserved): (u64, u64),
        declared: DeclaredUpload,
        state: State,
    ) -> Result<(String, SystemTime), UploadError> {
        let settings = &self.0.settings;
        let mut stored = self.lock();
        stored.make_room(owner, |stored| {
            stored.has_slot(owner, settings)?;
            stored.has_room(owner, received.max(reserved), settings)
        })?;
        let id = generate_id(prefix)?;
        let until = Instant::now() + settings.ttl;
        let expires_at = media::now() + settings.ttl;
        let entry = Entry {
            owner: owner.to_owned(),
            until,
            expires_at,
            declared,
            is_retained: false,
            received,
            reserved,
            state,
        };
        stored.entries.insert(id.clone(), entry);
        stored.next_expiry = Some(stored.next_expiry.map_or(until, |next| next.min(until)));
        self.start_sweeping(&mut stored);
        Ok((id, expires_at))
    }

    /// Starts the task that removes expired files, unless it is running.
    fn start_sweeping(&self, stored: &mut StoredFiles) {
        if stored.is_sweeping {
            return;
        }
        stored.is_sweeping = true;
        while stored.sweeper.try_join_next().is_some() {}
        stored.sweeper.spawn(sweep(Arc::downgrade(&self.0)));
    }

    /// Returns when the next file expires. Without files the sweeper ends.
    fn next_expiry(&self) -> Option<Instant> {
        let mut stored = self.lock();
        stored.is_sweeping = stored.next_expiry.is_some();
        stored.next_expiry
    }

    /// Locks the entries, without those that have expired.
    fn lock(&self) -> MutexGuard<'_, StoredFiles> {
        let mut stored = self.0.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.expire(Instant::now(), self.0.settings.max_files);
        stored
    }
}

/// Removes expired files until there are none left.
async fn sweep(shared: Weak<Shared>) {
    while let Some(next) = shared.upgrade().and_then(|shared| MediaStore(shared).next_expiry()) {
        tokio::time::sleep_until(next).await;
    }
}

impl Uploads for MediaStore {
    fn open(&self, id: &str, owner: Option<&str>) -> Result<SourceContent, MediaError> {
        match self.media(id, owner.unwrap_or_default()) {
            Ok((media, _)) => {
                Ok(SourceContent { stored: media.bytes().clone(), declared: media.hint().map(str::to_owned) })
            }
            Err(UploadError::Media(error)) => Err(error),
            Err(_) => Err(MediaError::Upload { expired: false }),
        }
    }
}

impl StoredFiles {
    /// Returns the entry of this owner. Another owner's entry counts as unknown.
    fn get_owned(&mut self, id: &str, owner: &str) -> Result<&mut Entry, UploadError> {
        let expired = self.expired.iter().any(|(expired, of)| expired == id && of == owner);
        let entry = self.entries.get_mut(id).filter(|entry| entry.owner == owner);
        entry.ok_or(UploadError::Media(MediaError::Upload { expired }))
    }

    /// Removes expired entries. Looks at them only where one has expired.
    fn expire(&mut self, now: Instant, remembered: usize) {
        if self.next_expiry.is_none_or(|next| next > now) {
            return;
        }
        let gone = self.entries.extract_if(|_, entry| entry.until <= now);
        self.expired.extend(gone.map(|(id, entry)| (id, entry.owner)));
        let past = self.expired.len().saturating_sub(remembered);
        self.expired.drain(..past);
        self.next_expiry = self.entries.values().map(|entry| entry.until).min();
    }

    /// Removes retained uploads, the oldest first, until there is space.
    fn make_room(
        &mut self,
        owner: &str,
        has_room: impl Fn(&Self) -> Result<(), UploadError>,
    ) -> Result<(), UploadError> {
        while let Err(full) = has_room(self) {
            let may_go =
                |entry: &Entry| entry.is_retained && (entry.owner == owner || !full.is_client_limit());
            let oldest =
                self.entries.iter().filter(|(_, entry)| may_go(entry)).min_by_key(|(_, entry)| entry.until);
            let Some(id) = oldest.map(|(id, _)| id.clone()) else { return Err(full) };
            self.expired.extend(self.entries.remove(&id).map(|entry| (id, entry.owner)));
        }
        Ok(())
    }

    fn has_slot(&self, owner: &str, settings: &UploadSettings) -> Result<(), UploadError> {
        let own = self.entries.values().filter(|entry| entry.owner == owner).count();
        if own >= settings.max_files_per_client {
            let what = "too many files of this client";
            return Err(UploadError::Full {
                what,
                limit: "max_uploads_per_client",
                max: settings.max_files_per_client,
            });
        }
        if self.entries.len() >= settings.max_files {
            let what = "too many files on this server";
            return Err(UploadError::Full { what, limit: "max_uploads", max: settings.max_files });
        }
        Ok(())
    }

    fn has_room(&self, owner: &str, more: u64, settings: &UploadSettings) -> Result<(), UploadError> {
        let (own, all) = self.entries.values().fold((0, more), |(own, all): (u64, u64), entry| {
            let is_own = entry.owner == owner;
            (own + if is_own { entry.size() } else { 0 }, all + entry.size())
        });
        if own + more > settings.max_bytes_per_client as u64 {
            let what = "too many bytes of this client";
            let max = settings.max_bytes_per_client;
            return Err(UploadError::Full { what, limit: "max_upload_bytes_per_client", max });
        }
        if all > settings.max_bytes as u64 {
            let what = "too many bytes on this server";
            return Err(UploadError::Full { what, limit: "max_upload_bytes_total", max: settings.max_bytes });
        }
        Ok(())
    }
}

impl Entry {
    fn progress(&self, id: &str) -> Progress {
        let media = match &self.state {
            State::Complete(media) => Some(media.clone()),
            State::Open(_) | State::Receiving => None,
        };
        Progress { id: id.to_owned(), expires_at: self.expires_at, received: self.received, media }
    }
}

impl Receiving {
    /// The bytes received so far.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// The maximum length.
    pub(super) fn max_bytes(&self) -> u64 {
        self.declared.max_bytes
    }

    /// Writes bytes. Blocks on the disk. An upload that fails is sent again from its start: its bytes would keep
    /// others from completing.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), UploadError> {
        let pushed = self.reserve(bytes.len() as u64).and_then(|()| {
            self.bytes.as_mut().map_or(Ok(()), |store| store.push(bytes)).map_err(UploadError::from)
        });
        pushed.inspect_err(|_| self.start_over())
    }

    /// Counts more bytes as received.
    fn reserve(&mut self, length: u64) -> Result<(), UploadError> {
        let received = self.received + length;
        let mut stored = self.store.lock();
        let more = stored.get_owned(&self.id, &self.owner)?.growth_to(received);
        stored.make_room(&self.owner, |stored| stored.has_room(&self.owner, more, &self.store.0.settings))?;
        stored.get_owned(&self.id, &self.owner)?.received = received;
        self.received = received;
        Ok(())
    }

    /// Validates the complete upload. An invalid one can be sent again.
    pub(super) async fn finish(mut self) -> Result<Progress, UploadError> {
        if let Some(declared) = self.declared.length.filter(|declared| *declared != self.received) {
            return Err(UploadError::LengthMismatch { found: self.received, declared });
        }
        let Some(store) = self.bytes.take() else { return Err(UploadError::unknown()) };
        let stored = store.finish();
        let received = self.received;
        // If validation fails or the client disconnects, the upload can be sent again.
        self.start_over();
        let tool = self.store.0.tool.as_deref();
        let media = check(stored, &self.declared.expected, &MediaRules::default(), tool).await?;
        self.bytes = None;
        let mut stored = self.store.lock();
        let entry = stored.get_owned(&self.id, &self.owner)?;
        entry.received = received;
        entry.reserved = 0;
        entry.state = State::Complete(media);
        Ok(entry.progress(&self.id))
    }

    fn start_over(&mut self) {
        self.bytes = Some(self.declared.store());
        self.received = 0;
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let Some(bytes) = self.bytes.take() else { return };
        // If it has expired, its bytes are dropped.
        if let Ok(entry) = self.store.lock().get_owned(&self.id, &self.owner) {
            entry.received = self.received;
            entry.reserved = self.declared.length.unwrap_or(0);
            entry.state = State::Open(bytes);
        }
    }
}

/// Generates an id that cannot be guessed: 128 random bits in hexadecimal.
fn generate_id(prefix: &str) -> Result<String, MediaError> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits)
        .map_err(|error| std::io::Error::other(format!("cannot generate random numbers: {error}")))?;
    let mut id = prefix.to_owned();
    for byte in bits {
        let _ = write!(id, "{byte:02x}");
    }
    Ok(id)
}

#[cfg(test)]
mod tests;
