use std::{
    collections::{HashMap, VecDeque},
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use cog_media::{Media, MediaError, MediaRules, Store, Stored, Tool, Uploads, check};
use tokio::{task::JoinSet, time::Instant};

use super::{
    Progress, UploadError, UploadSettings, UploadTicket, Wanted,
    entry::{Entry, Said, State},
    time::{self, rfc3339},
};

/// Media that are kept on disk for their owners, each for a while: uploads, and what runs have made.
///
/// The files have no name, and are gone with the process, however it ends. Clones share one store: the runtime opens
/// what the server took ([`Uploads`]).
#[derive(Clone)]
pub struct MediaStore(Arc<Shared>);

struct Shared {
    settings: UploadSettings,
    tool: Option<Arc<Tool>>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<String, Entry>,
    /// Those that were not used in time, with their owners; no more than there may be entries.
    expired: VecDeque<(String, String)>,
    /// What frees the disk in time.
    timers: JoinSet<()>,
}

/// An upload that is kept no longer than this: a file that came with the request that it is for.
pub(crate) struct UploadLease {
    store: MediaStore,
    id: String,
    /// The run may be asked again.
    may_return: bool,
}

impl UploadLease {
    /// The run may be asked again: after this the upload is kept until something else needs its place.
    pub(crate) fn let_return(&mut self) {
        self.may_return = true;
    }
}

impl Drop for UploadLease {
    fn drop(&mut self) {
        let mut kept = self.store.lock();
        match kept.entries.get_mut(&self.id).filter(|_| self.may_return) {
            Some(entry) => entry.is_left = true,
            None => drop(kept.entries.remove(&self.id)),
        }
    }
}

/// An upload whose bytes are coming. When it is dropped, what has come is there to go on from.
pub(super) struct Receiving {
    store: MediaStore,
    id: String,
    owner: String,
    said: Said,
    bytes: Option<Store>,
    received: u64,
}

impl MediaStore {
    /// A store that is empty. The tool reads sound, video and documents; without it images alone are taken.
    pub fn new(settings: UploadSettings, tool: Option<Arc<Tool>>) -> Self {
        Self(Arc::new(Shared { settings, tool, kept: Mutex::default() }))
    }

    /// Keeps what a run has made, for who asked for the run, and says under which id, and until when. Called inside a
    /// Tokio runtime.
    pub(super) fn publish(&self, owner: &str, media: Media) -> Result<(String, String), UploadError> {
        let (length, state) = (media.bytes().len(), State::Complete(media));
        let (id, expires_at) = self.add("med_", owner, length, Said::default(), state)?;
        Ok((id, rfc3339(expires_at)))
    }

    /// MediaSink a place for an upload.
    pub(crate) fn create(&self, owner: &str, wanted: Wanted) -> Result<UploadTicket, UploadError> {
        let said = wanted.said()?;
        let (most, media_type) = (said.most, said.expected.media_type.clone());
        let state = State::Open(said.store());
        let (id, expires_at) = self.add("upl_", owner, 0, said, state)?;
        Ok(UploadTicket { id, media_type, expires_at, most })
    }

    /// Binds an upload to what is returned.
    pub(crate) fn lend(&self, id: &str) -> UploadLease {
        UploadLease { store: self.clone(), id: id.to_owned(), may_return: false }
    }

    /// How far an upload is.
    pub(crate) fn progress(&self, id: &str, owner: &str) -> Result<Progress, UploadError> {
        self.lock().of(id, owner).map(|entry| entry.progress(id))
    }

    /// What is kept under an id, and until when.
    pub(super) fn media(&self, id: &str, owner: &str) -> Result<(Media, Instant), UploadError> {
        match self.lock().of(id, owner)? {
            Entry { state: State::Complete(media), until, .. } => Ok((media.clone(), *until)),
            _ => Err(UploadError::unknown()),
        }
    }

    /// Goes on with an upload after so many bytes; none for from its beginning.
    pub(super) fn begin(&self, id: &str, owner: &str, after: Option<u64>) -> Result<Receiving, UploadError> {
        let mut kept = self.lock();
        let entry = kept.of(id, owner)?;
        match (&entry.state, after) {
            (State::Complete(_), _) => return Err(UploadError::Complete),
            (State::Receiving, _) => return Err(UploadError::Busy),
            (State::Open(_), Some(first)) if first != entry.received => {
                return Err(UploadError::Elsewhere { first, received: entry.received });
            }
            (State::Open(_), _) => {}
        }
        if after.is_none() {
            entry.state = State::Open(entry.said.store());
            entry.received = 0;
        }
        let State::Open(bytes) = std::mem::replace(&mut entry.state, State::Receiving) else {
            return Err(UploadError::Busy);
        };
        let (said, received) = (entry.said.clone(), entry.received);
        Ok(Receiving {
            store: self.clone(),
            id: id.to_owned(),
            owner: owner.to_owned(),
            said,
            bytes: Some(bytes),
            received,
        })
    }

    fn add(
        &self,
        prefix: &str,
        owner: &str,
        length: u64,
        said: Said,
        state: State,
    ) -> Result<(String, SystemTime), UploadError> {
        let settings = &self.0.settings;
        let mut kept = self.lock();
        kept.make_room(owner, |kept| {
            kept.has_place(owner, settings)?;
            kept.has_room(owner, length, settings)
        })?;
        let id = fresh_id(prefix)?;
        let (until, expires_at) = (Instant::now() + settings.keep, time::now() + settings.keep);
        let entry = Entry {
            owner: owner.to_owned(),
            until,
            expires_at,
            said,
            is_left: false,
            received: length,
            state,
        };
        kept.entries.insert(id.clone(), entry);
        self.forget_at(until, &mut kept.timers);
        Ok((id, expires_at))
    }

    /// Has the disk freed in time, also where nobody asks for anything more.
    fn forget_at(&self, until: Instant, timers: &mut JoinSet<()>) {
        while timers.try_join_next().is_some() {}
        let shared = Arc::downgrade(&self.0);
        timers.spawn(async move {
            tokio::time::sleep_until(until).await;
            if let Some(shared) = shared.upgrade() {
                drop(Self(shared).lock());
            }
        });
    }

    /// What is kept, without what is over.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.expire(Instant::now(), self.0.settings.count);
        kept
    }
}

impl Uploads for MediaStore {
    fn open(&self, id: &str, owner: Option<&str>) -> Result<Stored, MediaError> {
        match self.media(id, owner.unwrap_or_default()) {
            Ok((media, _)) => Ok(media.bytes().clone()),
            Err(UploadError::Media(error)) => Err(error),
            Err(_) => Err(MediaError::Upload { expired: false }),
        }
    }
}

impl Kept {
    /// The entry of this owner; another's is as if it were not there.
    fn of(&mut self, id: &str, owner: &str) -> Result<&mut Entry, UploadError> {
        let expired = self.expired.iter().any(|(gone, whose)| gone == id && whose == owner);
        let entry = self.entries.get_mut(id).filter(|entry| entry.owner == owner);
        entry.ok_or(UploadError::Media(MediaError::Upload { expired }))
    }

    fn expire(&mut self, now: Instant, remembered: usize) {
        let gone = self.entries.extract_if(|_, entry| entry.until <= now);
        self.expired.extend(gone.map(|(id, entry)| (id, entry.owner)));
        let past = self.expired.len().saturating_sub(remembered);
        self.expired.drain(..past);
    }

    /// Lets go of what was left behind, the oldest first, until this holds.
    fn make_room(
        &mut self,
        owner: &str,
        has_room: impl Fn(&Self) -> Result<(), UploadError>,
    ) -> Result<(), UploadError> {
        while let Err(full) = has_room(self) {
            let may_go = |entry: &Entry| entry.is_left && (entry.owner == owner || !full.is_of_client());
            let oldest =
                self.entries.iter().filter(|(_, entry)| may_go(entry)).min_by_key(|(_, entry)| entry.until);
            let Some(id) = oldest.map(|(id, _)| id.clone()) else { return Err(full) };
            self.expired.extend(self.entries.remove(&id).map(|entry| (id, entry.owner)));
        }
        Ok(())
    }

    fn has_place(&self, owner: &str, settings: &UploadSettings) -> Result<(), UploadError> {
        let own = self.entries.values().filter(|entry| entry.owner == owner).count();
        if own >= settings.per_client {
            let what = "this client has as many as it may";
            return Err(UploadError::Full { what, limit: "uploads_per_client", max: settings.per_client });
        }
        if self.entries.len() >= settings.count {
            let what = "the server keeps as many as it may";
            return Err(UploadError::Full { what, limit: "uploads", max: settings.count });
        }
        Ok(())
    }

    fn has_room(&self, owner: &str, more: u64, settings: &UploadSettings) -> Result<(), UploadError> {
        let (own, all) = self.entries.values().fold((0, more), |(own, all): (u64, u64), entry| {
            let is_own = entry.owner == owner;
            (own + if is_own { entry.received } else { 0 }, all + entry.received)
        });
        if own + more > settings.bytes_per_client as u64 {
            let what = "this client has as many bytes as it may";
            let max = settings.bytes_per_client;
            return Err(UploadError::Full { what, limit: "uploads_bytes_per_client", max });
        }
        if all > settings.bytes as u64 {
            let what = "the server keeps as many bytes as it may";
            return Err(UploadError::Full { what, limit: "uploads_bytes", max: settings.bytes });
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
    /// How many bytes are there.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// The most that may come.
    pub(super) fn most(&self) -> u64 {
        self.said.most
    }

    /// MediaCapabilities the next bytes. Waits for the disk.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), UploadError> {
        let length = bytes.len() as u64;
        let mut kept = self.store.lock();
        kept.of(&self.id, &self.owner)?;
        kept.make_room(&self.owner, |kept| kept.has_room(&self.owner, length, &self.store.0.settings))?;
        kept.of(&self.id, &self.owner)?.received += length;
        drop(kept);
        self.received += length;
        let pushed = self.bytes.as_mut().map_or(Ok(()), |store| store.push(bytes));
        pushed.inspect_err(|_| self.start_over()).map_err(UploadError::from)
    }

    /// All bytes have come: checks them. What does not hold can be sent anew.
    pub(super) async fn finish(mut self) -> Result<Progress, UploadError> {
        if let Some(said) = self.said.length.filter(|said| *said != self.received) {
            return Err(UploadError::OtherLength { found: self.received, said });
        }
        let Some(store) = self.bytes.take() else { return Err(UploadError::unknown()) };
        let (stored, received) = (store.finish(), self.received);
        // Where it does not pass, or nobody waits any more, it can be sent anew.
        self.start_over();
        let tool = self.store.0.tool.as_deref();
        let media = check(stored, &self.said.expected, &MediaRules::default(), tool).await?;
        self.bytes = None;
        let mut kept = self.store.lock();
        let entry = kept.of(&self.id, &self.owner)?;
        (entry.received, entry.state) = (received, State::Complete(media));
        Ok(entry.progress(&self.id))
    }

    fn start_over(&mut self) {
        self.bytes = Some(self.said.store());
        self.received = 0;
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        let Some(bytes) = self.bytes.take() else { return };
        // Where it is gone by now, its bytes go too.
        if let Ok(entry) = self.store.lock().of(&self.id, &self.owner) {
            entry.received = self.received;
            entry.state = State::Open(bytes);
        }
    }
}

/// An id that nobody can guess: 128 random bits in hexadecimal.
fn fresh_id(prefix: &str) -> Result<String, MediaError> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(|_| std::io::Error::other("the system gives no random bits"))?;
    let mut id = prefix.to_owned();
    for byte in bits {
        let _ = write!(id, "{byte:02x}");
    }
    Ok(id)
}

#[cfg(test)]
mod tests;
