//! The stage `tokenise`, for map and iter datasets.

use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

use super::encoder::IntoEncoder;
use super::tokenise::Tokenise;
use crate::cx::{Cx, StageId};
use crate::dataset::iter::{FanStream, Stream};
use crate::dataset::map::{BulkRead, Many};
use crate::dataset::{DatasetIterator, Describe, Indices, IterDataset, MapDataset, Node, Role, Stage, stage_after};
use crate::element::Element;
use crate::error::Result;
use crate::exec::Runtime;

/// The result of the stage for one element: [`Whole`] or [`Chunks`].
pub trait Mode: Clone + Debug + Send + Sync + 'static {
    /// The output type.
    type Out: Send + 'static;
    /// Whether the output may be several elements.
    const CHUNKS: bool;

    /// Tokenises an element. Also returns the number of truncated texts.
    ///
    /// # Errors
    /// Fails like [`Tokenise::apply`].
    fn run(op: &Tokenise, element: Element) -> Result<(Self::Out, u64)>;

    /// Returns the output as a slice.
    fn elements(out: &Self::Out) -> &[Element];
}

/// The mode with a single output element per input element.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

/// The mode with an output element for each piece of the input element.
#[derive(Clone, Copy, Debug)]
pub struct Chunks;

impl Mode for Whole {
    type Out = Element;
    const CHUNKS: bool = false;

    fn run(op: &Tokenise, element: Element) -> Result<(Element, u64)> {
        op.apply_counted(element)
    }

    fn elements(out: &Element) -> &[Element] {
        std::slice::from_ref(out)
    }
}

impl Mode for Chunks {
    type Out = Vec<Element>;
    const CHUNKS: bool = true;

    fn run(op: &Tokenise, element: Element) -> Result<(Vec<Element>, u64)> {
        op.apply_chunks_counted(element)
    }

    fn elements(out: &Vec<Element>) -> &[Element] {
        out
    }
}

/// The dataset of [`TokeniseMap::tokenise`] and [`TokeniseIter::tokenise`].
#[must_use = "datasets are lazy and do nothing until read"]
#[derive(Clone, Debug)]
pub struct Tokenised<D, M = Whole> {
    parent: D,
    op: Arc<Tokenise>,
    stage: StageId,
    mode: PhantomData<M>,
}

impl<D: Stage, M: Mode> Tokenised<D, M> {
    fn new(parent: D, op: Tokenise) -> Self {
        let stage = stage_after(&[&parent]);
        Self { parent, op: Arc::new(op), stage, mode: PhantomData }
    }
}

impl<D: Stage, M: Mode> Stage for Tokenised<D, M> {
    fn node(&self) -> Node<'_> {
        let role = if M::CHUNKS { Role::FanOut } else { Role::Elementwise };
        Node { describe: self, is_native: true, indices: Indices::ByElement, ..Node::new("tokenise", role) }
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

impl<D, M: Mode> Describe for Tokenised<D, M> {
    fn params(&self) -> String {
        self.op.params()
    }
    fn remark(&self) -> Option<String> {
        self.op.encoder().tokenizer().engine_report().remark()
    }
    fn check(&self) -> Result<()> {
        self.op.check(M::CHUNKS)
    }
}

/// Runs the operation and counts it as work of `stage`.
fn run<M: Mode>(op: &Tokenise, stage: StageId, element: Element, cx: &mut Cx) -> Result<M::Out> {
    match cx.consumed(stage, || M::run(op, element)) {
        Ok((out, cut)) => {
            let elements = M::elements(&out);
            cx.produced(stage, elements.len() as u64, 0);
            if cut > 0 {
                cx.note("texts truncated", cut);
            }
            if cx.is_timing() {
                cx.sampled_bytes(stage, elements.iter().map(|e| e.nbytes() as u64).sum());
            }
            Ok(out)
        }
        Err(error) => Err(cx.blame(stage, "tokenise", error)),
    }
}

impl<D: MapDataset<Item = Element>, M: Mode> MapDataset for Tokenised<D, M> {
    type Item = M::Out;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<M::Out>> {
        let Some(element) = self.parent.get(index, cx)? else { return Ok(None) };
        run::<M>(&self.op, self.stage, element, cx).map(Some)
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<M::Out> {
        let many = self.parent.get_many(indices, cx);
        self.run_many(many, cx)
    }

    fn bulk(&self) -> Option<&dyn BulkRead<Self::Item>> {
        Some(self)
    }

    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<Self>> {
        Some(self.parent.for_pass(run, border)?.map(|parent| Self { parent, op: self.op.clone(), ..*self }))
    }
}

impl<D: MapDataset<Item = Element>, M: Mode> BulkRead<M::Out> for Tokenised<D, M> {
    fn get_records(&self, source: usize, records: &[u64], cx: &mut Cx) -> Option<Many<M::Out>> {
        let many = self.parent.bulk()?.get_records(source, records, cx)?;
        Some(self.run_many(many, cx))
    }
}

impl<D, M: Mode> Tokenised<D, M> {
    /// Runs the operation for many elements and counts it as work of the stage.
    fn run_many(&self, many: Many<Element>, cx: &mut Cx) -> Many<M::Out> {
        let (blame, mut cuts) = (cx.blamer(self.stage, "tokenise"), 0);
        let apply = |_, element| {
            let (out, cut) = M::run(&self.op, element).map_err(blame)?;
            cuts += cut;
            Ok(Some(out))
        };
        let many = cx.consumed_many(self.stage, many.items().len(), || many.filter_map(apply));
        let elements = || many.items().iter().map(M::elements);
        cx.produced(self.stage, elements().map(|elements| elements.len() as u64).sum(), 0);
        if cuts > 0 {
            cx.note("texts truncated", cuts);
        }
        if cx.is_timing() {
            cx.sampled_bytes(self.stage, elements().flatten().map(|element| element.nbytes() as u64).sum());
        }
        many
    }
}

impl<D: IterDataset<Item = Element>, M: Mode> IterDataset for Tokenised<D, M> {
    type Item = M::Out;
    type Iter = TokenisedIter<D::Iter, M>;

    fn iter(&self, runtime: &Runtime) -> Result<Self::Iter> {
        let parent = self.parent.iter(runtime)?;
        Ok(TokenisedIter { parent, op: self.op.clone(), stage: self.stage, mode: PhantomData })
    }
}

/// A pass over [`Tokenised`].
#[doc(hidden)]
#[derive(Debug)]
pub struct TokenisedIter<I, M> {
    parent: I,
    op: Arc<Tokenise>,
    stage: StageId,
    mode: PhantomData<M>,
}

impl<I: DatasetIterator<Item = Element>, M: Mode> DatasetIterator for TokenisedIter<I, M> {
    type Item = M::Out;
    type State = I::State;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<M::Out>> {
        let Some(element) = self.parent.next(cx)? else { return Ok(None) };
        run::<M>(&self.op, self.stage, element, cx).map(Some)
    }

    fn state(&self) -> I::State {
        self.parent.state()
    }

    fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        self.parent.restore(state, cx)
    }
}

/// The method `tokenise` of random-access datasets of elements.
pub trait TokeniseMap: MapDataset<Item = Element> + Sized {
    /// Converts a column of text to `tokens`, a column of ids. `tokenizer` is a file, a [`Tokenizer`](super::Tokenizer)
    /// or a [`TextEncoder`](super::TextEncoder).
    ///
    /// # Errors
    /// Fails like [`Tokenizer::from_file`](super::Tokenizer::from_file). The stage fails like
    /// [`tokenise_with`](Self::tokenise_with).
    #[doc(alias = "tokenize")]
    fn tokenise(self, tokenizer: impl IntoEncoder, column: &str) -> Result<Tokenised<Self>> {
        Ok(self.tokenise_with(Tokenise::column(tokenizer.into_encoder()?, column)))
    }

    /// Converts columns of text to columns of ids; see [`Tokenise`].
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if a column is missing or not text, or if a text is too long under
    /// [`Overflow::Error`](super::Overflow::Error); [`ErrorKind::Config`](crate::ErrorKind::Config) like [`Tokenise::check`].
    /// # Cost
    /// The engine takes a few nanoseconds per byte. Each column takes one copy of the ids and one allocation.
    fn tokenise_with(self, op: Tokenise) -> Tokenised<Self> {
        Tokenised::new(self, op)
    }

    /// Works like [`tokenise_with`](Self::tokenise_with), but yields a list of elements per input element, one for each piece of a long
    /// text.
    ///
    /// Flatten the lists with `flat_map`. Under [`Overflow::Truncate`](super::Overflow::Truncate) and
    /// [`Overflow::Error`](super::Overflow::Error), lists have a single element.
    ///
    /// # Errors
    /// Fails like [`tokenise_with`](Self::tokenise_with).
    #[doc(alias = "tokenize_chunks")]
    fn tokenise_chunks(self, op: Tokenise) -> Tokenised<Self, Chunks> {
        Tokenised::new(self, op)
    }
}

impl<D: MapDataset<Item = Element>> TokeniseMap for D {}

/// The method `tokenise` of streams of elements.
///
/// A [`Stream`] has an inherent method instead, which runs in parallel. After a stateful stage, `tokenise` runs on the
/// single thread of stateful stages.
pub trait TokeniseIter: IterDataset<Item = Element> + Sized {
    /// Converts a column of text to `tokens`, a column of ids.
    ///
    /// # Errors
    /// Fails like [`TokeniseMap::tokenise`].
    #[doc(alias = "tokenize")]
    fn tokenise(self, tokenizer: impl IntoEncoder, column: &str) -> Result<Tokenised<Self>> {
        Ok(self.tokenise_with(Tokenise::column(tokenizer.into_encoder()?, column)))
    }

    /// Converts columns of text to columns of ids; see [`Tokenise`].
    ///
    /// # Errors
    /// Fails like [`TokeniseMap::tokenise_with`].
    fn tokenise_with(self, op: Tokenise) -> Tokenised<Self> {
        Tokenised::new(self, op)
    }

    /// Works like [`tokenise_with`](Self::tokenise_with), but yields an element for each piece of a long text; see
    /// [`TokeniseMap::tokenise_chunks`].
    ///
    /// # Errors
    /// Fails like [`TokeniseMap::tokenise`].
    #[doc(alias = "tokenize_chunks")]
    fn tokenise_chunks(self, op: Tokenise) -> Tokenised<Self, Chunks> {
        Tokenised::new(self, op)
    }
}

impl<D: IterDataset<Item = Element>> TokeniseIter for D {}

impl<D: MapDataset<Item = Element> + 'static> Stream<D> {
    /// Converts a column of text to `tokens`, a column of ids, in parallel if the executor has threads.
    ///
    /// # Errors
    /// Fails like [`TokeniseMap::tokenise`].
    #[doc(alias = "tokenize")]
    pub fn tokenise(self, tokenizer: impl IntoEncoder, column: &str) -> Result<Stream<Tokenised<Arc<D>>>> {
        Ok(self.tokenise_with(Tokenise::column(tokenizer.into_encoder()?, column)))
    }

    /// Converts columns of text to columns of ids, in parallel if the executor has threads; see [`Tokenise`].
    ///
    /// # Errors
    /// Fails like [`TokeniseMap::tokenise_with`].
    pub fn tokenise_with(self, op: Tokenise) -> Stream<Tokenised<Arc<D>>> {
        self.prefix(|dataset| Tokenised::new(dataset, op))
    }

    /// Works like [`tokenise_with`](Self::tokenise_with), but yields an element for each piece of a long text, in order.
    ///
    /// # Errors
    /// Fails like [`TokeniseMap::tokenise`].
    #[doc(alias = "tokenize_chunks")]
    pub fn tokenise_chunks(self, op: Tokenise) -> FanStream<Tokenised<Arc<D>, Chunks>> {
        self.fan(|dataset| Tokenised::new(dataset, op))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::map::Source;
    use crate::dataset::{Remainder, index_of, record_of};
    use crate::demo;
    use crate::exec::Executor;
    use crate::keys::Recompute;
    use crate::loader::Load;
    use crate::pack::{BinPackOptions, Packing, RowSpec};
    use crate::part::{Part, RowDigest};
    use crate::text::{EngineChoice, Overflow, TextEncoder, TokeniseOptions, Tokenizer, TokenizerOptions};
    use crate::{IterDatasetExt, MapDatasetExt};

    fn texts() -> Source<Vec<Element>> {
        let documents = demo::corpus::Documents::new(3).take(200);
        Source::new(documents.map(|d| Element::new().with("text", &*d.text).with("source", d.source)).collect())
    }

    fn op(options: &TokeniseOptions) -> Tokenise {
        Tokenise::column(TextEncoder::new(demo::tokenizer().unwrap(), options).unwrap(), "text")
    }

    fn read<D: IterDataset + 'static>(dataset: D, executor: Executor) -> Vec<D::Item> {
        dataset.loader().executor(executor).build().unwrap().collect::<Result<_>>().unwrap()
    }

    #[test]
    fn every_place_and_executor_gives_the_same_ids() {
        let op = op(&TokeniseOptions::default().append_eos(0));
        let map = texts().tokenise_with(op.clone()).collect().unwrap();
        assert_eq!(map.len(), 200);
        assert_eq!(read(texts().to_iter().tokenise_with(op.clone()), Executor::Inline), map);
        assert_eq!(read(texts().to_iter().tokenise_with(op.clone()), Executor::Threads(3)), map);
        assert_eq!(read(TokeniseIter::tokenise_with(texts().to_iter(), op), Executor::Inline), map);
    }

    #[test]
    fn a_list_of_pieces_leads_to_its_record() {
        let options = TokeniseOptions::default().max_len(16).overflow(Overflow::Chunk);
        let ds = texts().shuffle(3).tokenise_chunks(op(&options));
        let record = record_of(&ds, 7).unwrap();
        assert_eq!(Some(record.clone()), record_of(&texts().shuffle(3), 7));
        assert_eq!(index_of(&ds, &record, 0), Some(7));
    }

    /// Hosts that plan find the pieces of each text: their rows equal the rows of a host that evaluates everything.
    #[test]
    fn pieces_that_are_planned_are_those_that_are_made() {
        let digest = |part: Part, planned: bool| {
            let options = TokeniseOptions::default().max_len(16).overflow(Overflow::Chunk);
            let pieces = texts().shuffle(3).to_iter().tokenise_chunks(op(&options));
            let rows = pieces.first_fit_pack(BinPackOptions::new(RowSpec::new([("tokens", 40)]), 5));
            let builder = rows.batch_with(4, Remainder::Drop).loader().part(part);
            let mut loader = if planned { builder.keys(Recompute) } else { builder }.build().unwrap();
            let mut digest = RowDigest::default();
            while let Some(batch) = loader.next() {
                digest.add_batch(loader.delivered() - 1, loader.rows().unwrap(), &batch.unwrap());
            }
            (digest, loader.delivered())
        };
        let (whole, batches) = digest(Part::whole(), false);
        let (mut both, (second, _)) = (digest(Part::of(0, 2), true).0, digest(Part::of(1, 2), true));
        both.add(second);
        assert!(batches > 10, "{batches}");
        assert_eq!(both, whole);
    }

    #[cfg(feature = "text-compat")]
    #[test]
    fn a_slow_engine_is_in_the_report() {
        let remarks = |choice| {
            let options = TokenizerOptions::default().engine(choice);
            let tokenizer = Tokenizer::from_bytes_with("demo", demo::TOKENIZER_JSON, options).unwrap();
            let encoder = TextEncoder::new(tokenizer, &TokeniseOptions::default()).unwrap();
            let mut loader =
                texts().tokenise_with(Tokenise::column(encoder, "text")).to_iter().boxed().loader().build().unwrap();
            let report = loader.report();
            (report.remarks.clone(), report.to_string())
        };
        let (slow, text) = remarks(EngineChoice::Compat);
        assert!(slow[0].starts_with("tokenise (stage 1): tokenizers 0.23"), "{slow:?}");
        assert!(slow[0].contains("times as long") && text.contains("note: tokenise (stage 1)"), "{text}");
        assert!(remarks(EngineChoice::Auto).0.is_empty());
    }

    #[test]
    fn pieces_come_in_order_and_truncation_is_in_the_report() {
        let options = TokeniseOptions::default().max_len(64);
        let chunked = texts().to_iter().tokenise_chunks(op(&options.clone().overflow(Overflow::Chunk)));
        let pieces = read(chunked, Executor::Threads(2));
        let whole = texts().tokenise_with(op(&TokeniseOptions::default())).collect().unwrap();
        let ids = |all: &[Element]| -> Vec<i32> {
            all.iter().flat_map(|e| e.array("tokens").unwrap().as_slice::<i32>().unwrap().to_vec()).collect()
        };
        assert!(pieces.len() > whole.len());
        assert_eq!(ids(&pieces), ids(&whole));

        let long = whole.iter().filter(|e| e.array("tokens").unwrap().size() > 64).count() as u64;
        let mut loader = texts().to_iter().tokenise_with(op(&options)).loader().build().unwrap();
        assert_eq!(loader.by_ref().count(), 200);
        let report = loader.report();
        assert!(report.notes.contains(&("texts truncated".to_owned(), long)), "{:?}", report.notes);
    }

    #[test]
    fn a_failing_text_names_stage_and_element() {
        let limit = TokeniseOptions::default().max_len(8).overflow(Overflow::Error);
        let error = texts().to_iter().tokenise_with(op(&limit)).collect().unwrap_err().to_string();
        assert!(error.starts_with("stage 1 tokenise: element 0: text of "), "{error}");
        let chunk = texts().tokenise_with(op(&limit.overflow(Overflow::Chunk)));
        let error = chunk.to_iter().collect().unwrap_err();
        assert_eq!(error.stage_name(), Some("1 tokenise"));
    }
}
