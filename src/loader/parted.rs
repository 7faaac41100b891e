//! Passes over the batches of a pipeline, or over the rows of a part of each batch.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use crate::cx::Cx;
use crate::dataset::iter::{Dealt, PartPassOf, left_out, unmade};
use crate::dataset::{DatasetIterator, IterDataset};
use crate::error::Result;
use crate::exec::Runtime;
use crate::part::{Deal, Dealer, Part, RowBatch, RowNumbers};
use crate::sync::Locked;

/// Function that takes a part's rows of a batch, and returns them with their numbers.
type Cut<T> = fn(Dealt<T>, &mut Dealer) -> Result<(T, RowNumbers)>;

/// Part of each batch that a loader delivers.
pub(super) struct Parted<T> {
    dealer: Dealer,
    cut: Cut<T>,
    rows: Option<RowNumbers>,
}

impl<T: RowBatch> Parted<T> {
    pub(super) fn new(part: Part) -> Self {
        let cut = |batch: Dealt<T>, dealer: &mut Dealer| match batch {
            Dealt::Own(batch, rows, plan) if batch.num_rows()? == rows.len() => {
                dealer.count(plan.gain.unwrap_or_default());
                Ok((batch, rows))
            }
            Dealt::Own(..) => Err(left_out()),
            Dealt::Planned(_) => Err(unmade()),
            Dealt::Whole(batch, plan) => {
                let rows = dealer.rows(&batch, plan.costs.as_deref())?;
                Ok((batch.take_rows(&rows)?, rows))
            }
        };
        Self { dealer: Dealer::new(part, Deal::Even), cut, rows: None }
    }
}

impl<T> Parted<T> {
    /// Sets the deal of the rows.
    ///
    /// # Errors
    /// See [`Part::check`] and [`Deal::check`].
    pub(super) fn dealt(mut self, deal: Deal) -> Result<Self> {
        self.part().check()?;
        deal.check(self.part())?;
        self.dealer = Dealer::new(self.part().clone(), deal);
        Ok(self)
    }

    pub(super) fn part(&self) -> &Part {
        &self.dealer.part
    }

    pub(super) fn deal(&self) -> &Deal {
        &self.dealer.deal
    }

    /// Returns the remark of the dealer: see [`Dealer::remark`].
    pub(super) fn remark(&self) -> Option<String> {
        self.dealer.remark()
    }

    /// Takes the part's rows of batch `number`.
    pub(super) fn take(&mut self, batch: Dealt<T>, number: u64) -> Result<T> {
        let taken = (self.cut)(batch, &mut self.dealer);
        let (taken, rows) = taken.map_err(|error| error.of(&format!("batch {number}, part {}", self.part())))?;
        self.rows = Some(rows);
        Ok(taken)
    }

    /// Returns the numbers of the rows taken last.
    pub(super) fn rows(&self) -> Option<&RowNumbers> {
        self.rows.as_ref()
    }
}

/// Pass over whole batches, or over only the rows of a part.
pub(super) struct Pass<D: IterDataset> {
    dataset: Arc<D>,
    run: Runtime,
    /// The requested part, which a restore switches to.
    wanted: Wanted,
    inner: Inner<D>,
    /// Number of the next batch of the run.
    number: u64,
    /// Number of the next batch after a restore.
    restored: Number,
}

/// Number of the batch at which a pass on another thread continues after a restore.
pub(super) type Number = Arc<AtomicU64>;

/// Requested part of a pass that may run on another thread.
pub(super) type Wanted = Arc<Mutex<Option<Part>>>;

enum Inner<D: IterDataset> {
    Whole(D::Iter),
    Part(PartPassOf<D>, Part),
}

impl<D: IterDataset> Inner<D> {
    /// Starts the pass that evaluates the fewest elements.
    fn start(dataset: &D, run: &Runtime, part: Option<Part>) -> Result<Self> {
        if let Some(part) = part
            && let Some(pass) = dataset.iter_part(&run.over(&part), &part)?
        {
            return Ok(Self::Part(pass, part));
        }
        dataset.iter(run).map(Self::Whole)
    }
}

impl<D: IterDataset> Pass<D> {
    pub(super) fn start(dataset: Arc<D>, run: &Runtime, wanted: Wanted) -> Result<Self> {
        let part = wanted.locked().clone();
        let inner = Inner::start(&*dataset, run, part)?;
        Ok(Self { dataset, run: run.clone(), wanted, inner, number: 0, restored: Number::default() })
    }

    /// Sets the number that contains the number of the next batch at each restore.
    pub(super) fn restored_at(self, restored: &Number) -> Self {
        Self { restored: restored.clone(), ..self }
    }

    /// Returns true if the pass evaluates only the rows of a part, so that a change of part requires a restore.
    pub(super) fn is_of_part(&self) -> bool {
        matches!(self.inner, Inner::Part(..))
    }
}

impl<D: IterDataset> DatasetIterator for Pass<D> {
    type Item = Dealt<D::Item>;
    type State = <D::Iter as DatasetIterator>::State;

    #[inline]
    fn next(&mut self, cx: &mut Cx) -> Result<Option<Self::Item>> {
        let inner = &mut self.inner;
        let next = self.run.edits().batch(self.number, cx, |cx| match inner {
            Inner::Whole(pass) => Ok(pass.next(cx)?.map(Dealt::whole)),
            Inner::Part(pass, _) => pass.next(cx),
        })?;
        self.number += 1;
        Ok(next)
    }

    #[inline]
    fn state(&self) -> Self::State {
        match &self.inner {
            Inner::Whole(pass) => pass.state(),
            Inner::Part(pass, _) => pass.state(),
        }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        if let Inner::Part(_, part) = &self.inner {
            let wanted = self.wanted.locked().clone();
            if wanted.as_ref() != Some(part) {
                self.inner = Inner::start(&*self.dataset, &self.run, wanted)?;
            }
        }
        self.number = self.restored.load(Relaxed);
        self.run.edits().move_to(self.number, cx);
        match &mut self.inner {
            Inner::Whole(pass) => pass.restore(state, cx),
            Inner::Part(pass, _) => pass.restore(state, cx),
        }
    }
}
