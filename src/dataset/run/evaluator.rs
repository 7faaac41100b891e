//! Selection of the evaluator of a prefix: none, threads of this process, or worker processes.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::evaluate::{
    Aim, Chunk, Evaluator, Gather, Incoming, Wanted, caught, channel, evaluate_range, groups, of_columns,
};
use crate::cx::{Cx, ElementGroup, StageId, Watch};
use crate::dataset::map::MapDataset;
use crate::dataset::run::pace::Pace;
use crate::dataset::stage::Stage;
use crate::element::Part;
use crate::error::Result;
use crate::exec::{Engine, Pool, Runtime};

/// An evaluator of a prefix outside the consumer's thread.
type Other<T, W> = Box<dyn Evaluator<T, W>>;

/// Returns the evaluator of `dataset`, an elementwise prefix. Returns `None` if the consumer's thread evaluates it.
///
/// # Errors
/// Fails if elements would have to leave a worker process, and their type cannot.
#[cfg_attr(
    not(all(feature = "workers", target_os = "linux")),
    expect(unused_variables, reason = "other processes need the border's name")
)]
pub(super) fn evaluator<D: MapDataset<Item: Send + 'static> + 'static, G: Gather<D::Item>>(
    dataset: &Arc<D>,
    gather: Option<&Arc<G>>,
    run: &Runtime,
    border: StageId,
) -> Result<Option<Other<D::Item, G::Whole>>> {
    Ok(match run.engine() {
        Engine::Inline => None,
        Engine::Threads(pool) => {
            let (dataset, gather, pace) = (dataset.clone(), gather.cloned(), Arc::new(Pace::of(dataset)));
            let far = (&dataset as &dyn Stage).any_reads_far();
            Some(Box::new(OnPool { dataset, gather, run: run.clone(), pool: pool.clone(), pace, far }))
        }
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Workers(workers) => {
            use super::remote::Ranges;
            let stage: &dyn Stage = dataset;
            let shared = stage.looks_ahead().filter(|elements| *elements > 0);
            let ranges = match stage.any_reads_far() {
                true => Ranges::Far,
                false => shared.map_or(Ranges::Plain, Ranges::Sharing),
            };
            let listed = {
                let dataset = dataset.clone();
                Box::new(move |range| (&dataset as &dyn Stage).listed(range))
            };
            Some(super::remote::on_workers(gather, run, workers, border, ranges, listed)?)
        }
        #[cfg(all(feature = "workers", target_os = "linux"))]
        Engine::Serving(served) => {
            super::serve::serve(dataset, gather, run, served, border);
            None
        }
    })
}

/// The threads of this process.
struct OnPool<D, G> {
    dataset: Arc<D>,
    gather: Option<Arc<G>>,
    run: Runtime,
    pool: Arc<Pool>,
    pace: Arc<Pace>,
    /// True if elements come from remote stores.
    far: bool,
}

/// Maximum size of a range. Larger ranges cost no less between threads.
const MOST_SLOTS: u64 = 1024;
/// Minimum of the size limit. Smaller ranges do not pay for their hand-over if elements are cheap.
const LEAST_SLOTS: u64 = 64;

impl<D: MapDataset<Item: Send + 'static> + 'static, G: Gather<D::Item>> Evaluator<D::Item, G::Whole> for OnPool<D, G> {
    fn window(&self) -> usize {
        self.pool.window()
    }

    fn aim(&self) -> Aim {
        // Reading elements together pays off only in long ranges.
        let time = Duration::from_millis(if self.pace.is_together() { 50 } else { 2 });
        // Sources keep decoded data for elements within a certain distance. The ranges in flight must not use up that
        // distance.
        let slots = match (&self.dataset as &dyn Stage).looks_ahead().filter(|&elements| elements > 0 && !self.far) {
            Some(elements) => (elements / (2 * self.window() as u64)).clamp(LEAST_SLOTS, MOST_SLOTS),
            None => MOST_SLOTS,
        };
        Aim { time, slots, bytes: usize::MAX }
    }

    fn gathers(&self) -> bool {
        self.gather.is_some()
    }

    fn submit(&self, Wanted { range, grouped }: Wanted) -> Incoming<Chunk<D::Item, G::Whole>> {
        let (outgoing, incoming) = channel();
        let (dataset, run, pace) = (self.dataset.clone(), self.run.clone(), self.pace.clone());
        let (gather, pool) = (self.gather.clone().filter(|_| grouped), self.pool.clone());
        let indices = range.end - range.start;
        self.pool.submit(Box::new(move |open| {
            // After a seek or a drop of the stream, the range is not needed.
            let go_on = || open.get() && outgoing.is_wanted();
            if !go_on() {
                return;
            }
            let watch = Watch::start();
            let mut cx = run.cx_ahead();
            let parts = match gather {
                None => vec![Part::Slots(evaluate_range(&*dataset, range, &pace, &mut cx, &go_on))],
                Some(gather) => groups(range, gather.size())
                    .map(|group| evaluate_group(&*dataset, group, &*gather, &pace, &mut cx, &go_on))
                    .collect(),
            };
            let slowest = cx.take_slowest().map(|piece| in_dataset(&*dataset, piece));
            // The counts are recorded before the elements are visible.
            drop(cx);
            pool.evaluated(indices);
            if !go_on() {
                return;
            }
            let _ = outgoing.chunks.send(Ok(Chunk { parts, made: watch.end(slowest) }));
        }));
        incoming
    }
}

/// Converts the position of a piece to an index of the dataset, if the piece was evaluated from a list of indices.
fn in_dataset<D: MapDataset>(dataset: &D, piece: ElementGroup) -> ElementGroup {
    let listed = (dataset as &dyn Stage).listed(piece.index..piece.index.saturating_add(1));
    let index = listed.and_then(|indices| indices.first().copied()).unwrap_or(piece.index);
    ElementGroup { index, ..piece }
}

/// Combines a group if every index has an element. Returns its slots otherwise.
fn evaluate_group<D: MapDataset, G: Gather<D::Item>>(
    dataset: &D,
    group: Range<u64>,
    gather: &G,
    pace: &Pace,
    cx: &mut Cx,
    go_on: &dyn Fn() -> bool,
) -> Part<D::Item, G::Whole> {
    let len = group.end - group.start;
    if let Some(whole) = of_columns(dataset, gather, group.clone(), cx) {
        return Part::Whole(Ok(whole), len);
    }
    match evaluate_range(dataset, group, pace, cx, go_on).dense() {
        Ok(items) if items.len() as u64 == len && gather.takes(len) => {
            Part::Whole(caught(|| gather.gather(items, cx)), len)
        }
        Ok(items) => Part::Slots(items.into()),
        Err(slots) => Part::Slots(slots),
    }
}
