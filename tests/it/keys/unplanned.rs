//! Stages that decide by more than keys: each host evaluates everything, its rows are the right ones, and its report says which stage it is and what
//! to do. And stages of the user's own, which say how they plan or do not.

use gristmill::dataset::iter::{DatasetIterator, Flow, Flowing, Parted, PartedBy, Start, interleave};
use gristmill::dataset::map::Range;
use gristmill::dataset::plan::{PlanOf, Planning};
use gristmill::dataset::{Facts, Node, Remainder, Role};
use gristmill::keys::Recompute;
use gristmill::pack::{BatchSize, BinPackOptions, LengthBucketOptions, Packing, RowSpec, WindowPackOptions};
use gristmill::part::{Part, RowDigest};
use gristmill::prelude::*;
use gristmill::{Array, BoxIter, Cx, Element, Executor, Loader, Result, Runtime, Stage};

use super::{BATCH, Host, Made, documents};

/// Shuffled documents behind a border that has keys.
fn stream() -> BoxIter<Element> {
    documents(0, 900, 7, &Made::default()).to_iter().window_shuffle(50, 5).boxed()
}

fn packed(ds: impl IterDataset<Item = Element> + 'static) -> BoxIter<Element> {
    ds.window_pack(WindowPackOptions::new(RowSpec::new([("t", 12)])).window(20)).boxed()
}

fn first(row: &Element) -> i64 {
    row.array("t").unwrap().as_slice::<i32>().unwrap()[0].into()
}

/// Checks that three hosts deliver the rows of one, and gives what they say of how they do it.
fn hosts(rows: BoxIter<Element>) -> String {
    let ds = rows.batch_with(BATCH, Remainder::Drop).boxed();
    let mut alone = Host::start(&ds, Part::whole(), false, Executor::Inline, None);
    while alone.step() {}
    let (mut digest, mut said) = (RowDigest::default(), String::new());
    for index in 0..3 {
        let mut host = Host::start(&ds, Part::of(index, 3), true, Executor::Inline, None);
        while host.step() {}
        digest.add(host.digest);
        said = part_of(&mut host.loader);
    }
    assert!(alone.loader.delivered() > 3);
    assert_eq!(digest, alone.digest);
    said
}

const PACKED: &str = "window_pack (stage 5) makes rows of several elements, and a later stage depends on their lengths, which keys do not contain";

/// What a host says of how it has its rows.
fn part_of(loader: &mut Loader<BoxIter<Element>>) -> String {
    let said = loader.report().execution.part.unwrap();
    said.split_once(" · this host ").unwrap().1.to_owned()
}

#[test]
fn stages_that_decide_by_more_than_keys_are_named() {
    let grouped = |feature| {
        let options = BinPackOptions::new(RowSpec::new([("t", 12)]), 9).shuffle_bins_group_by_feature(feature);
        stream().first_fit_pack(options).boxed()
    };
    let lanes = (0..3).map(|lane| documents(100 * lane, 90, 1, &Made::default()).to_iter().boxed()).collect::<Vec<_>>();
    let drawn = documents(0, 900, 7, &Made::default()).random_map(3, |e, rng| {
        let _ = rng.random_f64();
        e
    });
    for (rows, told) in [
        (
            IterDatasetExt::filter(packed(stream()), |row| first(row) % 3 != 0).boxed(),
            "filter (stage 6) depends on the elements themselves; keys record its decisions only for single records, before packing",
        ),
        (
            packed(IterDatasetExt::try_map(packed(stream()), Ok)),
            "map (stage 6) may change lengths that later stages depend on; keys contain such lengths only for single records, before packing",
        ),
        (
            packed(IterDatasetExt::flat_map(packed(stream()), |e| [e.clone(), e])),
            "flat_map (stage 6) makes any number of elements from each; keys contain this number only for single records, before packing",
        ),
        (
            packed(stream().map_with_index(|_, e| e)),
            "map_with_index (stage 5) counts the elements before it, so it needs the elements themselves",
        ),
        (
            grouped("t"),
            "first_fit_pack (stage 5) orders its rows by the mean of a feature (`shuffle_bins_group_by_feature`), and keys \
             contain lengths, not the features",
        ),
        (packed(packed(stream())), PACKED),
        (
            packed(interleave(lanes, 2)),
            "interleave (stage 12) cannot plan its rows, so it needs the elements themselves",
        ),
        (
            packed(drawn.to_iter()),
            "random_map (stage 3) combines elements or moves them to other indices, and keys describe single records",
        ),
    ] {
        let said = hosts(rows);
        let expected = format!("; keys do not help: {told}");
        assert!(said.starts_with("evaluates all elements and takes its rows: ") && said.ends_with(&expected), "{said}");
    }
}

#[test]
fn a_last_stage_that_needs_whole_batches_is_named() {
    let batches = || stream().batch(BATCH).boxed();
    let own = IterDatasetExt::try_map(batches(), Ok).boxed();
    let by_function = stream().batch_with_fn(BATCH, Remainder::Drop, |rows| Ok(rows[0].clone())).boxed();
    let buckets = |ds: BoxIter<Element>| {
        ds.length_buckets(LengthBucketOptions::new(["t"], [12], BatchSize::Fixed(BATCH))).boxed()
    };
    for (ds, told) in [
        (own, "map (stage 6) needs all rows of its batches"),
        (by_function, "batch (stage 5) calls a function for all of its rows"),
        (stream(), "no stage builds batches from single rows"),
        (buckets(packed(stream())), PACKED),
    ] {
        let mut loader = ds.loader().part(Part::of(1, 2)).keys(Recompute).build().unwrap();
        let said = part_of(&mut loader);
        assert!(said.ends_with(&format!("; keys do not help: {told}")), "{said}");
    }
}

/// Keeps every other element: a stage of the user's own, which says how it plans if it is told to.
pub(super) struct EveryOther<D> {
    pub(super) parent: D,
    pub(super) plans: bool,
}

impl<D: Stage> Stage for EveryOther<D> {
    fn node(&self) -> Node<'_> {
        Node::new("every_other", Role::Stateful)
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D: IterDataset> IterDataset for EveryOther<D> {
    type Item = D::Item;
    type Iter = Other<D::Iter>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        Ok(Other(self.parent.iter(run)?))
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        match planning.of(&self.parent)?.filter(|_| self.plans) {
            Some(plan) => plan.through(|parent| Ok(Other(parent))),
            None => Ok(None),
        }
    }
}

pub(super) struct Other<I>(I);

impl<I: DatasetIterator> DatasetIterator for Other<I> {
    type Item = I::Item;
    type State = I::State;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        self.0.next(cx)?;
        self.0.next(cx)
    }
    fn state(&self) -> I::State {
        self.0.state()
    }
    fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        self.0.restore(state, cx)
    }
}

/// The same as a change of a stream.
#[derive(Debug)]
struct OtherFlow {
    plans: bool,
}

impl Facts for OtherFlow {
    fn name(&self) -> &'static str {
        "other_flow"
    }
    fn role(&self) -> Role {
        Role::Stateful
    }
}

impl<I: DatasetIterator> Flow<I> for OtherFlow {
    type Pass = Other<I>;

    fn start(&self, parent: I, _: Start<'_>) -> Result<Other<I>> {
        Ok(Other(parent))
    }

    fn start_part(&self, parent: Parted<I::Item, I::State>, at: Start<'_>) -> Result<Option<PartedBy<I, Self>>>
    where
        I::Item: Send + 'static,
    {
        match parent {
            Parted::Plan(plan) if self.plans => Ok(plan.through(|pass| Flow::start(self, pass, at))?.map(Parted::Plan)),
            _ => Ok(None),
        }
    }
}

#[test]
fn a_stage_of_ones_own_says_how_it_plans_or_has_everything_evaluated() {
    let element =
        |x: i64| Element::new().with("t", Array::from_vec(vec![x; 1 + x as usize % 9])).with("id", Array::scalar(x));
    let ds = || Range::new(0, 900).map(element).to_iter();
    let own = |plans| packed(EveryOther { parent: ds(), plans });
    let flow = |plans| packed(Flowing::new(ds(), |_| OtherFlow { plans }));
    for (rows, name) in [(own(false), "every_other"), (flow(false), "other_flow")] {
        let said = hosts(rows);
        let told =
            format!("; keys do not help: {name} (stage 3) cannot plan its rows, so it needs the elements themselves");
        assert!(said.starts_with("evaluates all elements") && said.ends_with(&told), "{said}");
    }
    for rows in [own(true), flow(true)] {
        let said = hosts(rows);
        assert_eq!(
            said,
            "plans all rows from keys (window_pack (stage 4) depends on the elements themselves) and evaluates only its own"
        );
    }
}
