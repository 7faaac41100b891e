use crate::MapDatasetExt;
use std::collections::HashSet;

use super::*;
use crate::cx::Cx;
use crate::dataset::Stage;
use crate::dataset::map::{Concatenate, RandomAccess, Range, Source};

/// Records in blocks of these lengths, and the number of elements that the source can cache.
#[derive(Clone)]
struct Blocked(Vec<u64>, Option<u64>);

impl RandomAccess for Blocked {
    type Record = u64;
    fn len(&self) -> u64 {
        self.0.iter().sum()
    }
    fn read(&self, index: u64) -> Result<u64> {
        Ok(index)
    }
    fn blocks(&self) -> Option<Blocks> {
        Some(Blocks::of(self.0.clone())?.with_room(self.1))
    }
}

fn blocked(lens: &[u64]) -> Source<Blocked> {
    Source::new(Blocked(lens.to_vec(), None))
}

const UNEVEN: [u64; 9] = [5, 1, 40, 7, 13, 2, 9, 9, 3];

fn order(ds: &impl MapDataset<Item = u64>, epoch: u64) -> Vec<u64> {
    let mut cx = Cx::default();
    let start = epoch * ds.len();
    (start..start + ds.len()).map(|index| ds.get(index, &mut cx).unwrap().unwrap()).collect()
}

#[test]
fn each_epoch_has_each_element_once_in_another_order() {
    for window in [1, 2, 3, 8, 9, 100] {
        let ds = blocked(&UNEVEN).block_shuffle(window, 7);
        let epochs: Vec<_> = (0..4).map(|epoch| order(&ds, epoch)).collect();
        for order in &epochs {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..UNEVEN.iter().sum()), "window {window}");
        }
        assert_eq!(epochs.iter().collect::<HashSet<_>>().len(), 4, "window {window}");
        assert_eq!(order(&ds, 1), epochs[1]);
        assert_ne!(order(&blocked(&UNEVEN).block_shuffle(window, 8), 0), epochs[0]);
    }
}

/// Computes the order naively: without a search and without cached windows.
fn naive(blocks: &Blocks, window: usize, seed: u64, epoch: u64) -> Vec<u64> {
    let permuted = |len: usize, key: u32| {
        let shuffle = IndexShuffle::new(len as u64 - 1, key, 4).unwrap();
        (0..len as u64).map(move |i| shuffle.get(i) as usize).collect::<Vec<_>>()
    };
    let mut all = Vec::new();
    for (at, window) in permuted(blocks.count(), key(&[seed, epoch])).chunks(window).enumerate() {
        let elements: Vec<u64> = window.iter().flat_map(|&block| blocks.range(block)).collect();
        all.extend(permuted(elements.len(), key(&[seed, epoch, at as u64])).into_iter().map(|i| elements[i]));
    }
    all.into_iter().map(|at| at + epoch * blocks.elements()).collect()
}

#[test]
fn windows_of_blocks_are_those_of_the_order_written_out() {
    let globals = |window, lens: &[u64]| blocked(lens).map_with_index(|i, _| i.global).block_shuffle(window, 9);
    for lens in [&UNEVEN[..], &[100], &[30, 30, 30, 4], &[1; 70]] {
        let blocks = Blocks::of(lens.to_vec()).unwrap();
        for window in [1, 2, 3, 50] {
            for epoch in 0..3 {
                assert_eq!(order(&globals(window, lens), epoch), naive(&blocks, window, 9, epoch));
            }
        }
    }
}

#[test]
fn the_order_is_what_it_was() {
    assert_eq!(Range::new(0, 12).block_shuffle(2, 42).block_size(3).collect().unwrap(), PINNED);
}

const PINNED: [i64; 12] = [5, 1, 2, 4, 3, 0, 11, 10, 9, 7, 8, 6];

#[test]
fn an_index_is_found_again() {
    for ds in [blocked(&UNEVEN).block_shuffle(2, 5), blocked(&UNEVEN).block_shuffle(4, 5).block_size(10)] {
        let mut cx = Cx::default();
        for index in 0..3 * ds.len() {
            let record = ds.get(index, &mut cx).unwrap().unwrap();
            assert_eq!(ds.index_of(record + index / ds.len() * ds.len()).unwrap(), index);
        }
    }
    let empty = Range::new(0, 0).block_shuffle(2, 1).block_size(4);
    assert!(empty.node().describe.check().is_ok() && empty.index_of(0).is_err());
    assert_eq!(empty.get(0, &mut Cx::default()).unwrap(), None);
}

#[test]
fn blocks_are_known_behind_stages_that_leave_the_order() {
    let lens = |stage: &dyn Stage| stage.blocks().map(|blocks| blocks.lens().collect::<Vec<_>>());
    let ds = || blocked(&[3, 4, 5]);
    assert_eq!(lens(&ds().seed(1).map(|x| x).filter(|x| x % 2 > 0)), Some(vec![3, 4, 5]));
    assert_eq!(lens(&ds().slice(1..9)), Some(vec![2, 4, 2]));
    assert_eq!(lens(&Concatenate::new(vec![ds(), ds()])), Some(vec![3, 4, 5, 3, 4, 5]));
    for without in [ds().shuffle(1).boxed(), ds().shard(0, 2).boxed(), ds().repeat(2).boxed()] {
        assert_eq!(lens(&without), None);
    }
    assert_eq!(lens(&ds().batch(2)), None);
    assert_eq!(lens(&Range::new(0, 9)), None);
}

#[test]
fn a_window_that_has_no_room_is_refused_with_the_one_that_has() {
    let ds = |room, window| Source::new(Blocked(vec![10; 50], Some(room))).block_shuffle(window, 1);
    assert!(ds(100, 5).node().describe.check().is_ok());
    let error = ds(100, 6).node().describe.check().unwrap_err();
    assert_eq!(
        error.message(),
        "windows of 6 blocks do not fit: two of them are up to 120 elements, and the source caches about 100 decoded elements"
    );
    assert!(error.help_text().unwrap().starts_with("set window_blocks=5 or less"), "{error}");
    assert!(ds(9, 1).node().describe.check().unwrap_err().help_text().unwrap().contains("smaller row groups"));
    // All blocks fit, however large the window is.
    assert!(ds(500, 1000).node().describe.check().is_ok());
}

#[test]
fn it_says_how_well_it_mixes() {
    let text = blocked(&[100; 1000]).block_shuffle(10, 1).node().describe.mixing().unwrap();
    assert!(
        text.starts_with("1 000 blocks of about 100 elements in random order, and the elements of 10 of them"),
        "{text}"
    );
    assert!(text.contains("9.91 % of the time (0.10 % in a shuffle of everything)"), "{text}");
    assert!(text.ends_with("within 1 000 of each other"), "{text}");
}

#[test]
fn what_cannot_be_shuffled_says_why() {
    let message = |stage: &dyn Stage| stage.node().describe.check().unwrap_err().message().to_owned();
    assert_eq!(message(&blocked(&[2]).block_shuffle(0, 1)), "the window is 0 blocks, and must be 1 or more");
    assert_eq!(message(&Range::new(0, 9).block_shuffle(1, 1)), "the blocks of range(0, 9, 1) are unknown");
    assert_eq!(
        message(&Range::new(0, 9).block_shuffle(1, 1).block_size(0)),
        "the block is 0 elements, and must be 1 or more"
    );
    let many = Range::new(0, 1 << 30).block_shuffle(1, 1).block_size(1);
    assert!(message(&many).starts_with("1073741824 blocks, and at most 16777216 can"));
    assert!(many.node().describe.check().unwrap_err().help_text().unwrap().contains("block_size of 64 or more"));
    let forever = Range::new(0, 9).repeat(None).block_shuffle(1, 1).block_size(3);
    assert_eq!(message(&forever), "the shuffled dataset never ends, so its blocks cannot be counted");
    assert_eq!(message(&blocked(&[2]).block_shuffle(1, None)), "a random stage has no seed");
    assert!(Range::new(0, 9).block_shuffle(1, 1).get(0, &mut Cx::default()).is_err());
}

#[test]
fn any_thread_in_any_order_reads_the_same() {
    let ds = blocked(&UNEVEN).block_shuffle(2, 3);
    let expected: Vec<_> = (0..3).flat_map(|epoch| order(&ds, epoch)).collect();
    std::thread::scope(|scope| {
        for start in 0..3 {
            let (ds, expected) = (&ds, &expected);
            scope.spawn(move || {
                let mut cx = Cx::default();
                for i in (0..267).rev().map(|i| (i * 7 + start * 89) % 267) {
                    assert_eq!(ds.get(i, &mut cx).unwrap(), Some(expected[i as usize]));
                }
            });
        }
    });
}

#[test]
fn its_arguments_are_what_shapes_the_data() {
    assert_eq!(blocked(&[2, 3]).block_shuffle(4, 9).node().describe.params(), "4, blocks=2, seed=9");
    assert_eq!(blocked(&[2, 3]).block_shuffle(4, 9).block_size(5).node().describe.params(), "4, block_size=5, seed=9");
}

/// Of the source where it has some, and of a given size where it has none: both before and after it is opened.
#[cfg(feature = "spec")]
#[test]
fn blocks_of_files_are_shuffled() {
    use crate::{Element, spec};

    let index = |elements: Vec<Element>| -> Vec<i64> {
        elements.iter().map(|e| e.array("index").unwrap().as_i64().unwrap()).collect()
    };
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<_> = (0..30).map(|i| format!("{{\"index\": {i}}}\n")).collect();
    std::fs::write(dir.path().join("a.jsonl"), lines.concat()).unwrap();
    let run = |source: &str, stage: &str| {
        let text = format!("source: {{{source}}}\nstages: [{{block_shuffle: {{{stage}}}}}]");
        spec::Pipeline::from_text(text, spec::Format::Yaml, dir.path())?.build()?.collect()
    };
    let shuffled = index(run("jsonl: a.jsonl", "window_blocks: 2, block_size: 3, seed: 1").unwrap());
    let blocks = |window: &[i64]| window.iter().map(|i| i / 3).collect::<std::collections::BTreeSet<_>>().len();
    assert!(shuffled.chunks(6).all(|window| blocks(window) == 2) && !shuffled.is_sorted(), "{shuffled:?}");
    for (stage, told) in [
        ("window_blocks: 2, seed: 1", "the blocks of jsonl(a.jsonl"),
        ("window_blocks: 0, block_size: 3, seed: 1", "the window is 0 blocks"),
        ("window_blocks: 2, block_size: 0, seed: 1", "the block is 0 elements"),
        ("window_blocks: 2, block_size: 3", "no seed"),
    ] {
        let error = run("jsonl: a.jsonl", stage).unwrap_err().to_string();
        assert!(error.contains(told), "{stage}: {error}");
    }
    #[cfg(feature = "parquet")]
    {
        let options = crate::source::ParquetWriterOptions::new().row_group_rows(5);
        let mut writer = crate::source::ParquetWriter::new(Vec::new(), options).unwrap();
        (0..30i64).for_each(|i| writer.write(&Element::new().with("index", crate::Array::scalar(i))).unwrap());
        std::fs::write(dir.path().join("a.parquet"), writer.finish().unwrap()).unwrap();
        let shuffled = index(run("parquet: a.parquet", "window_blocks: 1, seed: 1").unwrap());
        assert!(shuffled.chunks(5).all(|block| block.iter().all(|i| i / 5 == block[0] / 5)), "{shuffled:?}");
    }
}
