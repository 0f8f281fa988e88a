//! Sending rows as jobs. Each job is stored before it is created, and looked for before it is created again.

use std::time::Duration;

use cog_provider::{
    WireRequest,
    batch::{BatchJob, BatchPart, BatchPhase},
};
use tokio::time::sleep;

use super::{FIRST_PAUSE, VendorBatch};
use crate::{
    Batch, Finished, Row, Rows,
    duplicates::SeenInputs,
    jobs::{Job, Slot, VendorBatchError, entry_id},
    journal::Kept,
    run::run_input,
};

/// How often a job is created after temporary failures.
const MAX_TRIES: u32 = 6;

/// A part of the input that is not sent yet.
struct Open {
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

    fn open_part(&self, first: u64) -> Open {
        Open { part: BatchPart::new(self.limits), first, last: first }
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
    fn add(&self, open: &mut Open, row: u64, hash: crate::RowHash, request: &WireRequest) -> bool {
        let id = entry_id(&self.jobs.next_name(), row, hash);
        self.client.interface().add(&mut open.part, &id, request).unwrap_or(true)
    }

    async fn create(&mut self, open: Open, show: &mut impl FnMut(&Job)) -> Result<(), VendorBatchError> {
        let name = self.jobs.next_name();
        let after = match self.client.interface().has_names() {
            true => None,
            false => self.client.newest(|_| true).await?.into_iter().next().map(|job| job.id),
        };
        let requests = open.part.entries().len() as u64;
        let Open { first, last, .. } = open;
        let job = Job { name, first, last, requests, after, state: "sending".to_owned(), ..Job::default() };
        self.jobs.list_mut().push(job.clone());
        self.jobs.set_complete(false);
        self.jobs.save()?;
        let created = self.create_once(&job, &open.part).await?;
        self.set_last(created)?;
        self.jobs.list().iter().last().into_iter().for_each(show);
        Ok(())
    }

    /// Creates a job. After a temporary failure the job may exist, so it is looked for first.
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

    pub(super) fn pause(&self, tries: u32) -> Duration {
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
                let is_it = |found: &BatchJob| found.name.as_deref() == Some(&job.name);
                Ok(self.client.newest(is_it).await?.pop().filter(is_it))
            }
            false => self.find_by_results(job).await,
        }
    }

    /// Finds a job without a name: one that is newer than the last one before it, with as many requests, and with results
    /// of this job. Only a job that has ended has results.
    async fn find_by_results(&self, job: &Job) -> Result<Option<BatchJob>, VendorBatchError> {
        let is_before = |found: &BatchJob| Some(&found.id) == job.after.as_ref();
        let is_known = |id: &String| self.jobs.list().iter().any(|job| job.id.as_ref() == Some(id));
        let newer = self.client.newest(is_before).await?.into_iter();
        let candidates = newer
            .filter(|found| !is_before(found) && !is_known(&found.id))
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
