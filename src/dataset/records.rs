//! Mapping from elements to records of a source, and back.

use super::node::{Work, address};
use super::run::upcoming::{Found, Record, Upcoming};
use super::stage::Stage;
use crate::cx::StageId;

/// Returns the source record of element `index` of a random-access dataset, through all shuffles, slices and mixes.
///
/// Returns `None` if the element is made of several records, or if a custom stage's [indices](super::Indices) are
/// unknown. Reads no data.
pub fn record_of(dataset: &dyn Stage, index: u64) -> Option<Record> {
    match Upcoming::trace(index, |next| dataset.will_read(next)).as_slice() {
        [record] => Some(record.clone()),
        _ => None,
    }
}

/// Returns the source record of element `index` of the random-access dataset that contains stage `stage` of `stream`:
/// see [`record_of`]. Errors of the stage contain such an index. Returns `None` for stages after the border, which
/// count separately.
pub fn record_in(stream: &dyn Stage, stage: StageId, index: u64) -> Option<Record> {
    record_of(read_by(stream, stage)?, index)
}

/// A record that may have made elements slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suspect {
    /// Index of the element made of the record. `None` if several elements were evaluated together and no record is
    /// larger than the others combined: the record is then the first.
    pub(crate) element: Option<u64>,
    /// The file and the record in that file if known, else the record number in the source.
    pub(crate) place: String,
    /// Stored size of the record in bytes, if known.
    pub(crate) bytes: Option<u64>,
}

/// Returns the largest record of the elements at `indices` if it is larger than all others combined, else the first.
/// `indices` count the elements of the random-access dataset that contains stage `stage` of `stream`. Reads no data.
pub(crate) fn suspect_in(stream: &dyn Stage, stage: StageId, indices: &[u64]) -> Option<Suspect> {
    let dataset = read_by(stream, stage)?;
    let found = Upcoming::follow(indices, |next| dataset.will_read(next));
    let mut sources = Vec::new();
    dataset.walk(&mut |_, stage| sources.extend(stage.node().source));
    let source = |found: &Found| sources.iter().find(|source| address(**source) == found.source);
    let bytes = |found: &Found| source(found)?.record_bytes(found.record);
    let (largest, is_alone) = match (found.as_slice(), indices.len()) {
        ([], _) => return None,
        ([one], 1) => (one, true),
        // It is unknown which of several records took long.
        (_, 1) => return None,
        (all, _) => {
            let sizes = || all.iter().map(|found| bytes(found).unwrap_or(0));
            let (at, most) = sizes().enumerate().max_by_key(|(_, bytes)| *bytes)?;
            let is_most = 2 * most > sizes().sum();
            (if is_most { &all[at] } else { &all[0] }, is_most)
        }
    };
    let place = source(largest).and_then(|source| source.record_in_words(largest.record));
    Some(Suspect {
        element: indices.get(largest.place as usize).copied().filter(|_| is_alone),
        place: place.unwrap_or_else(|| format!("record {} of {}", largest.record, largest.name)),
        bytes: bytes(largest).filter(|_| is_alone),
    })
}

/// Returns the source of a dataset at this [`address`].
pub(super) fn source_at(dataset: &dyn Stage, at: usize) -> Option<&dyn Stage> {
    let mut found = None;
    dataset.walk(&mut |_, stage| {
        if stage.node().source.is_some_and(|source| address(source) == at) {
            found = Some(stage);
        }
    });
    found
}

/// Returns file and record of the element at `index`, if the element is made of a single record with a known file.
/// Reads no data.
pub(super) fn place_of(dataset: &dyn Stage, index: u64) -> Option<String> {
    let found = Upcoming::follow(&[index], |next| dataset.will_read(next));
    let [one] = found.as_slice() else { return None };
    source_at(dataset, one.source)?.node().source?.record_in_words(one.record)
}

/// Returns the random-access dataset that contains stage `stage` and that the stream reads.
fn read_by(stream: &dyn Stage, stage: StageId) -> Option<&dyn Stage> {
    let (stage, mut read) = (stage.0 as usize, None);
    stream.walk(&mut |id, node| {
        if node.node().work == Work::Border && read.is_none() && stage < id && id < stage + node.count() {
            read = node.parents().pop();
        }
    });
    read
}

/// Returns the index of `record` in a random-access dataset, in read number `epoch` of its source, from 0: the inverse
/// of [`record_of`]. Reads no data.
///
/// Returns `None` if the record is left out, or if a stage cannot compute the index: stages that fan out,
/// `select`, and custom stages without [`comes_at`](super::Moves::comes_at). If the record occurs several times, or an
/// epoch is repeated unchanged, returns the first index.
///
/// ```
/// use gristmill::{dataset::{Record, index_of, map::Range}, prelude::*};
/// let ds = Range::new(0, 10).shuffle(42).slice(..5);
/// assert_eq!(ds.collect()?, [8, 6, 7, 9, 0]);
/// assert_eq!(index_of(&ds, &Record::new("range", 9), 0), Some(3));
/// assert_eq!(index_of(&ds, &Record::new("range", 1), 0), None, "it is cut off");
/// # Ok::<(), gristmill::Error>(())
/// ```
///
/// # Cost
/// As much as finding one index, plus a search through the list of `select_indices`.
pub fn index_of(dataset: &dyn Stage, record: &Record, epoch: u64) -> Option<u64> {
    let index = dataset.comes_at(record, epoch)?;
    // Custom stages may move elements without implementing `comes_at`.
    Upcoming::trace(index, |next| dataset.will_read(next)).contains(record).then_some(index)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;
    use crate::cx::Cx;
    use crate::dataset::map::{Concatenate, Mix, Range};
    use crate::dataset::{BoxMap, Indices, IterDatasetExt, MapDataset, MapDatasetExt, Moves, Node, Remainder, Role};

    #[test]
    fn an_index_is_followed_to_its_record() {
        let ds = Range::new(0, 1000).map(Ok::<_, ()>).shuffle(7).slice(10..900).repeat(3);
        for index in [0, 5, 889, 890, 2000] {
            let number = ds.get(index, &mut Cx::default()).unwrap().unwrap();
            let record = record_of(&ds, index).unwrap();
            assert_eq!((record.source, record.index), ("range", number.unwrap() as u64), "{index}");
        }
        let mixed = Mix::new(vec![Range::new(0, 10).boxed(), Range::new(0, 20).shuffle(1).boxed()]);
        assert!(record_of(&mixed, 3).is_some());
        assert_eq!(record_of(&Range::new(0, 10).batch(4), 0), None, "of four");
    }

    #[test]
    fn in_a_stream_that_is_known_of_stages_in_front_of_the_border() {
        let ds = Range::new(0, 10).shuffle(1).to_iter().skip(2).zip(Range::new(0, 10).to_iter());
        let expected = record_of(&Range::new(0, 10).shuffle(1), 4);
        assert!(expected.is_some());
        assert_eq!(record_in(&ds, StageId(0), 4), expected);
        assert_eq!(record_in(&ds, StageId(1), 4), expected);
        assert_eq!(record_in(&ds, StageId(4), 4).map(|record| record.index), Some(4), "the other one's");
        assert_eq!(record_in(&ds, StageId(3), 4), None, "behind the border");
    }

    /// A stage that changes only the order.
    #[derive(Clone, Debug)]
    enum Op {
        Seed,
        Shuffle(u32),
        Window(u64, u32),
        Blocks(usize, u64, u32),
        Slice(i64, i64, i64),
        Shard(u64, u64),
        Repeat(u64),
        Indices(Vec<u64>),
    }

    impl Op {
        fn any() -> impl Strategy<Value = Self> {
            let step = prop_oneof![-3..=-1i64, 1..=3i64];
            prop_oneof![
                Just(Self::Seed),
                any::<u32>().prop_map(Self::Shuffle),
                (1..20u64, any::<u32>()).prop_map(|(window, seed)| Self::Window(window, seed)),
                (1..5usize, 1..9u64, any::<u32>()).prop_map(|(window, size, seed)| Self::Blocks(window, size, seed)),
                (-50..50i64, -50..50i64, step).prop_map(|(start, stop, step)| Self::Slice(start, stop, step)),
                (0..4u64, 1..4u64).prop_map(|(index, count)| Self::Shard(index % count, count)),
                (1..4u64).prop_map(Self::Repeat),
                prop::collection::vec(any::<u64>(), 1..20).prop_map(Self::Indices),
            ]
        }

        fn apply(&self, ds: BoxMap<u64>) -> BoxMap<u64> {
            let len = ds.len();
            match self.clone() {
                _ if !(1..200).contains(&len) => ds,
                Self::Seed => ds.seed(1).boxed(),
                Self::Shuffle(seed) => ds.shuffle(seed).boxed(),
                Self::Window(window, seed) => ds.window_shuffle(window, seed).boxed(),
                Self::Blocks(window, size, seed) => ds.block_shuffle(window, seed).block_size(size).boxed(),
                Self::Slice(start, stop, step) => ds.slice_step(start..stop, step).boxed(),
                Self::Shard(index, count) => ds.shard(index, count).boxed(),
                Self::Repeat(epochs) => ds.repeat(epochs).boxed(),
                Self::Indices(indices) => {
                    let mut seen = HashSet::new();
                    let once = indices.into_iter().map(|index| index % len).filter(|&index| seen.insert(index));
                    ds.select_indices(once.collect::<Vec<_>>()).boxed()
                }
            }
        }
    }

    proptest! {
        /// Elements are numbered by source index. Each number is found at its index, and no other number is found.
        #[test]
        fn a_record_is_found_where_it_comes(len in 1..40u64, ops in prop::collection::vec(Op::any(), 0..6)) {
            let numbered = Range::new(0, len as i64).map_with_index(|index, _| index.global);
            let ds = ops.iter().fold(numbered.boxed(), |ds, op| op.apply(ds));
            let mut cx = Cx::default();
            let find = |number: u64| index_of(&ds, &Record::new("range", number % len), number / len);
            let epochs: Vec<u64> = (0..2 * ds.len()).map(|index| ds.get(index, &mut cx).unwrap().unwrap()).collect();
            // The cost of an inverse is proportional to the stages and windows on its way.
            for (index, &number) in (0..).zip(&epochs).step_by(epochs.len() / 30 + 1) {
                prop_assert_eq!(record_of(&ds, index), Some(Record::new("range", number % len)));
                prop_assert_eq!(find(number), Some(index));
            }
            let missing = (0..len).filter(|number| !epochs[..ds.len() as usize].contains(number));
            prop_assert_eq!(missing.filter_map(find).next(), None);
        }
    }

    #[test]
    fn of_several_places_it_is_the_first() {
        let record = Record::new("range", 4);
        let ds = Range::new(0, 10).select_indices([7, 4, 4]);
        assert_eq!((index_of(&ds, &record, 0), index_of(&ds, &record, 2)), (Some(1), Some(7)));
        let ds = Range::new(0, 10).repeat(3).reseed_each_epoch(false);
        assert_eq!((index_of(&ds, &record, 0), index_of(&ds, &record, 1)), (Some(4), None));
    }

    #[test]
    fn in_parts_and_batches() {
        let shuffled = Range::new(0, 5).map(|x| x + 10).shuffle(1);
        let ds = Concatenate::new(vec![Range::new(0, 3).boxed(), shuffled.boxed()]);
        let record = Record::new("range", 4);
        for epoch in 0..3 {
            let index = index_of(&ds, &record, epoch).unwrap();
            assert_eq!((ds.get(index, &mut Cx::default()).unwrap(), index / 8), (Some(14), epoch));
        }
        let batches = |remainder| Range::new(0, 10).batch_with(4, remainder);
        assert_eq!(index_of(&batches(Remainder::Keep), &Record::new("range", 9), 2), Some(8));
        assert_eq!(index_of(&batches(Remainder::Drop), &Record::new("range", 9), 2), None);
        assert_eq!(index_of(&batches(Remainder::Drop), &Record::new("range", 7), 2), Some(5));
    }

    #[test]
    fn of_one_that_moves_elements_without_saying_so_nothing_is_claimed() {
        /// Delays each element by one index.
        struct Late(Range);

        impl Stage for Late {
            fn node(&self) -> Node<'_> {
                Node { indices: Indices::Moved(self), ..Node::new("late", Role::Elementwise) }
            }
            fn parents(&self) -> Vec<&dyn Stage> {
                vec![&self.0]
            }
        }

        impl Moves for Late {
            fn will_read(&self, next: Upcoming<'_>) {
                let before: Vec<u64> = next.indices().iter().map(|index| index + 9).collect();
                (&self.0 as &dyn Stage).will_read(next.at(&before));
            }
            fn comes_at(&self, record: &Record, epoch: u64) -> Option<u64> {
                (&self.0 as &dyn Stage).comes_at(record, epoch)
            }
        }

        assert_eq!(index_of(&Late(Range::new(0, 10)), &Record::new("range", 3), 0), None);
    }
}
