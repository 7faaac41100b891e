//! Where gristmill parts from Grain, as the docs of each method say under `DIFFERENCE`: shown.

use std::sync::atomic::{AtomicUsize, Ordering};

use gristmill::dataset::INFINITE;
use gristmill::dataset::map::{Mix, Range};
use gristmill::{Cx, ErrorKind, MapDataset, MapDatasetExt, Stage};

fn sorted(mut items: Vec<i64>) -> Vec<i64> {
    items.sort_unstable();
    items
}

#[test]
fn a_shuffle_is_a_permutation_for_every_length() {
    // Grain sizes its block by the largest index, and at 2^k + 1 elements (k even) that one does not fit into it.
    for len in [65_536, 65_537, 65_538, 262_145] {
        for seed in 0..3 {
            let later_epoch = Range::new(0, len).shuffle(seed).repeat(2).slice(len..);
            assert_eq!(sorted(later_epoch.collect().unwrap()), (0..len).collect::<Vec<_>>(), "{len}, seed {seed}");
        }
    }
}

#[test]
fn a_window_shuffle_reads_every_element_once_whatever_the_length() {
    // Grain's last window reads past the end: of these 10 elements one never comes, and another twice.
    for seed in 0..20 {
        let order = Range::new(0, 10).window_shuffle(4, seed).collect().unwrap();
        assert_eq!(sorted(order.clone()), (0..10).collect::<Vec<_>>());
        assert_eq!(sorted(order[8..].to_vec()), [8, 9]);
        let whole_windows = Range::new(0, 8).window_shuffle(4, seed).collect().unwrap();
        assert_eq!(order[..8], whole_windows, "the windows before the last are Grain's");
    }
}

#[test]
fn mix_weights_can_be_kept_exactly() {
    let parts = || (0..2).map(|part| Range::new(0, 1_000_000).map(move |_| part)).collect::<Vec<_>>();
    let of_first = |mix: Mix<_>| mix.slice(..100_000).collect().unwrap().into_iter().filter(|&part| part == 0).count();
    // Grain's steps of a hundredth of the smallest weight make 100 to 244 of 29 to 71.
    assert_eq!(of_first(Mix::new(parts()).weights([0.29, 0.71])), 29_070);
    assert_eq!(of_first(Mix::new(parts()).exact_weights([0.29, 0.71])), 29_000);
}

#[test]
fn an_error_in_a_mix_does_not_end_it() {
    // Grain's mix stops for good at the first exception of a component.
    let bad = Range::new(0, 5).try_map(|x| if x == 1 { Err(gristmill::Error::data("torn record")) } else { Ok(x) });
    let mix = Mix::new(vec![bad.clone(), bad]);
    let mut cx = Cx::default();
    assert!(mix.get(2, &mut cx).is_err());
    assert_eq!(mix.get(4, &mut cx).unwrap(), Some(2));
}

#[test]
fn a_dropped_element_drops_its_pair() {
    // Grain hands out (0, None), (1, None), …
    let evens = Range::new(0, 6).filter(|x| x % 2 == 0);
    assert_eq!(Range::new(0, 6).zip(evens).collect().unwrap(), [(0, 0), (2, 2), (4, 4)]);
}

#[test]
fn flat_map_computes_the_pieces_of_an_element_once() {
    // Grain runs the function once for each of the 50 slots.
    let runs = AtomicUsize::new(0);
    let ds = Range::new(0, 4).flat_map(50, |x| {
        runs.fetch_add(1, Ordering::Relaxed);
        [x, x]
    });
    assert_eq!(ds.collect().unwrap(), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(runs.load(Ordering::Relaxed), 4);
}

#[test]
fn what_never_ends_stays_so_behind_a_slice() {
    // Grain gives it the length sys.maxsize - 3, and `repeat` and `concatenate` take it for finite.
    let ds = Range::new(0, 10).repeat(None).slice(3..);
    assert_eq!(ds.len(), INFINITE);
    assert_eq!(ds.clone().repeat(2).node().describe.check().unwrap_err().kind(), ErrorKind::Config);
    assert_eq!(ds.get(9, &mut Cx::default()).unwrap(), Some(2));
}

#[test]
fn repeating_nothing_forever_is_refused() {
    // Grain gives an empty dataset, and the training run ends at step 0 without a word.
    let error = Range::new(0, 0).repeat(None).collect().unwrap_err();
    assert_eq!(error.to_string(), "stage 1 repeat: it repeats an empty dataset forever");
}
