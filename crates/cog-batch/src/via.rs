//! Batches over the batch interface of a vendor: rows are sent as jobs, and their answers are checked as live ones.
//!
//! A row is sent by a run that ends when its request is complete ([`VendorBatchProvider`]). When its job has ended, the row runs
//! again, and the model's reply is the one in the job. So the request and the check are the same as for a live run.

mod send;

use std::{fs::File, io, path::Path, sync::Arc, time::Duration};

use cog_provider::{
    BatchClient, HttpProvider,
    batch::{BatchJob, BatchLimits, BatchPhase},
};
use cog_store::{Access, Durability, replace};
use tokio::time::sleep;

use crate::{
    Description,
    jobs::{Answers, Job, Jobs, VendorBatchError, VendorBatchProvider, limits, write},
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
struct Read {
    spool: File,
    /// The results of the job.
    own: u64,
    /// The results that belong to no row of the job.
    strange: u64,
    /// The lines without a result.
    unreadable: u64,
}

impl Read {
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
        let answers =
            answers.map_err(|source| VendorBatchError::File { path: self.jobs.path().to_owned(), source })?;
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
        .map_err(|source| VendorBatchError::File { path, source })?;
        if let Some(job) = self.jobs.list_mut().get_mut(number) {
            job.is_fetched = true;
        }
        self.jobs.save()?;
        Ok(read.strange + read.unreadable)
    }

    /// Reads the results of a job into a temporary file.
    async fn read(&self, job: &Job, found: &BatchJob, path: &Path) -> Result<Read, VendorBatchError> {
        let error = |source: io::Error| VendorBatchError::File { path: path.to_owned(), source };
        let mut spool = tempfile::tempfile().map(io::BufWriter::new).map_err(error)?;
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
            return Err(error(failed));
        }
        let mut spool = spool.into_inner().map_err(|failed| error(failed.into_error()))?;
        io::Seek::rewind(&mut spool).map_err(error)?;
        Ok(Read { spool, own, strange, unreadable })
    }
}
