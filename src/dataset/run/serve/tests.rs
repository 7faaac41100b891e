use crate::MapDatasetExt;
use proptest::prelude::*;

use super::*;
use crate::IterDataset;
use crate::dataset::Remainder;
use crate::dataset::iter::InPlace;
use crate::dataset::map::{GetStacked, RandomAccess, Range as Numbers, Source, SourceFacts};
use crate::element::{Array, BufferMut, Element, Owner, Part, Stack};
use crate::exec::Engine;
use crate::wire::read_parts;

struct Extent(BufferMut);

impl Owner for Extent {
    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn element(x: i64) -> Element {
    Element::new().with("x", Array::from_vec(vec![x; 20]))
}

/// Returns the worker's side of a stream of batches of elements. The records in `bad` fail.
fn served(len: i64, size: usize, whole: bool, bad: Vec<i64>) -> Arc<dyn Serve> {
    let remainder = if whole { Remainder::Drop } else { Remainder::Keep };
    let check = move |x| if bad.contains(&x) { Err(Error::data(format!("{x}"))) } else { Ok(element(x)) };
    let served = Arc::<Served>::default();
    let run = Runtime::of(Engine::Serving(served.clone()), None);
    let stream = Numbers::new(0, len).try_map(check).to_iter().batch_with(size, remainder);
    drop(stream.iter(&run).unwrap());
    served.find(run.border(StageId(2))).unwrap()
}

/// Evaluates `range` as a worker does, into an extent of `bytes` bytes.
fn evaluated(serve: &dyn Serve, range: Range<u64>, from: Option<u64>, bytes: usize) -> (Parts, Evaluated) {
    let mut memory = BufferMut::zeroed(bytes);
    let evaluated = serve.evaluate(range, from, memory.as_mut_bytes()).unwrap();
    if evaluated.indices == 0 {
        return (Vec::new(), evaluated);
    }
    let owner: Arc<dyn Owner> = Arc::new(Extent(memory));
    let parts = read_parts(&owner, evaluated.used, Crossing::OF, Some(Crossing::OF)).unwrap();
    (parts.into_iter().map(Part::made).collect(), evaluated)
}

type Parts = Vec<Part<Element, Element>>;

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Holds for every division of a range into tasks, and for extents of every size.
    #[test]
    fn batches_are_whole_where_a_task_has_all_of_them(
        len in 1u64..200,
        size in 1u64..20,
        drop in any::<bool>(),
        bad in prop::collection::vec(0i64..200, 0..3),
        first in 0u64..30,
        cuts in prop::collection::vec((1u64..100, 0usize..20_000), 1..20),
    ) {
        let serve = served(len as i64, size as usize, drop, bad.clone());
        let start = first.min(len);
        let (mut at, mut cuts, mut room) = (start, cuts.into_iter().cycle(), 0);
        while at < len {
            let (most, bytes) = cuts.next().unwrap();
            let end = len.min(at + most);
            let (parts, evaluated) = evaluated(&*serve, at..end, Some(start), bytes.max(room));
            room = match (evaluated.indices, evaluated.need) {
                (0, Some(need)) => {
                    prop_assert!(need > bytes.max(room));
                    need
                }
                (done, _) => {
                    prop_assert!(0 < done && done <= end - at);
                    0
                }
            };
            let bad_in = |range: Range<u64>| bad.iter().any(|x| range.contains(&(*x as u64)));
            let group = |at: u64| at..(at + size).min(len);
            let is_whole = |at: u64| {
                let group_end = group(at).end;
                let full = group_end - at == size || !drop;
                (at - start).is_multiple_of(size) && group_end <= end && full && !bad_in(group(at))
            };
            for part in parts {
                match part {
                    Part::Whole(batch, indices) => {
                        prop_assert!(is_whole(at));
                        let items: Vec<_> = group(at).map(|x| element(x as i64)).collect();
                        prop_assert_eq!(batch.unwrap(), Element::stack(items).unwrap());
                        at += indices;
                    }
                    Part::Slots(slots) => for slot in slots {
                        prop_assert!(!is_whole(at), "{at} of {end}, from {start}");
                        match slot {
                            Ok(slot) => prop_assert_eq!(slot, Some(element(at as i64))),
                            Err(error) => prop_assert!(bad_in(at..at + 1), "{error}"),
                        }
                        at += 1;
                    },
                    Part::Rows(_) => unreachable!("they were made"),
                }
            }
        }
    }
}

#[test]
fn without_being_asked_nothing_is_grouped() {
    let serve = served(20, 4, false, Vec::new());
    let (parts, evaluated) = evaluated(&*serve, 0..20, None, 1 << 16);
    assert_eq!(evaluated.indices, 20);
    assert!(matches!(&parts[..], [Part::Slots(slots)] if slots.len() == 20));
    assert!(serve.evaluate(0..21, None, &mut []).is_err());
}

#[test]
fn a_batch_that_cannot_be_stacked_is_an_error_in_its_place() {
    let ragged = |x: i64| Element::new().with("x", Array::from_vec(vec![0u8; x as usize]));
    let served = Arc::<Served>::default();
    let run = Runtime::of(Engine::Serving(served.clone()), None);
    drop(Numbers::new(0, 6).map(ragged).to_iter().batch(3).iter(&run).unwrap());
    let serve = served.find(run.border(StageId(2))).unwrap();
    let (parts, _) = evaluated(&*serve, 0..6, Some(0), 1 << 16);
    let error = |part: &Part<Element, Element>| match part {
        Part::Whole(Err(error), 3) => error.to_string(),
        _ => panic!("no error of three"),
    };
    let errors: Vec<String> = parts.iter().map(error).collect();
    assert!(errors[0].starts_with("stage 3 batch: cannot stack 3 elements"), "{errors:?}");
    assert_eq!(errors.len(), 2);
}

/// Counts the batches that are made from columns.
#[derive(Clone)]
struct Rows {
    row_bytes: usize,
    stacked: Arc<AtomicUsize>,
}

impl RandomAccess for Rows {
    type Record = Element;

    fn len(&self) -> u64 {
        40
    }

    fn read(&self, index: u64) -> Result<Element> {
        Ok(Element::new().with("x", Array::from_vec(vec![index as u8; self.row_bytes])))
    }

    fn read_stacked(&self, indices: &[u64]) -> GetStacked<Element> {
        self.stacked.fetch_add(1, Ordering::Relaxed);
        let items = indices.iter().map(|&index| self.read(index)).collect::<Result<Vec<_>>>().ok()?;
        let (len, bytes) = (items.len(), items.len() * self.row_bytes);
        Some(InPlace { batch: Element::stack(items).ok()?, len, bytes })
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts { has_columns: true, ..SourceFacts::new("rows", "") }
    }
}

#[test]
fn large_rows_are_copied_once_and_small_ones_come_out_of_columns() {
    for (row_bytes, stacked) in [(100, 10), (LARGE_ROW as usize, 1)] {
        let rows = Rows { row_bytes, stacked: Arc::default() };
        let served = Arc::<Served>::default();
        let run = Runtime::of(Engine::Serving(served.clone()), None);
        drop(Source::new(rows.clone()).to_iter().batch(4).iter(&run).unwrap());
        let serve = served.find(run.border(StageId(1))).unwrap();
        for first in (0..40).step_by(4) {
            let (parts, _) = evaluated(&*serve, first..first + 4, Some(0), 1 << 16);
            let items = (first..first + 4).map(|index| rows.read(index).unwrap()).collect();
            let expected = Element::stack(items).unwrap();
            assert!(matches!(&parts[..], [Part::Whole(Ok(batch), 4)] if *batch == expected));
        }
        assert_eq!(rows.stacked.load(Ordering::Relaxed), stacked, "rows of {row_bytes} bytes");
    }
}
