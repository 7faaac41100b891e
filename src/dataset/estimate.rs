//! Estimates of the memory held by the stages of a pipeline. Stages count elements, and the first elements are
//! measured.

use super::memory::{Held, Memory, Sample};
use super::node::Work;
use super::stage::{Role, Stage};

/// Result of [`estimate`] for one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageMemory {
    /// The memory that the stage declares.
    pub memory: Option<Memory>,
    /// The memory in bytes; `None` if the stage declares none, or if too little is known of its elements.
    pub bytes: Option<u64>,
    /// Whether element sizes were measured, on up to [`Sample::MOST`] first elements.
    pub measured: bool,
}

/// Estimates the memory of every stage of `pipeline` on `threads` threads, by stage id. Reads the first elements
/// several times.
///
/// ```
/// use gristmill::dataset::{Held, estimate, map::Range};
/// use gristmill::{Array, Element, prelude::*};
/// let elements = Range::new(0, 99).map(|_| Element::new().with("x", Array::from_vec(vec![0u8; 100]))).boxed();
/// let shuffled = elements.to_iter().window_shuffle(10, 1).boxed();
/// let window = estimate(&shuffled, 1).pop().unwrap();
/// assert_eq!(window.memory.unwrap().inputs, Held::AtMost(10));
/// ```
pub fn estimate(pipeline: &dyn Stage, threads: usize) -> Vec<StageMemory> {
    let mut all = Vec::new();
    pipeline.walk(&mut |_, stage| all.push(of_stage(stage, threads)));
    all
}

fn of_stage(stage: &dyn Stage, threads: usize) -> StageMemory {
    let Some(memory) = stage.node().memory else { return StageMemory::default() };
    let Memory { bytes, inputs, outputs, per_thread } = memory;
    let times = if per_thread { threads.max(1) as u64 } else { 1 };
    let elements = |count, payload: &dyn Fn() -> Option<u64>| if count == Held::NONE { Some(0) } else { payload() };
    let read = elements(inputs, &|| payload(only_parent(stage)?, inputs));
    let made = elements(outputs, &|| payload(stage, outputs));
    let total = |(read, made)| bytes.saturating_add(read).saturating_add(made).saturating_mul(times);
    StageMemory {
        memory: Some(memory),
        bytes: read.zip(made).map(total),
        measured: (inputs, outputs) != (Held::NONE, Held::NONE),
    }
}

/// Returns the payload bytes of `count` elements of `stage`.
fn payload(stage: &dyn Stage, count: Held) -> Option<u64> {
    let sample = sample(stage)?;
    let count = match count {
        Held::AtMost(count) => count as f64,
        Held::Pieces => sample.fan_out,
        Held::All => pass(stage)? as f64,
    };
    Some(if sample.elements == 0 { 0 } else { (count * (sample.bytes as f64 / sample.elements as f64)).ceil() as u64 })
}

/// Reads the first elements of `stage`.
fn sample_of(stage: &dyn Stage) -> Option<Sample> {
    stage.node().sample?.sample()
}

/// Returns the sample of `stage`, or of its parent if `stage` passes elements on unchanged.
fn sample(stage: &dyn Stage) -> Option<Sample> {
    let unchanged = matches!(stage.role(), Role::Order | Role::MayDrop);
    sample_of(stage).or_else(|| only_parent(stage).filter(|_| unchanged).and_then(sample))
}

/// Returns the maximum number of elements in a pass over `stage`; `None` if a stage after random access changes their
/// number.
fn pass(stage: &dyn Stage) -> Option<u64> {
    let border = stage.node().work == Work::Border && stage.role() == Role::Order;
    let at_most = border || matches!(stage.role(), Role::Elementwise | Role::MayDrop);
    let known = sample_of(stage).and_then(|sample| sample.pass);
    known.or_else(|| only_parent(stage).filter(|_| at_most).and_then(pass))
}

fn only_parent(stage: &dyn Stage) -> Option<&dyn Stage> {
    if let [parent] = stage.parents().as_slice() { Some(*parent) } else { None }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;
    use crate::dataset::map::Range;
    use crate::dataset::{BoxIter, BoxMap, Remainder};
    use crate::element::{Buffer, Owner};
    use crate::pack::{
        BatchSize, BinPackOptions, ConcatPackOptions, LengthBucketOptions, Packing, RowSpec, WindowPackOptions,
    };
    use crate::{Array, Cx, DType, DatasetIterator, Element, IterDataset, IterDatasetExt, MapDatasetExt, Runtime};

    /// Counts the source elements that are alive, now and at most.
    #[derive(Default)]
    struct Live {
        now: AtomicU64,
        most: AtomicU64,
    }

    struct Tracked {
        cells: Vec<i32>,
        live: Arc<Live>,
    }

    impl Owner for Tracked {
        fn bytes(&self) -> &[u8] {
            bytemuck::cast_slice(&self.cells)
        }
    }

    impl Drop for Tracked {
        fn drop(&mut self) {
            self.live.now.fetch_sub(1, Relaxed);
        }
    }

    fn tracked(cells: usize, live: &Arc<Live>) -> Element {
        live.most.fetch_max(1 + live.now.fetch_add(1, Relaxed), Relaxed);
        let owner = Tracked { cells: vec![7; cells], live: live.clone() };
        Element::new().with("x", Array::new(DType::I32, &[cells], Buffer::from_owner(Arc::new(owner))).unwrap())
    }

    /// Makes `count` elements of these sizes, repeatedly.
    fn elements(count: i64, cells: &'static [usize]) -> (BoxMap<Element>, Arc<Live>) {
        let live = Arc::new(Live::default());
        let of = live.clone();
        (Range::new(0, count).map(move |i| tracked(cells[i as usize % cells.len()], &of)).boxed(), live)
    }

    /// Returns the estimate for `dataset`.
    fn said(dataset: &dyn Stage, threads: usize) -> StageMemory {
        estimate(dataset, threads).pop().unwrap()
    }

    /// Returns the maximum number of live source elements in a pass whose output is dropped at once.
    fn held_in_a_pass(dataset: &BoxIter<Element>, live: &Live) -> u64 {
        assert_eq!(live.now.load(Relaxed), 0, "a sample is not kept");
        live.most.store(0, Relaxed);
        let (mut iter, mut cx) = (dataset.iter(&Runtime::inline()).unwrap(), Cx::default());
        while iter.next(&mut cx).unwrap().is_some() {}
        live.most.load(Relaxed)
    }

    const LENGTHS: &[usize] = &[3, 30, 9, 17, 1, 25, 12, 8, 16, 31, 5];

    #[test]
    fn stages_hold_the_elements_that_they_say() {
        type Put = fn(BoxIter<Element>) -> BoxIter<Element>;
        // Number of elements that a stage declares, and the number that it holds without a copy.
        let stages: [(u64, u64, Put); 6] = [
            (20, 20, |ds| ds.window_shuffle(20, 1).boxed()),
            (30, 1, |ds| ds.window_pack(WindowPackOptions::new(RowSpec::new([("x", 32)])).window(30)).boxed()),
            (13, 13, |ds| ds.length_buckets(LengthBucketOptions::new(["x"], [8, 16, 32], BatchSize::Fixed(5))).boxed()),
            (1, 1, |ds| ds.first_fit_pack(BinPackOptions::new(RowSpec::new([("x", 32)]), 4)).boxed()),
            (1, 1, |ds| ds.best_fit_pack(BinPackOptions::new(RowSpec::new([("x", 32)]), 4)).boxed()),
            (1, 1, |ds| ds.concat_then_split_pack(ConcatPackOptions::new(RowSpec::new([("x", 32)]))).boxed()),
        ];
        for (inputs, themselves, put) in stages {
            let (source, live) = elements(500, LENGTHS);
            let dataset = put(source.to_iter().boxed());
            let name = dataset.node().name;
            assert_eq!(said(&dataset, 1).memory.unwrap().inputs, Held::AtMost(inputs), "{name}");
            let held = held_in_a_pass(&dataset, &live);
            // One more element is in progress.
            assert!((themselves..=themselves + 1).contains(&held), "{name} holds {held} elements and says {inputs}");
        }
    }

    #[test]
    fn batches_and_what_is_cut_from_them() {
        let (source, live) = elements(40, &[10]);
        let batches = source.to_iter().boxed().batch(9).boxed();
        let batch = said(&batches, 1);
        // Nine elements of 40 bytes, and their batch. The last batch of the sample has 4 elements.
        assert_eq!(batch.memory, Some(Memory::elements(Held::AtMost(9), Held::AtMost(1))));
        assert_eq!((batch.bytes, batch.measured), (Some(9 * 40 + 40 * 40 / 5), true));
        assert_eq!(held_in_a_pass(&batches, &live), 9);

        // Batches of 3 rows are recut to 10 rows as views. The batches that a view touches stay alive: at most 3 whole
        // batches, and a part of a batch at each end.
        let (source, live) = elements(60, &[3]);
        let recut = source.to_iter().boxed().rebatch(10, Remainder::Keep).boxed();
        let held = held_in_a_pass(&recut, &live);
        let said = said(&recut, 1);
        assert!(12 * held <= said.bytes.unwrap(), "{held} batches of 12 bytes, {said:?}");
        assert_eq!(said.bytes, Some(2 * 12 + 2 * 40));
    }

    #[test]
    fn a_cache_holds_a_pass() {
        let (source, live) = elements(100, &[10]);
        let cached = source.to_iter().filter(|_| true).boxed().cache().boxed();
        assert_eq!(said(&cached, 1).bytes, Some(100 * 40));
        assert_eq!(held_in_a_pass(&cached, &live), 100);
        let (source, _) = elements(100, &[10]);
        let fewer = source.to_iter().boxed().window_shuffle(10, 1).boxed().limit(50).boxed().cache().boxed();
        // The sample includes the end.
        assert_eq!(said(&fewer, 1).bytes, Some(50 * 40));
        let (source, _) = elements(1000, &[10]);
        let packed = source.to_iter().boxed().batch(2).boxed().cache().boxed();
        // The sample does not include the end, so the number of batches is unknown.
        assert_eq!((said(&packed, 1).bytes, said(&packed, 1).measured), (None, true));
    }

    #[test]
    fn pieces_are_counted() {
        let halves = |e: Element| Ok([e.rows(0..5)?, e.rows(5..10)?]);
        let (source, _) = elements(100, &[10]);
        let stream = source.to_iter().boxed().try_flat_map(halves).boxed();
        assert_eq!(said(&stream, 1).bytes, Some(40));
        let (source, _) = elements(100, &[10]);
        let seeded = source.to_iter().seed(1).try_flat_map(halves).boxed();
        assert_eq!(said(&seeded, 1).bytes, Some(40));
        let (source, _) = elements(100, &[10]);
        let fan = source.to_iter().try_flat_map(halves).boxed();
        assert_eq!(said(&fan, 4).bytes, Some(40));
        let (source, _) = elements(100, &[10]);
        let map = source.try_flat_map(3, halves).boxed();
        // Each thread may hold the pieces of one element.
        assert_eq!((said(&map, 1).bytes, said(&map, 4).bytes), (Some(3 * 20), Some(4 * 3 * 20)));
        let (source, _) = elements(100, &[10]);
        assert_eq!(said(&source.batch(5).boxed(), 2).bytes, Some(2 * (5 * 40 + 200)));
    }

    #[test]
    fn orders_are_tables_as_long_as_they_are_short() {
        let bytes = |ds: &dyn Stage| (said(ds, 2).bytes, said(ds, 2).measured);
        assert_eq!(bytes(&Range::new(0, 1000).shuffle(1)), (Some(12 * 2000), false));
        assert_eq!(bytes(&Range::new(0, 1 << 40).shuffle(1)), (Some(0), false));
        assert_eq!(bytes(&Range::new(0, 1 << 40).window_shuffle(1000, 1)), (Some(2 * 2000), false));
        assert_eq!(bytes(&Range::new(0, 10).window_shuffle(1000, 1)), (Some(2 * 20), false));
        assert_eq!(bytes(&Range::new(0, 1 << 40).window_shuffle(1 << 20, 1)), (Some(0), false));
        assert_eq!(bytes(&Range::new(0, 10).select_indices(vec![1, 5])), (Some(16), false));
    }

    #[test]
    fn what_is_not_known_is_not_made_up() {
        // Numbers have no payload size.
        let typed = Range::new(0, 100).to_iter().boxed().window_shuffle(10, 1).boxed();
        assert_eq!(said(&typed, 1).bytes, None);
        assert_eq!(said(&Range::new(0, 100).to_iter().boxed(), 1), StageMemory::default());
        // The size of elements that cannot be read is unknown.
        let broken = Range::new(0, 9).try_map(|_| Err::<Element, _>(crate::Error::data("no"))).boxed();
        assert_eq!(said(&broken.to_iter().boxed().batch(2).boxed(), 1).bytes, None);
        let (source, _) = elements(0, &[10]);
        assert_eq!(said(&source.to_iter().boxed().window_shuffle(10, 1).boxed(), 1).bytes, Some(0));
        let limited = Range::new(0, 100).to_iter().boxed().limit(3).boxed();
        assert_eq!(said(&limited, 1).bytes, Some(0));
    }
}
