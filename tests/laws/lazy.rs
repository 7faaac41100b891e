//! Building a pipeline reads no element of it, whatever the stage: nor does checking it, naming its stages, or making a loader's builder.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gristmill::dataset::iter::{
    BadRecords, FilterThresholds, ZipLength, interleave, interleave_from, lanes, lanes_from,
};
use gristmill::dataset::iter::{mix, zip_all};
use gristmill::dataset::map::{Concatenate, Mix, RandomAccess, Select, Source, SplitSizes, ZipAll};
use gristmill::dataset::{Remainder, Stage};
use gristmill::pack::{
    BatchSize, BinPackOptions, ConcatPackOptions, Labels, LengthBucketOptions, PackedColumns, Packing, RowSpec,
    WindowPackOptions,
};
use gristmill::{Array, BoxIter, BoxMap, Element, IterDataset, IterDatasetExt, Load, MapDatasetExt, Result};

/// Counts the records that are read of it.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU64>);

impl RandomAccess for Counting {
    type Record = i64;

    fn len(&self) -> u64 {
        100
    }

    fn read(&self, index: u64) -> Result<i64> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(index as i64)
    }
}

impl Counting {
    fn map(&self) -> BoxMap<i64> {
        Source::new(self.clone()).boxed()
    }

    fn iter(&self) -> BoxIter<i64> {
        self.map().to_iter().boxed()
    }

    /// Elements of a token.
    fn elements(&self) -> BoxIter<Element> {
        self.iter().map(|x| Element::new().with("t", Array::from_vec(vec![x as i32]))).boxed()
    }

    /// A stream of each kind of stage in front of the border.
    fn maps(&self) -> Vec<BoxIter<i64>> {
        let (ds, two) = (|| self.map(), || vec![self.map(), self.map()]);
        let first = |batch: Vec<i64>| batch[0];
        let stages = vec![
            ds().map(|x| x + 1).boxed(),
            ds().try_map(Ok).boxed(),
            ds().filter(|x| x % 2 == 0).boxed(),
            ds().slots().map(Option::unwrap_or_default).boxed(),
            ds().seed(1).shuffle(None).boxed(),
            ds().window_shuffle(10, 1).boxed(),
            ds().block_shuffle(2, 1).block_size(10).boxed(),
            ds().map_with_index(|_, x| x).boxed(),
            ds().random_map(1, |x, _| x).boxed(),
            ds().flat_map(2, |x| [x, x]).boxed(),
            ds().slice_step(10.., 2).shard(0, 2).boxed(),
            ds().split(&SplitSizes::new([0.5, 0.5]), 1).boxed(),
            ds().select_indices(vec![3, 1]).boxed(),
            ds().repeat(None).boxed(),
            ds().zip(ds()).map(|(a, b)| a + b).boxed(),
            ZipAll::new(two()).map(first).boxed(),
            ds().batch(4).map(first).boxed(),
            ds().batch_with_fn(4, Remainder::Drop, move |batch| Ok(first(batch))).boxed(),
            Concatenate::new(two()).boxed(),
            Mix::new(two()).weights([1.0, 2.0]).boxed(),
            Select::new(two(), (6, |i| ((i % 2) as usize, i / 2))).boxed(),
        ];
        stages.into_iter().map(|ds| ds.to_iter().boxed()).collect()
    }

    /// A stream of each kind of stage behind the border.
    fn iters(&self) -> Vec<BoxIter<i64>> {
        let (ds, two) = (|| self.iter(), || vec![self.iter(), self.iter()]);
        let made = || {
            self.map().map({
                let inner = self.clone();
                move |_| inner.iter()
            })
        };
        let first = |batch: Vec<i64>| batch[0];
        vec![
            ds().map(|x| x + 1).boxed(),
            ds().try_map(|x| Ok(x + 1)).boxed(),
            ds().map_with_index(|_, x| x).boxed(),
            ds().try_map_with_index(|_, x| Ok(x)).boxed(),
            ds().random_map(1, |x, _| x).boxed(),
            ds().try_random_map(1, |x, _| Ok(x)).boxed(),
            ds().filter_with(|_| true, FilterThresholds::default()).boxed(),
            ds().flat_map(|x| [x, x]).boxed(),
            ds().try_flat_map(|x| Ok([x, x])).boxed(),
            ds().batch(4).map(first).boxed(),
            ds().batch_with_fn(4, Remainder::Drop, move |batch| Ok(first(batch))).boxed(),
            ds().zip_with(ds(), ZipLength::Shortest).map(|(a, b)| a + b).boxed(),
            zip_all(two(), ZipLength::Shortest).map(first).boxed(),
            ds().window_shuffle(10, 1).boxed(),
            ds().enumerate().map(|(_, x)| x).skip(3).limit(5).boxed(),
            ds().on_bad_record(BadRecords::skip()).boxed(),
            ds().repeat(3).cache().boxed(),
            interleave(two(), 2).boxed(),
            interleave_from(made(), 2).boxed(),
            lanes(two(), 2).boxed(),
            lanes_from(made(), 2).boxed(),
            mix(two()).weights([1.0, 2.0]).boxed(),
        ]
    }

    /// A stream of each kind of stage that makes elements of elements.
    fn packs(&self) -> Vec<BoxIter<Element>> {
        let (ds, rows) = (|| self.elements(), || RowSpec::new([("t", 8)]));
        vec![
            ds().batch_padded(4).map(|padded| padded.batch).boxed(),
            ds().batch_masked(4).rebatch(8, Remainder::Drop).boxed(),
            ds().first_fit_pack(BinPackOptions::new(rows(), 4)).boxed(),
            ds().best_fit_pack(BinPackOptions::new(rows(), 4)).boxed(),
            ds().concat_then_split_pack(ConcatPackOptions::new(rows())).boxed(),
            ds().window_pack(WindowPackOptions::new(rows())).boxed(),
            ds().packed_columns(PackedColumns::new("t").labels(Labels::Shifted)).boxed(),
            ds().length_buckets(LengthBucketOptions::new(["t"], [2, 4], BatchSize::Fixed(2))).boxed(),
        ]
    }
}

fn look_at<D: IterDataset + 'static>(ds: D) {
    ds.check_all().unwrap();
    assert!(!gristmill::checkpoint::fingerprint(&ds as &dyn Stage).is_empty());
    drop(ds.loader().threads(2));
}

#[test]
fn building_a_pipeline_reads_nothing() {
    let source = Counting::default();
    source.maps().into_iter().chain(source.iters()).for_each(look_at);
    source.packs().into_iter().for_each(look_at);
    assert_eq!(source.0.load(Ordering::Relaxed), 0);
    source.iter().collect().unwrap();
    assert_eq!(source.0.load(Ordering::Relaxed), 100);
}
