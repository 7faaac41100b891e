//! Stage for batches of sequences of similar length.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::item::PackItem;
use super::rows::{in_feature, number_bytes};
use super::tracked::{ParentState, Tracked};
use crate::cx::{Cx, StageId};
use crate::dataset::iter::{Flow, Flowing, InPlace, Parted, PartedBy, Position, Start};
use crate::dataset::plan::{Content, Plan, PlanBatches, PlanPass, PlannedOwn, PlannedRows, StandIn, pass_over_plan};
use crate::dataset::{self, DatasetIterator, Facts, Memory, Remainder, Role};
use crate::element::{Array, DType, Element, Name, Value};
use crate::error::{Error, Result};
use crate::pack::bucket::{BatchSize, BucketOptions, BucketPlanner};
use crate::pack::held::{Held, HeldState};
use crate::part::{Part, RowNumbers};

const NAME: &str = "length_buckets";

/// Options of [`length_buckets`](super::Packing::length_buckets).
#[derive(Clone, Debug, PartialEq)]
pub struct LengthBucketOptions {
    features: Vec<Name>,
    padded: Vec<(Name, f64)>,
    buckets: BucketOptions,
    /// Policy for short batches; `None` fills them up with padding.
    remainder: Option<Remainder>,
    drop_over_long: bool,
}

impl LengthBucketOptions {
    /// Creates buckets for sequences of up to each of `boundaries` cells.
    ///
    /// The length of an element is the length of its longest feature in `features`. By default, short batches are yielded
    /// as they are, the window is 8,192, and an element longer than the last boundary is an error.
    pub fn new<N: AsRef<str>>(
        features: impl IntoIterator<Item = N>,
        boundaries: impl Into<Vec<usize>>,
        batch: BatchSize,
    ) -> Self {
        let features = features.into_iter().map(Name::new).collect();
        let buckets = BucketOptions { boundaries: boundaries.into(), batch, window: 8192 };
        Self { features, padded: Vec::new(), buckets, remainder: Some(Remainder::Keep), drop_over_long: false }
    }

    /// Sets the padding of `feature`, after the end of a sequence, to `value` instead of 0.
    #[must_use]
    pub fn padding(mut self, feature: impl AsRef<str>, value: f64) -> Self {
        self.padded.push((Name::new(feature), value));
        self
    }

    /// Sets the maximum number of elements to hold, and to read again on a restore. The default is 8,192.
    ///
    /// The batch of the oldest element is yielded short if the window is full.
    #[must_use]
    pub fn window(mut self, elements: usize) -> Self {
        self.buckets.window = elements;
        self
    }

    setters! {
        /// Sets the policy for short batches, which occur at the end and if the window is full.
        ///
        /// Dropped elements are counted.
        #[must_use]
        pub remainder(remainder: Remainder) => remainder = Some(remainder);

        /// Sets whether elements longer than the last boundary are dropped and counted. The default is an error.
        #[must_use]
        pub drop_over_long: bool;
    }

    /// Fills short batches with rows of padding and length 0.
    ///
    /// Shapes are then fixed, so an accelerator compiles once per bucket.
    #[must_use]
    pub fn pad_remainder(self) -> Self {
        Self { remainder: None, ..self }
    }

    fn padding_of(&self, feature: &str, dtype: DType) -> Result<Vec<u8>> {
        let value = self.padded.iter().rfind(|(name, _)| name == feature).map_or(0.0, |(_, value)| *value);
        number_bytes(dtype, value).map_err(|error| in_feature(feature, &error))
    }

    /// Returns the boundary of a bucket, and the number of rows in a full batch of the bucket.
    ///
    /// # Errors
    /// `State` if there is no such bucket.
    fn bucket(&self, bucket: usize) -> Result<(usize, usize)> {
        let boundary = self.buckets.boundaries.get(bucket).copied();
        let found = boundary.zip(self.buckets.sizes()?.get(bucket).copied());
        found.ok_or_else(|| Error::state(format!("a batch was planned for bucket {bucket}, which does not exist")))
    }

    fn check(&self) -> Result<()> {
        if self.features.is_empty() {
            return Err(Error::config("length buckets need at least one feature"));
        }
        if let Some((name, _)) = self.padded.iter().find(|(name, _)| !self.features.contains(name)) {
            return Err(Error::config(format!(
                "feature {name:?} is padded but not among {}",
                self.features.join(", ")
            )));
        }
        BucketPlanner::new(&self.buckets).map(drop)
    }
}

display_as!(LengthBucketOptions, |self, f| {
    let BucketOptions { boundaries, batch, window } = &self.buckets;
    write!(f, "features={}, boundaries={boundaries:?}, batch={batch:?}, window={window}", self.features.join(" "))?;
    for (name, value) in &self.padded {
        write!(f, ", padding={name}:{value}")?;
    }
    write!(f, ", remainder={}", self.remainder.map_or("pad", Remainder::as_str))?;
    if self.drop_over_long { write!(f, ", over_long=drop") } else { Ok(()) }
});

/// Batches by length: see [`Packing::length_buckets`](super::Packing::length_buckets).
pub type LengthBuckets<D> = Flowing<D, LengthBucketsFlow>;

/// Stage implementation of [`LengthBuckets`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct LengthBucketsFlow(Arc<LengthBucketOptions>);

impl LengthBucketsFlow {
    pub(super) fn new(options: LengthBucketOptions) -> Self {
        Self(Arc::new(options))
    }

    fn pass<I: DatasetIterator>(&self, parent: I, stage: StageId) -> Result<LengthBucketsIter<I>> {
        Ok(LengthBucketsIter {
            parent: Tracked::new(parent),
            options: self.0.clone(),
            stage,
            planner: BucketPlanner::new(&self.0.buckets)?,
            slots: VecDeque::new(),
            ended: false,
        })
    }
}

impl Facts for LengthBucketsFlow {
    fn name(&self) -> &'static str {
        NAME
    }
    fn params(&self) -> String {
        self.0.to_string()
    }
    fn role(&self) -> Role {
        Role::Stateful
    }
    fn memory(&self) -> Option<Memory> {
        let elements = self.0.buckets.most_held().unwrap_or(0) as u64;
        Some(Memory::elements(dataset::Held::AtMost(elements), dataset::Held::AtMost(1)))
    }
    fn check(&self) -> Result<()> {
        self.0.check()
    }
}

impl<I: DatasetIterator<Item = Element>> Flow<I> for LengthBucketsFlow {
    type Pass = LengthBucketsIter<I>;

    fn start(&self, parent: I, Start { stage, .. }: Start<'_>) -> Result<Self::Pass> {
        self.pass(parent, stage)
    }

    fn asks(&self, _: &[Name]) -> Vec<Name> {
        self.0.features.clone()
    }

    fn makes_batches(&self) -> bool {
        true
    }

    fn start_part(&self, parent: Parted<Element, I::State>, at: Start<'_>) -> Result<Option<PartedBy<I, Self>>> {
        let (Parted::Plan(parent), Some(part)) = (parent, at.part) else { return Ok(None) };
        if !parent.single || at.run.deal().balance().is_some() {
            return Ok(None);
        }
        let pass = Box::new(self.pass(parent.pass, at.stage)?);
        let plan = Plan { pass, make: parent.make, single: false, chains: Vec::new() };
        let batches = PlannedBuckets { options: self.0.clone(), part: part.clone(), stage: at.stage };
        Ok(Some(Parted::Rows(pass_over_plan(plan, batches, None, at.run))))
    }

    fn unplanned(&self) -> &'static str {
        "makes batches itself, from which a later stage would make rows"
    }
}

/// Batches of planned buckets. Every host makes all rows of a short batch.
struct PlannedBuckets {
    options: Arc<LengthBucketOptions>,
    part: Part,
    stage: StageId,
}

impl PlanBatches<Element> for PlannedBuckets {
    type Batch = Element;
    /// Bucket number.
    type About = usize;

    fn plan<S: Position>(
        &mut self,
        pass: &mut PlanPass<S>,
        rows: &mut PlannedRows,
        cx: &mut Cx,
    ) -> Result<Option<PlannedOwn<usize>>> {
        let Some(batch) = pass.next(cx)? else { return Ok(None) };
        let Content::Bucket(bucket, _) = batch.0 else {
            return Err(Error::state("a batch was planned without a bucket"));
        };
        let (_, full) = self.options.bucket(bucket)?;
        rows.add(&batch);
        // An indivisible batch is reported later, when its rows are taken.
        let own = self.part.rows(rows.len());
        Ok(Some((own.ok().filter(|own| rows.len() == full && !own.is_empty()), bucket)))
    }

    fn make(
        &mut self,
        rows: Vec<Option<Element>>,
        like: Option<&Element>,
        own: Option<&RowNumbers>,
        bucket: &usize,
        cx: &mut Cx,
    ) -> Result<Element> {
        let made = cx.timed_exactly(self.stage, || {
            let (boundary, full) = self.options.bucket(*bucket)?;
            let count = if own.is_none() && self.options.remainder.is_none() { full } else { rows.len() };
            let rows: Vec<_> = rows.iter().map(Option::as_ref).collect();
            stack(&self.options, &rows, like, count, boundary)
        });
        let batch = made.map_err(|error| cx.blame(self.stage, NAME, error))?;
        cx.produced(self.stage, 0, batch.nbytes() as u64);
        Ok(batch)
    }
}

/// Pass over [`LengthBuckets`].
#[doc(hidden)]
pub struct LengthBucketsIter<I: DatasetIterator> {
    parent: Tracked<I>,
    options: Arc<LengthBucketOptions>,
    stage: StageId,
    planner: BucketPlanner,
    /// Numbers and elements of the window by ordinal, from the oldest on.
    /// The element is `None` if it was already yielded.
    slots: VecDeque<(u64, Option<I::Item>)>,
    ended: bool,
}

/// Position of a [`LengthBucketsIter`].
///
/// Contains the oldest element that was not yielded, and a bitmap of the later elements that were.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthBucketsState<S> {
    /// Position of the oldest element.
    pub parent: ParentState<S>,
    /// Yielded elements from the oldest element on.
    pub window: HeldState,
}

impl<I: DatasetIterator<Item: PackItem>> LengthBucketsIter<I> {
    /// Reads until a batch is ready or the data ends.
    fn fill(&mut self, cx: &mut Cx) -> Result<()> {
        while !self.ended && !self.planner.is_ready() {
            let number = self.parent.number();
            let Some(element) = self.parent.next(cx)? else {
                self.ended = true;
                break;
            };
            let pushed = cx.consumed(self.stage, || {
                let len = length(&self.options, &element)?;
                if len > self.planner.longest() && self.options.drop_over_long {
                    return Ok(None);
                }
                self.planner.push(len).map(Some)
            });
            match pushed {
                Ok(Some(ordinal)) => self.slots.push_back((number, ordinal.map(|_| element))),
                Ok(None) => cx.note("over-long sequences dropped", 1),
                Err(error) => return Err(cx.blame(self.stage, NAME, error.index(number))),
            }
        }
        Ok(())
    }

    /// Takes the next batch; `None` at the end. The inner option is `None` if a short batch was dropped.
    fn batch(&mut self, cx: &mut Cx) -> Result<Option<Option<I::Item>>> {
        let oldest = self.planner.oldest();
        let Some(bucket) = self.planner.next_batch(self.ended) else { return Ok(None) };
        let take = |ordinal: &u64| self.slots.get_mut((ordinal - oldest) as usize).and_then(|(_, slot)| slot.take());
        let elements: Vec<I::Item> = bucket.ordinals.iter().filter_map(take).collect();
        let (bucket, full) = (bucket.bucket, bucket.full);
        let boundary = self.options.buckets.boundaries[bucket];
        let passed = (self.planner.oldest() - oldest) as usize;
        self.slots.drain(..passed.min(self.slots.len()));
        self.parent.forget(self.front());
        let missing = full - elements.len();
        let rows = match self.options.remainder {
            Some(Remainder::Drop) if missing > 0 => {
                cx.note("elements dropped in short batches", elements.len() as u64);
                return Ok(Some(None));
            }
            None => full,
            Some(_) => elements.len(),
        };
        let stack = |options: &mut &LengthBucketOptions| {
            let elements: Vec<_> = elements.iter().map(PackItem::element).collect();
            let batch = stack(options, &elements, None, rows, boundary)?;
            Ok(Some(InPlace { len: 1, bytes: batch.nbytes(), batch }))
        };
        let plan = |_: &mut &LengthBucketOptions| {
            let mut planned = PlannedRows::default();
            elements.iter().filter_map(PackItem::stand_in).for_each(|element| planned.add(element));
            Some(InPlace { len: 1, bytes: 0, batch: StandIn(Content::Bucket(bucket, planned)) })
        };
        let batch = cx.timed_exactly(self.stage, || I::Item::output(&mut &*self.options, stack, plan));
        let batch = batch.map_err(|error| cx.blame(self.stage, NAME, error))?;
        if let Some(batch) = &batch {
            cx.produced(self.stage, 1, batch.bytes as u64);
        }
        Ok(Some(batch.map(|batch| batch.batch)))
    }

    /// Returns the number of the oldest element that was not yielded.
    fn front(&self) -> u64 {
        self.slots.front().map_or(self.parent.number(), |(number, _)| *number)
    }
}

/// Returns the length of the longest feature, in cells.
fn length<T: PackItem>(options: &LengthBucketOptions, item: &T) -> Result<usize> {
    options.features.iter().try_fold(0, |most, name| Ok(most.max(item.len_of(name)?)))
}

/// Stacks `elements` into a batch of `rows` rows of `boundary` cells.
///
/// Rows without an element are padding. `like` provides dtypes and shapes if no element is present.
fn stack(
    options: &LengthBucketOptions,
    elements: &[Option<&Element>],
    like: Option<&Element>,
    rows: usize,
    boundary: usize,
) -> Result<Element> {
    let first = elements.iter().copied().flatten().next().or(like);
    let first = first.ok_or_else(|| Error::state("a batch was planned without an element"))?;
    let mut batch = Element::with_capacity(2 * options.features.len());
    for name in &options.features {
        let (values, lens) = stack_feature(options, name, first.array(name)?, elements, (rows, boundary))?;
        batch.insert(name, values);
        batch.insert(format!("{name}_lengths"), Array::from_vec(lens));
    }
    // All other fields are listed.
    for (name, _) in first.iter().filter(|(name, _)| !options.features.iter().any(|feature| feature == name)) {
        let value = |element: &Option<&Element>| element.map_or(Ok(Value::Null), |e| e.field(name).cloned());
        let mut list = elements.iter().map(value).collect::<Result<Vec<_>>>()?;
        list.resize(rows, Value::Null);
        batch.insert(name, Value::List(list));
    }
    Ok(batch)
}

fn stack_feature(
    options: &LengthBucketOptions,
    name: &Name,
    first: &Array,
    elements: &[Option<&Element>],
    (rows, boundary): (usize, usize),
) -> Result<(Array, Vec<i32>)> {
    let (dtype, inner) = (first.dtype(), first.shape().get(1..).unwrap_or_default());
    let mut values = Array::builder(dtype, &[&[rows, boundary], inner].concat())?;
    let padding = options.padding_of(name, dtype)?;
    let bytes = values.bytes_mut();
    if padding.iter().any(|&byte| byte != 0) {
        bytes.chunks_exact_mut(padding.len()).for_each(|number| number.copy_from_slice(&padding));
    }
    let row_bytes = bytes.len() / rows;
    let mut lens = vec![0; rows];
    for (row, element) in elements.iter().enumerate() {
        let Some(element) = element else { continue };
        let array = element.array(name)?;
        if array.dtype() != dtype || array.shape().get(1..).unwrap_or_default() != inner {
            return Err(Error::data(format!("feature {name:?} is {array:?} and {first:?} in one batch")));
        }
        bytes[row * row_bytes..][..array.bytes().len()].copy_from_slice(array.bytes());
        lens[row] = array.shape().first().map_or(1, |&len| len as i32);
    }
    Ok((values.freeze(), lens))
}

impl<I: DatasetIterator<Item: PackItem>> DatasetIterator for LengthBucketsIter<I> {
    type Item = I::Item;
    type State = LengthBucketsState<I::State>;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        loop {
            self.fill(cx)?;
            match self.batch(cx)? {
                Some(Some(batch)) => return Ok(Some(batch)),
                Some(None) => {}
                None => return Ok(None),
            }
        }
    }

    fn state(&self) -> Self::State {
        LengthBucketsState { parent: self.parent.position(self.front()), window: self.planner.state() }
    }

    fn restore(&mut self, state: Self::State, cx: &mut Cx) -> Result<()> {
        Held::new(self.options.buckets.window).restore(&state.window)?;
        self.parent.restore(state.parent, cx)?;
        self.planner.restore(&state.window)?;
        self.slots.clear();
        self.ended = false;
        Ok(())
    }
}

debug_as!(<I: DatasetIterator> LengthBucketsIter<I>, |self, f| {
    f.debug_struct("LengthBucketsIter").field("options", &self.options).finish_non_exhaustive()
});
