//! Pipelines of which hosts take parts.

use gristmill::dataset::iter::mix;
use gristmill::dataset::map::Range;
use gristmill::dataset::{AtEnd, Remainder};
use gristmill::pack::{
    BatchSize, BinPackOptions, ConcatPackOptions, LengthBucketOptions, Packing, RowSpec, WindowPackOptions,
};
use gristmill::part::{Balance, Cost, Deal};
use gristmill::prelude::*;
use gristmill::rng::Schedule;
use gristmill::{Array, BoxIter, Element};
use proptest::prelude::*;

/// Rows of a global batch, where a test needs no other number of them.
pub(crate) const BATCH: usize = 48;

/// Rows of global batches, and numbers of hosts that divide them.
const SIZES: [(usize, &[usize]); 3] =
    [(BATCH, &[1, 2, 3, 4, 6, 8, 12, 16, 24, 48]), (35, &[1, 5, 7, 35]), (64, &[1, 2, 4, 64])];

/// Sequences of 1 to 7 tokens, each of its own.
pub(crate) fn documents(seed: u32, len: i64) -> BoxIter<Element> {
    Range::new(0, len).shuffle(seed).map(sequence).to_iter().boxed()
}

pub(crate) fn sequence(x: i64) -> Element {
    Element::new().with("tokens", Array::from_vec(vec![x as i32 + 1; 1 + (x * 5 % 7) as usize]))
}

/// What stands between the documents and the batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Change {
    Filter,
    Mix,
    /// A mix by tokens whose weights change, and whose datasets end.
    Tokens,
    Shuffle,
    Fan,
    Limit,
    Repeat,
}

impl Change {
    pub(crate) const ALL: [Self; 7] =
        [Self::Filter, Self::Mix, Self::Tokens, Self::Shuffle, Self::Fan, Self::Limit, Self::Repeat];
}

/// How rows are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rows {
    Plain,
    /// Straight behind the prefix: indices alone say which elements are whose.
    Index,
    FirstFit,
    BestFit,
    Concat,
    Window,
    Buckets,
}

impl Rows {
    pub(crate) const ALL: [Self; 7] =
        [Self::Plain, Self::Index, Self::FirstFit, Self::BestFit, Self::Concat, Self::Window, Self::Buckets];
}

/// How rows are dealt.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Dealing {
    Even,
    Balanced,
    Shadow,
}

#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub(crate) changes: Vec<Change>,
    pub(crate) rows: Rows,
    /// Rows of a global batch.
    pub(crate) batch: usize,
    /// Elements of the first source.
    pub(crate) documents: i64,
    pub(crate) epochs: u64,
    pub(crate) padded: bool,
}

impl Pipeline {
    /// One epoch in batches of [`BATCH`] rows, of which the last is dropped if it is not whole.
    pub(crate) fn new(changes: &[Change], rows: Rows) -> Self {
        Self { changes: changes.to_vec(), rows, batch: BATCH, documents: 2000, epochs: 1, padded: false }
    }

    pub(crate) fn build(&self) -> BoxIter<Element> {
        if let Rows::Index = self.rows {
            return self.by_index();
        }
        let changed = self.changes.iter().fold(documents(7, self.documents), |ds, change| match change {
            Change::Filter => ds.filter(is_kept).boxed(),
            Change::Mix => mix([ds, documents(3, self.documents / 2)]).weights([2.0, 1.0]).boxed(),
            Change::Tokens => by_tokens([ds, documents(3, self.documents / 2)], self.documents as u64),
            Change::Shuffle => ds.window_shuffle(50, 5).boxed(),
            Change::Fan => ds.flat_map(pieces).boxed(),
            Change::Limit => ds.limit(self.documents as u64 * 3 / 4).boxed(),
            Change::Repeat => ds.repeat(2).boxed(),
        });
        self.batches(changed)
    }

    /// Batches of rows of what the documents were changed into.
    pub(crate) fn batches(&self, changed: BoxIter<Element>) -> BoxIter<Element> {
        let spec = || RowSpec::new([("tokens", 8)]);
        let rows = match self.rows {
            Rows::Plain | Rows::Index => {
                changed.map(|e| Element::new().with("tokens", Array::scalar(first(&e)))).boxed()
            }
            Rows::FirstFit => changed.first_fit_pack(BinPackOptions::new(spec(), 9)).boxed(),
            Rows::BestFit => changed.best_fit_pack(BinPackOptions::new(spec(), 9)).boxed(),
            Rows::Concat => changed.concat_then_split_pack(ConcatPackOptions::new(spec())).boxed(),
            Rows::Window => changed.window_pack(WindowPackOptions::new(spec()).window(40)).boxed(),
            Rows::Buckets => {
                let options = LengthBucketOptions::new(["tokens"], [4, 8], BatchSize::Fixed(self.batch));
                // The last of each bucket is not whole.
                let rows = self.batch;
                let whole =
                    changed.length_buckets(options).filter(move |batch| batch.num_rows().is_ok_and(|n| n == rows));
                return whole.repeat(self.epochs).boxed();
            }
        };
        if self.padded {
            return rows.batch_masked(self.batch).repeat(self.epochs).boxed();
        }
        rows.batch_with(self.batch, Remainder::Drop).repeat(self.epochs).boxed()
    }
}

impl Pipeline {
    /// What its rows cost: by the segments of packed ones, else by numbers that stand in them.
    pub(crate) fn cost(&self) -> Cost {
        match self.rows {
            Rows::Plain | Rows::Index | Rows::Buckets => Cost::new(3, 1).lengths("tokens"),
            Rows::FirstFit | Rows::BestFit | Rows::Concat | Rows::Window => Cost::new(3, 1),
        }
    }

    /// A deal among `count` hosts, of as many micro-steps as there can be, up to 2.
    pub(crate) fn deal(&self, dealing: Dealing, count: usize) -> Deal {
        let balance = || Balance::new(self.cost()).micro(if self.batch.is_multiple_of(2 * count) { 2 } else { 1 });
        match dealing {
            Dealing::Even => Deal::Even,
            Dealing::Balanced => Deal::Balanced(balance()),
            Dealing::Shadow => Deal::Shadow(balance()),
        }
    }

    fn by_index(&self) -> BoxIter<Element> {
        let number = |x: i64| Element::new().with("tokens", Array::scalar(x as i32));
        let stream = Range::new(0, 9 * self.batch as i64).seed(3).shuffle(None).repeat(2).map(number).to_iter();
        let batches = if self.padded {
            stream.batch_masked(self.batch).boxed()
        } else {
            stream.batch_with(self.batch, Remainder::Drop).boxed()
        };
        batches.skip(2).limit(11).repeat(self.epochs).boxed()
    }
}

/// A mix of documents, the first of which has `len`, by tokens: the weights change, the second dataset reaches its budget, and its
/// weight goes to the first.
pub(crate) fn by_tokens(datasets: [BoxIter<Element>; 2], len: u64) -> BoxIter<Element> {
    let schedule = Schedule::new([2.0, 1.0]).then(len / 2, [1.0, 3.0]).over(len / 3).then(2 * len, [1.0, 1.0]);
    let mixed = mix(datasets).schedule(schedule).by_tokens("tokens");
    mixed.at_end(AtEnd::Redistribute).budget(1, len).boxed()
}

pub(crate) fn is_kept(element: &Element) -> bool {
    first(element) % 3 != 0
}

pub(crate) fn pieces(element: Element) -> Vec<Element> {
    vec![element.clone(); (first(&element) % 3) as usize]
}

pub(crate) fn first(element: &Element) -> i32 {
    element.array("tokens").unwrap().as_slice::<i32>().unwrap()[0]
}

/// Pipelines, each with numbers of hosts that divide its batches.
pub(crate) fn pipeline() -> impl Strategy<Value = (Pipeline, Vec<usize>)> {
    let change = prop::sample::select(Change::ALL.to_vec());
    let rows = prop::sample::select(Rows::ALL.to_vec());
    let sizes = prop::sample::select(SIZES.to_vec());
    (prop::collection::vec(change, 0..3), rows, sizes, 1u64..3, any::<bool>()).prop_map(
        |(changes, rows, (batch, counts), epochs, padded)| {
            let documents = 42 * batch as i64;
            (Pipeline { batch, documents, epochs, padded, ..Pipeline::new(&changes, rows) }, counts.to_vec())
        },
    )
}

pub(crate) fn dealing() -> impl Strategy<Value = Dealing> {
    prop::sample::select(vec![Dealing::Even, Dealing::Balanced, Dealing::Shadow])
}
