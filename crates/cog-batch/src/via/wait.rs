//! Jobs until they have ended, and their results.

use std::{fs::File, io, path::Path};

use cog_provider::batch::{BatchJob, BatchPhase};
use tokio::time::sleep;

use super::{Answers, FIRST_PAUSE, Job, Jobs, Via, ViaError, answers::write, jobs::replace};

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

impl Via {
    /// Requests the state of each job that has not ended. A failure that can be temporary leaves the state as it is. Nothing is
    /// stored, so that several programs may do this at the same time.
    ///
    /// # Errors
    /// The vendor does not know a job or rejects the key.
    pub async fn refresh(&mut self) -> Result<(), ViaError> {
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
    /// As [`Via::refresh`], or some rows have not been sent.
    pub async fn wait(&mut self, mut show: impl FnMut(&Jobs)) -> Result<(), ViaError> {
        if !self.jobs.is_complete() {
            return Err(ViaError::Incomplete { path: self.jobs.path().to_owned() });
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
    pub async fn cancel(&mut self) -> Result<(), ViaError> {
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

    /// Stores the results of the jobs, all of which have ended. Returns the number of results that belong to no row.
    ///
    /// # Errors
    /// The vendor does not return them, or a file cannot be written.
    pub async fn fetch(&mut self) -> Result<u64, ViaError> {
        let mut strange = 0;
        for number in 0..self.jobs.list().len() {
            strange += self.fetch_job(number).await?;
        }
        let paths: Vec<_> = (0..self.jobs.list().len()).map(|number| self.jobs.replies(number)).collect();
        let answers = Answers::open(self.jobs.list(), paths);
        let path = || self.jobs.path().to_owned();
        self.provider.set_answers(answers.map_err(|source| ViaError::File { path: path(), source })?);
        Ok(strange)
    }

    async fn fetch_job(&mut self, number: usize) -> Result<u64, ViaError> {
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
                Err(ViaError::Provider(error)) => !error.recoverable(),
                Err(_) => true,
            };
            tries += 1;
            if is_good || tries >= MAX_READS {
                break read?;
            }
            sleep(self.pause(tries)).await;
        };
        let error = |source: io::Error| ViaError::File { path: path.clone(), source };
        replace(&path, |out| io::copy(&mut read.spool, out).map(drop)).map_err(error)?;
        if let Some(job) = self.jobs.list_mut().get_mut(number) {
            job.is_fetched = true;
        }
        self.jobs.save()?;
        Ok(read.strange + read.unreadable)
    }

    /// Reads the results of a job into a temporary file.
    async fn read(&self, job: &Job, found: &BatchJob, path: &Path) -> Result<Read, ViaError> {
        let error = |source: io::Error| ViaError::File { path: path.to_owned(), source };
        let mut spool = tempfile::tempfile().map(io::BufWriter::new).map_err(error)?;
        let (mut own, mut strange, mut failed) = (0, 0, None);
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
