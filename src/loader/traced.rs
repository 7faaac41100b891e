//! The lineage of delivered rows.

use super::Loader;
use crate::cx::Cx;
use crate::dataset::{IterDataset, Lineage, PlannedPass, Tracer};
use crate::error::{Error, Result};

impl<D: IterDataset + 'static> Loader<D> {
    /// Returns the records from which the rows of the last delivered element were made: for each row its documents, their
    /// files, and their cells in the row. With a [part](crate::LoaderBuilder::part), returns the rows of the part.
    ///
    /// The element is planned again from the state before it, from [keys](crate::LoaderBuilder::keys). Records without keys are
    /// evaluated again if rows depend on lengths or on dropped elements. Elements that are not batches have a single row.
    ///
    /// ```
    /// use gristmill::{dataset::map::Range, prelude::*};
    /// let mut loader = Range::new(0, 10).shuffle(42).to_iter().batch(4).loader().build()?;
    /// assert_eq!(loader.next().transpose()?, Some(vec![8, 6, 7, 9]));
    /// let records: Vec<u64> = loader.lineage()?.iter().map(|row| row.segments[0].record).collect();
    /// assert_eq!(records, [8, 6, 7, 9]);
    /// # Ok::<(), gristmill::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::State`](crate::ErrorKind::State) if no element was delivered since the start or the last move.
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with the reason if the records of rows are unknown: a stream without random
    /// access, or a stage whose decisions require elements. Errors of the evaluation.
    pub fn lineage(&self) -> Result<Vec<Lineage>> {
        self.check_process()?;
        let Some(before) = self.position.earlier.front().cloned() else {
            let text = "no element was delivered since the start, or since the loader moved";
            return Err(Error::state(text).help("call `lineage` after a batch"));
        };
        let mut cx = Cx::default();
        let mut pass = PlannedPass::start(&*self.dataset, self.run.shared_keys())?;
        pass.restore(before, &mut cx)?;
        let Some(batch) = pass.next(true, &mut cx)? else {
            return Err(Error::state("the plan ends before the last delivered element"));
        };
        let mut rows = Tracer::new(&*self.dataset).rows(&batch);
        if let Some(own) = self.rows() {
            let own: Vec<u64> = own.iter().map(|row| row as u64).collect();
            rows.retain(|row| own.contains(&row.row));
            rows.sort_by_key(|row| own.iter().position(|own| *own == row.row));
        }
        Ok(rows)
    }
}
