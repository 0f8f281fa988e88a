//! Batches over the batch interface of a vendor: rows are sent as jobs, and their answers are checked as live ones.
//!
//! A row is sent by a run that ends when its request is complete ([`VendorBatchProvider`]). When its job has ended, the row runs
//! again, and the model's reply is the one in the job. So the request and the check are the same as for a live run.
//!
//! Each job is stored before it is created, and looked for before it is created again.

use std::{fs::File, io, path::Path, sync::Arc, time::Duration};

use cog_provider::{
    BatchClient, HttpProvider, WireRequest,
    batch::{BatchJob, BatchLimits, BatchPart, BatchPhase},
};
use cog_store::{Access, Durability, replace};
use tokio::time::sleep;

use crate::{
    Batch, Description, Finished, Row, Rows,
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
        Ok(Self { client, provider: Arc::clone(provider), jobs, limits, max_pause })
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
                (job.state, job.is_ended) = (found.state, found.phase == BatchPhase::Ended);
                (job.succeeded, job.failed) = (found.counts.succeeded, found.counts.failed);
                job.message = found.message;
            }
        }
        Ok(())
    }

    fn running(&self) -> Vec<(usize, String)> {
        let jobs = self.jobs.list().iter().enumerate().filter(|(_, job)| !job.is_ended);
        jobs.filter_map(|(number, job)| Some((number, job.id.clone()?))).collect()
    }

    /// Waits until all jobs have ended.
    ///
    /// # Errors
    /// As [`VendorBatch::refresh`], or some rows have not been sent.
    pub async fn wait(&mut self, mut show: impl FnMut(&Jobs)) -> Result<(), VendorBatchError> {
        if !self.jobs.is_complete() {
            return Err(VendorBatchError::Incomplete { path: self.jobs.path().to_owned() });
        }
        let mut pause = FIRST_PAUSE.min(self.max_pause);
        loop {
            self.refresh().await?;
            show(&self.jobs);
            if self.running().is_empty() {
                return Ok(());
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
        for (_, id) in self.running() {
            if let Err(error) = self.client.cancel(&id).await
                && self.client.job(&id).await?.phase == BatchPhase::Running
            {
                return Err(error.into());
            }
        }
        self.refresh().await
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
        let found = self.client.job(job.id.as_deref().unwrap_or_default()).await?;
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
        replace(&path, Access::Private, Durability::PowerCut, |file| {
            io::copy(&mut read.spool, file).map(drop)
        })
        .map_err(|source| VendorBatchError::file(&path, source))?;
        if let Some(job) = self.jobs.list_mut().get_mut(number) {
            job.is_fetched = true;
        }
        self.jobs.save()?;
        Ok(read.strange + read.unreadable)
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

/// A part of the input that is not sent yet.
struct PendingPart {
    part: BatchPart,
    first: u64,
    last: u64,
}

impl VendorBatch {
    /// Sends the rows that have no job and no result. It can be interrupted at any time, and continues when it is called again.
    ///
    /// # Errors
    /// The input cannot be read, or the vendor does not accept a job.
    pub async fn send(
        &mut self,
        batch: &Batch,
        mut rows: Rows,
        finished: &Finished,
        mut show: impl FnMut(&Job),
    ) -> Result<(), VendorBatchError> {
        self.settle_last().await?;
        let start = self.jobs.list().last().map_or(0, |job| job.last + 1);
        let mut open = self.open_part(start);
        let mut selected = 0;
        let mut seen = SeenInputs::default();
        let mut kept = Kept::new(finished);
        while let Some(group) = rows.next().await? {
            for row in group.into_iter().filter(|row| batch.has_row(row, &mut selected)) {
                let done = kept.take(&row).map(|kept| kept.result);
                let done = done.filter(|row| row.ok || !batch.retries_failed);
                let is_first = !batch.dedupes || seen.is_first(&row, done);
                if row.number < start || done.is_some() || !is_first {
                    continue;
                }
                let number = row.number;
                let hash = row.hash;
                if let Some(request) = self.request(batch, row).await
                    && !self.add(&mut open, number, hash, &request)
                {
                    let next = self.open_part(number);
                    self.create(std::mem::replace(&mut open, next), &mut show).await?;
                    open.part = BatchPart::new(self.limits);
                    self.add(&mut open, number, hash, &request);
                }
                open.last = number;
            }
        }
        if !open.part.entries().is_empty() {
            self.create(open, &mut show).await?;
        }
        self.jobs.set_complete(true);
        self.jobs.save()
    }

    fn open_part(&self, first: u64) -> PendingPart {
        PendingPart { part: BatchPart::new(self.limits), first, last: first }
    }

    /// Returns the request that a live run of the row would send. None if it would send none.
    async fn request(&self, batch: &Batch, row: Row) -> Option<WireRequest> {
        let slot = Slot::captured(row.number, row.hash);
        let input = run_input(row.input.into_result().ok()?);
        if let Ok(chunks) = batch.prepare(input) {
            slot.clone().run(chunks.fold()).await;
        }
        slot.take()
    }

    /// Adds a request. Returns false if the part is full. A request that no job can contain is left out, and gets its error
    /// when the row runs.
    fn add(&self, open: &mut PendingPart, row: u64, hash: crate::RowHash, request: &WireRequest) -> bool {
        let id = entry_id(&self.jobs.next_name(), row, hash);
        self.client.interface().add(&mut open.part, &id, request).unwrap_or(true)
    }

    async fn create(
        &mut self,
        open: PendingPart,
        show: &mut impl FnMut(&Job),
    ) -> Result<(), VendorBatchError> {
        let name = self.jobs.next_name();
        let after = match self.client.interface().has_names() {
            true => None,
            false => self.client.newest(|_| true).await?.into_iter().next().map(|job| job.id),
        };
        let requests = open.part.entries().len() as u64;
        let PendingPart { first, last, .. } = open;
        let job = Job { name, first, last, requests, after, state: "sending".to_owned(), ..Job::default() };
        // Stored before it is created: after a crash, the name is all that finds the job again.
        self.jobs.list_mut().push(job.clone());
        self.jobs.set_complete(false);
        self.jobs.save()?;
        let created = self.create_once(&job, &open.part).await?;
        self.set_last(created)?;
        self.jobs.list().iter().last().into_iter().for_each(show);
        Ok(())
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

    /// Looks for the last job, if it is not known whether it exists. A job that does not is sent again.
    async fn settle_last(&mut self) -> Result<(), VendorBatchError> {
        let Some(job) = self.jobs.list().last().filter(|job| job.id.is_none()).cloned() else {
            return Ok(());
        };
        match self.find(&job).await? {
            Some(found) => self.set_last(found),
            None => {
                self.jobs.list_mut().pop();
                self.jobs.save()
            }
        }
    }

    fn set_last(&mut self, found: BatchJob) -> Result<(), VendorBatchError> {
        if let Some(job) = self.jobs.list_mut().last_mut() {
            (job.id, job.state) = (Some(found.id), found.state);
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
