//! Edits of a running loader.

use super::moved::too_busy;
use super::{Guarded, Loader, Parted};
use crate::dataset::IterDataset;
use crate::dataset::iter::edited_stages;
use crate::edits::Edits;
use crate::error::{Error, Result};

impl<D: IterDataset + 'static> Loader<D> {
    /// Returns the number of the first batch that [`edit`](Self::edit) can change with `edits`: the next batch. If stages
    /// between a mix or `to_iter` and the batches hold elements, the first edit of the mix, or the first edit that excludes records,
    /// can change the batch after the next batch.
    ///
    /// All hosts that have delivered equally many batches return equal numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if an edit fits no stage.
    pub fn first_edit(&self, edits: &Edits) -> Result<u64> {
        let delivered = self.position.delivered;
        let stages = edited_stages(&*self.dataset, edits)?;
        let progress = self.run.edits().progress(delivered);
        let lacks_mix = stages.mix.is_some_and(|mix| mix.is_held) && progress.is_none();
        let lacks_borders = stages.excluded.is_some_and(|excluded| excluded.is_held)
            && progress.is_none_or(|progress| progress.borders.is_empty());
        Ok(delivered + u64::from(delivered > 0 && (lacks_mix || lacks_borders)))
    }

    /// Adds `edits` to the run, which continues with the same threads, worker processes and open files.
    ///
    /// Batches that were made ahead are made again. All hosts must call `edit` with equal edits after equally many batches; a
    /// [guard](crate::LoaderBuilder::guard) compares the edits before the next batch. States, the report and the run log contain
    /// the edits.
    ///
    /// ```
    /// use gristmill::{Edits, dataset::map::Range, prelude::*};
    /// let mut batches = Range::new(0, 20).to_iter().batch(2).loader().build()?;
    /// assert_eq!(batches.next().transpose()?, Some(vec![0, 1]));
    /// batches.edit(Edits::default().skip(1, 3).global_batch(2, 4))?;
    /// assert_eq!(batches.next().transpose()?, Some(vec![8, 9]));
    /// assert_eq!(batches.next().transpose()?, Some(vec![10, 11, 12, 13]));
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if an edit fits no stage, or begins before [`first_edit`](Self::first_edit). Also
    /// for a batch size that does not divide among the hosts, or if this host evaluates only its own rows and the size changes.
    /// The run then continues unchanged. [`ErrorKind::Worker`](crate::ErrorKind::Worker) as in [`back`](Self::back).
    pub fn edit(&mut self, edits: Edits) -> Result<()> {
        self.check_process()?;
        edits.check()?;
        if self.ended {
            return Err(Error::state("the run has ended").help("resume a state with the edits"));
        }
        let first = self.first_edit(&edits)?;
        if let Some(at) = edits.first().filter(|at| *at < first) {
            let text =
                format!("the edit is at batch {at}, which has begun; the first batch that can change is {first}");
            return Err(Error::config(text).help(format!("begin the edit at batch {first} or later")));
        }
        let has_sizes = edits.sizes().next().is_some();
        let part = self.host.parted.as_ref().map(Parted::part);
        edits.sizes().try_for_each(|(_, size)| part.map_or(Ok(()), |part| part.rows(size).map(drop)))?;
        let is_by_rows = self.host.by_rows.is_some();
        let past = self.identity.edits();
        let (was_sized, was_excluded) = (past.sizes().next().is_some(), past.exclusions().next().is_some());
        if is_by_rows && has_sizes && !was_sized {
            let text = "this host evaluates only its own rows, so the batch size cannot change while the run continues";
            return Err(Error::config(text).help("add the edit to `edits`, and resume the state"));
        }
        if is_by_rows && edits.exclusions().next().is_some() && !was_excluded {
            let text = "this host evaluates only its own rows, so records cannot be excluded while the run continues";
            return Err(Error::config(text).help("add the edit to `edits`, and resume the state"));
        }
        let all = self.identity.edits().clone().and(edits);
        all.check()?;
        let stages = edited_stages(&*self.dataset, &all)?;
        self.run.edits().replace(all.clone(), stages);
        self.identity = self.identity.clone().edited(all);
        self.host.guarded.iter_mut().for_each(Guarded::restart);
        let earlier = self.position.earlier.clone();
        if !self.go_to(self.position.state.clone(), self.position.delivered)? {
            return Err(too_busy());
        }
        self.position.earlier = earlier;
        self.log_edits()
    }
}
