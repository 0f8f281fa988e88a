//! Batches over the batch interface of a vendor: rows are sent as jobs, and their answers are checked as live ones.
//!
//! A row is sent by a run that ends when its request is complete ([`VendorBatchProvider`]). When its job has ended, the row runs
//! again, and the model's reply is the one in the job. So the request and the check are the same as for a live run.
//!
//! Each job is stored before it is created, and looked for before it is created again.

use std::{collections::BTreeSet, fs::File, io, path::Path, sync::Arc, time::Duration};

use cog_provider::{
    BatchClient, HttpProvider, ProviderError, WireRequest,
    batch::{BatchJob, BatchLimits, BatchPart, BatchPhase},
};
use cog_store::{Access, Durability, replace};
use tokio::time::sleep;

use crate::{
    Batch, Description, Finished, ReadError, Row, RowHash, Rows,
    duplicates::SeenInputs,
    jobs::{Answers, Job, Jobs, Slot, VendorBatchError, VendorBatchProvider, entry_id, limits, write},
    journal::Kept,
    run::run_input,
};

/// The first pause between two requests for the state of the jobs.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// A batch over the batch interface of a vendor. What it has done is in the file of its jobs, so that any process continues.
pub struct VendorBatch {
    client: BatchClient,
    provider: Arc<VendorBatchProvider>,
    jobs: Jobs,
    limits: BatchLimits,
    max_pause: Duration,
    /// The jobs that ran when the vendor's queue had no room for a further one; none while it had.
    full_at: Option<usize>,
}

impl VendorBatch {
    /// Opens the jobs of an output, or begins without any.
    ///
    /// # Errors
    /// The vendor has no batch interface, or the jobs are of another batch.
    pub fn open(
        provider: &Arc<VendorBatchProvider>,
        out: &Path,
        max_pause: Duration,
    ) -> Result<Self, VendorBatchError> {
        let inner: &Arc<HttpProvider> = provider.inner();
        let name = inner.vendor().name;
        let client =
            BatchClient::new(Arc::clone(inner)).ok_or(VendorBatchError::NoInterface { vendor: name })?;
        let jobs = Jobs::open(out, name)?;
        let limits = limits(client.interface());
        Ok(Self { client, provider: Arc::clone(provider), jobs, limits, max_pause, full_at: None })
    }

    /// Sets what the batch is, and the command that started it.
    ///
    /// # Errors
    /// The jobs are of another batch.
    pub fn describe(
        &mut self,
        description: &Description,
        command: Vec<String>,
    ) -> Result<(), VendorBatchError> {
        self.jobs.describe(description, command)
    }

    /// Limits the requests of a job.
    #[must_use]
    pub fn max_requests(mut self, requests: Option<usize>) -> Self {
        let own = BatchLimits { requests: requests.unwrap_or(usize::MAX), bytes: usize::MAX };
        self.limits = self.limits.within(own);
        self
    }

    /// Returns the jobs.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Removes the file of the jobs and the replies, after the output is complete.
    pub fn remove(self) {
        self.jobs.remove();
    }
}

// Jobs until they have ended, and their results.

/// How often the results of a job are read, if fewer arrive than the vendor has.
const MAX_READS: u32 = 3;

/// The results of a job, in a temporary file.
struct JobResults {
    spool: File,
    /// The results of the job.
    own: u64,
    /// The results that belong to no row of the job.
    strange: u64,
    /// The lines without a result.
    unreadable: u64,
}

impl JobResults {
    /// Returns whether as many results have arrived as the vendor has answers.
    fn is_complete(&self, job: &BatchJob) -> bool {
        self.unreadable == 0 && job.counts.succeeded.is_none_or(|answers| self.own >= answers)
    }
}

impl VendorBatch {
    /// Requests the state of each job that has not ended. A failure that can be temporary leaves the state as it is. Nothing is
    /// stored, so that several programs may do this at the same time.
    ///
    /// # Errors
    /// The vendor does not know a job or rejects the key.
    pub async fn refresh(&mut self) -> Result<(), VendorBatchError> {
        let running: Vec<(usize, String)> = self.running();
        for (number, id) in running {
            let found = match self.client.job(&id).await {
                Ok(found) => found,
                Err(error) if error.recoverable() => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(job) = self.jobs.list_mut().get_mut(number) {
                if found.is_refused {
                    job.refuse(found.message);
                    self.full_at = Some(self.running().len());
                    continue;
                }
                job.state = found.state;
                job.is_ended = found.phase == BatchPhase::Ended;
                job.succeeded = found.counts.succeeded;
                job.failed = found.counts.failed;
                job.message = found.message;
            }
        }
        Ok(())
    }

    fn running(&self) -> Vec<(usize, String)> {
        let jobs = self.jobs.list().iter().enumerate().filter(|(_, job)| !job.is_ended);
        jobs.filter_map(|(number, job)| Some((number, job.id.clone()?))).collect()
    }

    /// Waits until all jobs have ended. Returns false if the vendor has refused one meanwhile, which is still to be sent.
    ///
    /// # Errors
    /// As [`VendorBatch::refresh`], or some rows have not been sent.
    pub async fn wait(&mut self, mut show: impl FnMut(&Jobs)) -> Result<bool, VendorBatchError> {
        if !self.jobs.is_complete() {
            return Err(VendorBatchError::Incomplete { path: self.jobs.path().to_owned() });
        }
        let mut pause = FIRST_PAUSE.min(self.max_pause);
        loop {
            self.refresh().await?;
            show(&self.jobs);
            if self.jobs.has_waiting() {
                self.jobs.save()?;
                return Ok(false);
            }
            if self.running().is_empty() {
                return Ok(true);
            }
            sleep(pause).await;
            pause = (pause * 3 / 2).min(self.max_pause);
        }
    }

    /// Cancels the jobs that have not ended. Their rows without a result are errors.
    ///
    /// # Errors
    /// The vendor rejects it.
    pub async fn cancel(&mut self) -> Result<(), VendorBatchError> {
        // A vendor rejects the cancellation of a job that has ended.
        self.refresh().await?;
        for job in self.jobs.list_mut().iter_mut().filter(|job| job.is_waiting) {
            job.close("cancelled");
        }
        self.jobs.save()?;
        for (_, id) in self.running() {
            if let Err(error) = self.client.cancel(&id).await
                && self.client.job(&id).await?.phase == BatchPhase::Running
            {
                return Err(error.into());
            }
        }
        self.refresh().await
    }

    /// Deletes the files of the jobs at the vendor: the inputs and the results of all rows. Called once the output is complete.
    ///
    /// # Errors
    /// The vendor rejects it. The other files are deleted.
    pub async fn delete_files(&self) -> Result<(), VendorBatchError> {
        let mut deleted = Ok(());
        for id in self.jobs.list().iter().filter_map(|job| job.id.as_deref()) {
            let job = self.client.job(id).await;
            let done = match job {
                Ok(job) => self.client.delete_files(&job).await,
                Err(error) => Err(error),
            };
            deleted = done.map_err(VendorBatchError::from).and(deleted);
        }
        deleted
    }

    /// Stores the results of the jobs once all have ended. Returns how many results belong to no row.
    ///
    /// # Errors
    /// The vendor does not return them, or a file cannot be written.
    pub async fn fetch(&mut self) -> Result<u64, VendorBatchError> {
        let mut strange = 0;
        for number in 0..self.jobs.list().len() {
            strange += self.fetch_job(number).await?;
        }
        let paths: Vec<_> = (0..self.jobs.list().len()).map(|number| self.jobs.replies(number)).collect();
        let answers = Answers::open(self.jobs.list(), paths);
        let answers = answers.map_err(|source| VendorBatchError::file(self.jobs.path(), source))?;
        self.provider.set_answers(answers);
        Ok(strange)
    }

    async fn fetch_job(&mut self, number: usize) -> Result<u64, VendorBatchError> {
        let Some(job) = self.jobs.list().get(number).filter(|job| !job.is_fetched).cloned() else {
            return Ok(0);
        };
        let path = self.jobs.replies(number);
        let Some(id) = &job.id else {
            // It was never sent.
            return self.store(number, &path, |_| Ok(())).map(|()| 0);
        };
        let found = self.client.job(id).await?;
        let mut tries = 0;
        let mut read = loop {
            let read = self.read(&job, &found, &path).await;
            let is_good = match &read {
                Ok(read) => read.is_complete(&found),
                Err(VendorBatchError::Provider(error)) => !error.recoverable(),
                Err(_) => true,
            };
            tries += 1;
            if is_good || tries >= MAX_READS {
                break read?;
            }
            sleep(self.pause(tries)).await;
        };
        self.store(number, &path, |file| io::copy(&mut read.spool, file).map(drop))?;
        Ok(read.strange + read.unreadable)
    }

    /// Stores the replies of a job.
    fn store(
        &mut self,
        number: usize,
        path: &Path,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<(), VendorBatchError> {
        replace(path, Access::Private, Durability::PowerCut, write)
            .map_err(|source| VendorBatchError::file(path, source))?;
        if let Some(job) = self.jobs.list_mut().get_mut(number) {
            job.is_fetched = true;
        }
        self.jobs.save()
    }

    /// Reads the results of a job into a temporary file.
    async fn read(&self, job: &Job, found: &BatchJob, path: &Path) -> Result<JobResults, VendorBatchError> {
        let spool = tempfile::tempfile().map_err(|source| VendorBatchError::file(path, source))?;
        let mut spool = io::BufWriter::new(spool);
        let mut own = 0;
        let mut strange = 0;
        let mut failed = None;
        let unreadable = self.client.results(found, |result| match write(&mut spool, job, result) {
            Ok(is_own) => {
                own += u64::from(is_own);
                strange += u64::from(!is_own);
                true
            }
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        let unreadable = unreadable.await?;
        if let Some(failed) = failed {
            return Err(VendorBatchError::file(path, failed));
        }
        let spool = spool.into_inner().map_err(io::IntoInnerError::into_error);
        let spool = spool.and_then(|mut spool| io::Seek::rewind(&mut spool).map(|()| spool));
        let spool = spool.map_err(|source| VendorBatchError::file(path, source))?;
        Ok(JobResults { spool, own, strange, unreadable })
    }
}

/// How often a job is created after temporary failures.
const MAX_TRIES: u32 = 6;

/// How often a job is refused while no other job of the batch is in the vendor's queue.
const MAX_REFUSALS: u32 = 5;

/// A part of the input that is not sent yet.
struct PendingPart {
    part: BatchPart,
    first: u64,
    last: u64,
}

impl VendorBatch {
    /// Sends the rows that have no job and no result, in several passes over the input if the vendor's queue has no room for all
    /// jobs: then the next one is sent when one ends. Without `waits`, it ends when there is no room. It can be interrupted at any
    /// time, and continues when it is called again.
    ///
    /// # Errors
    /// The input cannot be read, or the vendor does not accept a job.
    pub async fn send(
        &mut self,
        batch: &Batch,
        open: impl Fn() -> Result<Rows, ReadError>,
        finished: &Finished,
        waits: bool,
        mut show: impl FnMut(&Job),
    ) -> Result<(), VendorBatchError> {
        self.settle().await?;
        loop {
            self.send_pass(batch, open()?, finished, waits, &mut show).await?;
            if !self.jobs.has_waiting() || !waits {
                return Ok(());
            }
        }
    }

    /// Sends the jobs that are waiting, and the rows after the last job.
    async fn send_pass(
        &mut self,
        batch: &Batch,
        mut rows: Rows,
        finished: &Finished,
        waits: bool,
        show: &mut impl FnMut(&Job),
    ) -> Result<(), VendorBatchError> {
        let start = self.jobs.list().last().map_or(0, |job| job.last + 1);
        let mut open = self.open_part(start);
        // The first rows of the jobs that are waiting now, and of those among them that have rows to send. One that is refused during
        // this pass is sent in the next one: some of its rows may have been read already.
        let waiting = self.jobs.list().iter().filter(|job| job.is_waiting).map(|job| job.first);
        let mut waiting: BTreeSet<u64> = waiting.collect();
        let mut wanted = BTreeSet::new();
        // The job that is waiting and has the current row.
        let mut again: Option<(usize, BatchPart)> = None;
        let mut selected = 0;
        let mut seen = SeenInputs::default();
        let mut kept = Kept::new(finished);
        while let Some(group) = rows.next().await? {
            for row in group.into_iter().filter(|row| batch.has_row(row, &mut selected)) {
                let done = kept.take(&row).map(|kept| kept.result);
                let done = done.filter(|result| batch.keeps(result));
                let is_first = !batch.dedupes || seen.is_first(&row, done);
                let of_row = self.jobs.waiting_with(row.number, &waiting);
                if let Some((number, part)) = again.take_if(|(number, _)| Some(*number) != of_row) {
                    self.submit(number, &part, waits, show).await?;
                }
                if row.number < start && of_row.is_none() || done.is_some() || !is_first {
                    continue;
                }
                let number = row.number;
                let hash = row.hash;
                let Some(request) = self.request(batch, row).await else {
                    open.last = open.last.max(number);
                    continue;
                };
                let Some(job) = of_row else {
                    if !self.add(&mut open.part, &self.jobs.next_name(), number, hash, &request) {
                        let next = self.open_part(number);
                        self.create(std::mem::replace(&mut open, next), waits, show).await?;
                        self.add(&mut open.part, &self.jobs.next_name(), number, hash, &request);
                    }
                    open.last = number;
                    continue;
                };
                let limits = self.limits;
                wanted.extend(self.jobs.list().get(job).map(|job| job.first));
                let (_, part) = again.get_or_insert_with(|| (job, BatchPart::new(limits)));
                let name = self.name_of(job);
                if !self.add(part, &name, number, hash, &request) {
                    // The limits of this start are lower than when the job was formed.
                    self.jobs.divide(job, number);
                    waiting.insert(number);
                    wanted.insert(number);
                    let full = again.replace((job + 1, BatchPart::new(limits)));
                    if let Some((_, full)) = full {
                        self.submit(job, &full, waits, show).await?;
                    }
                    let name = self.name_of(job + 1);
                    if let Some((_, part)) = &mut again {
                        self.add(part, &name, number, hash, &request);
                    }
                }
            }
        }
        if let Some((number, part)) = again {
            self.submit(number, &part, waits, show).await?;
        }
        if !open.part.entries().is_empty() {
            self.create(open, waits, show).await?;
        }
        // A job whose rows have got their results elsewhere would wait for ever.
        for job in self.jobs.list_mut().iter_mut().filter(|job| job.is_waiting) {
            if waiting.contains(&job.first) && !wanted.contains(&job.first) {
                job.close("empty");
            }
        }
        self.jobs.set_complete(true);
        self.jobs.save()
    }

    fn open_part(&self, first: u64) -> PendingPart {
        PendingPart { part: BatchPart::new(self.limits), first, last: first }
    }

    fn name_of(&self, number: usize) -> String {
        self.jobs.list().get(number).map(|job| job.name.clone()).unwrap_or_default()
    }

    /// Returns the request that a live run of the row would send. None if it would send none.
    async fn request(&self, batch: &Batch, row: Row) -> Option<WireRequest> {
        let slot = Slot::captured(row.number, row.hash);
        let input = run_input(row.input.into_result().ok()?.input);
        if let Ok(chunks) = batch.prepare(input) {
            slot.clone().run(chunks.fold()).await;
        }
        slot.take()
    }

    /// Adds a request. Returns false if the part is full. A request that no job can contain is left out, and gets its error
    /// when the row runs.
    fn add(&self, part: &mut BatchPart, name: &str, row: u64, hash: RowHash, request: &WireRequest) -> bool {
        let id = entry_id(name, row, hash);
        self.client.interface().add(part, &id, request).unwrap_or(true)
    }

    async fn create(
        &mut self,
        open: PendingPart,
        waits: bool,
        show: &mut impl FnMut(&Job),
    ) -> Result<(), VendorBatchError> {
        let PendingPart { part, first, last } = open;
        let name = self.jobs.next_name();
        let state = "waiting".to_owned();
        let requests = part.entries().len() as u64;
        let job = Job { name, first, last, requests, state, is_waiting: true, ..Job::default() };
        self.jobs.list_mut().push(job);
        self.jobs.set_complete(false);
        self.submit(self.jobs.list().len() - 1, &part, waits, show).await
    }

    /// Creates a job that is waiting, once there is room for it in the vendor's queue. Otherwise it stays waiting.
    async fn submit(
        &mut self,
        number: usize,
        part: &BatchPart,
        waits: bool,
        show: &mut impl FnMut(&Job),
    ) -> Result<(), VendorBatchError> {
        if !self.has_room(number, waits).await? {
            return self.jobs.save();
        }
        let after = match self.client.interface().has_names() {
            true => None,
            false => self.client.newest(|_| true).await?.into_iter().next().map(|job| job.id),
        };
        let Some(job) = self.jobs.list_mut().get_mut(number) else { return Ok(()) };
        job.requests = part.entries().len() as u64;
        job.after = after;
        job.is_waiting = false;
        "sending".clone_into(&mut job.state);
        let job = job.clone();
        // Stored before it is created: after a crash, the name is all that finds the job again.
        self.jobs.save()?;
        match self.create_once(&job, part).await {
            Ok(created) => {
                self.set_created(number, created)?;
                self.jobs.list().get(number).into_iter().for_each(show);
                Ok(())
            }
            Err(VendorBatchError::Provider(ProviderError::RateLimited {
                is_quota: false, message, ..
            })) => {
                if let Some(job) = self.jobs.list_mut().get_mut(number) {
                    job.refuse(Some(message));
                }
                self.full_at = Some(self.running().len());
                self.jobs.save()
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until the vendor's queue has room for a job: once a job that was in it has ended. While no job of this batch is in
    /// it, others of the account are, and it is tried again after a pause.
    async fn has_room(&mut self, number: usize, waits: bool) -> Result<bool, VendorBatchError> {
        while let Some(full_at) = self.full_at {
            self.refresh().await?;
            let running = self.running().len();
            if running < full_at {
                return Ok(true);
            }
            if !waits {
                return Ok(false);
            }
            sleep(self.max_pause).await;
            if running == 0 {
                let job = self.jobs.list().get(number);
                return match job.filter(|job| job.refusals >= MAX_REFUSALS) {
                    Some(job) => Err(VendorBatchError::QueueFull {
                        requests: job.requests,
                        reason: job.message.clone(),
                    }),
                    None => Ok(true),
                };
            }
        }
        Ok(true)
    }

    /// Creates a job. After a temporary failure the job may exist, so it is looked for first: a request whose reply is lost is
    /// often executed, and a second job would be paid for too.
    async fn create_once(&self, job: &Job, part: &BatchPart) -> Result<BatchJob, VendorBatchError> {
        let mut tries = 0;
        loop {
            match self.client.create(&job.name, part).await {
                Ok(created) => return Ok(created),
                Err(error) if !error.recoverable() || tries + 1 >= MAX_TRIES => return Err(error.into()),
                Err(_) => sleep(self.pause(tries)).await,
            }
            tries += 1;
            if let Some(found) = self.find(job).await? {
                return Ok(found);
            }
        }
    }

    /// Returns the pause after a failure, which doubles.
    fn pause(&self, tries: u32) -> Duration {
        (FIRST_PAUSE * 2_u32.saturating_pow(tries)).min(self.max_pause)
    }

    /// Looks for the jobs of which it is not known whether they exist. Those that do not are sent again.
    async fn settle(&mut self) -> Result<(), VendorBatchError> {
        for number in 0..self.jobs.list().len() {
            let job = self.jobs.list().get(number).filter(|job| job.id.is_none() && !job.is_waiting);
            let Some(job) = job.cloned() else { continue };
            match self.find(&job).await? {
                Some(found) => self.set_created(number, found)?,
                None => {
                    if let Some(job) = self.jobs.list_mut().get_mut(number) {
                        job.is_waiting = true;
                    }
                    self.jobs.save()?;
                }
            }
        }
        Ok(())
    }

    fn set_created(&mut self, number: usize, found: BatchJob) -> Result<(), VendorBatchError> {
        if let Some(job) = self.jobs.list_mut().get_mut(number) {
            job.id = Some(found.id);
            job.state = found.state;
        }
        self.jobs.save()
    }

    async fn find(&self, job: &Job) -> Result<Option<BatchJob>, VendorBatchError> {
        match self.client.interface().has_names() {
            true => {
                let found = self.client.newest(|found| has_name(found, &job.name)).await?.pop();
                Ok(found.filter(|found| has_name(found, &job.name)))
            }
            false => self.find_by_results(job).await,
        }
    }

    /// Finds a job without a name: one that is newer than the last one before it, with as many requests, and with results
    /// of this job. Only a job that has ended has results.
    async fn find_by_results(&self, job: &Job) -> Result<Option<BatchJob>, VendorBatchError> {
        let newer = self.client.newest(|found| Some(&found.id) == job.after.as_ref()).await?.into_iter();
        let candidates = newer
            .filter(|found| Some(&found.id) != job.after.as_ref() && !self.jobs.contains(&found.id))
            .filter(|found| found.counts.total == Some(job.requests));
        for mut found in candidates {
            let mut tries = 0;
            while found.phase == BatchPhase::Running {
                sleep(self.pause(tries)).await;
                tries += 1;
                found = self.client.job(&found.id).await?;
            }
            let mut is_own = false;
            // The first result says whose job it is.
            self.client
                .results(&found, |result| {
                    is_own = result.id.strip_prefix(&job.name).is_some_and(|rest| rest.starts_with('-'));
                    false
                })
                .await?;
            if is_own {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

fn has_name(job: &BatchJob, name: &str) -> bool {
    job.name.as_deref() == Some(name)
}
