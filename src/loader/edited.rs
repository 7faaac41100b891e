//! Edits of a running loader.

use super::moved::too_busy;
use super::{Guarded, Loader, Parted};
use crate::dataset::IterDataset;
use crate::dataset::iter::edited_stages;
use crate::edits::Edits;
use crate::error::{Error, Result};
use crate::part::Part;

/// Checks that the batch sizes that `edits` set divide among the parts.
///
/// # Errors
/// See [`Part::rows`].
pub(super) fn check_sizes(edits: &Edits, part: Option<&Part>) -> Result<()> {
    edits.sizes().try_for_each(|(_, size)| part.map_or(Ok(()), |part| part.rows(size).map(drop)))
}

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
        let is_unknown = stages.lack_mix(progress.as_ref()) || stages.lack_borders(progress.as_ref());
        Ok(delivered + u64::from(delivered > 0 && is_unknown))
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
        check_sizes(&edits, self.host.parted.as_ref().map(Parted::part))?;
        let kinds = |edits: &Edits| [edits.sizes().next().is_some(), edits.exclusions().next().is_some()];
        let changes = ["the batch size cannot change", "records cannot be excluded"].into_iter();
        let mut new = changes.zip(kinds(&edits).into_iter().zip(kinds(self.identity.edits())));
        if self.host.by_rows.is_some()
            && let Some((change, _)) = new.find(|(_, (is_here, was_before))| *is_here && !was_before)
        {
            let text = format!("this host evaluates only its own rows, so {change} while the run continues");
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
