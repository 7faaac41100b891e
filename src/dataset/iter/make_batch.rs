//! The ways in which elements become a batch.

use std::ops::Range;

use super::{DatasetIterator, InPlace, NextStacked};
use crate::cx::Cx;
use crate::dataset::map::{GetStacked, MapDataset, stacked};
use crate::element::{Array, Buffer, DType, Element, Name, Padded, Scalar, Stack, Value};
use crate::error::{Error, Result};

/// Makes a batch of elements, of a stream or of a [`MapDataset`]. Each of the `batch` methods has a different
/// implementation.
#[expect(unused_variables, reason = "provided methods ignore their arguments")]
pub trait MakeBatch<T>: Send + Sync + 'static {
    /// Type of a batch.
    type Batch: Send + 'static;

    /// Makes a batch of `items`: 1 to `size` items, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if the items cannot be joined.
    fn make(&self, items: Vec<T>, size: usize) -> Result<Self::Batch>;

    /// Returns true if batches mark the rows that are padding. [`make_padded`](Self::make_padded) then makes batches.
    fn says_padding(&self) -> bool {
        false
    }

    /// Makes a batch of `items` in which missing items are rows of padding. Another item is the sample for padding, or
    /// `like` if all are missing.
    ///
    /// # Errors
    /// As [`make`](Self::make), and [`ErrorKind::Config`](crate::ErrorKind::Config) if batches do not
    /// [mark](Self::says_padding) padding.
    fn make_padded(&self, items: Vec<Option<T>>, like: Option<&T>, size: usize) -> Result<Self::Batch> {
        Err(Error::config("batches do not mark their rows of padding"))
    }

    /// Returns the arguments that shape the data, for the fingerprint; empty if only the remainder policy does.
    fn params(&self) -> String {
        String::new()
    }

    /// Returns the payload bytes of `items`, for the report; 0 if unknown.
    fn nbytes(&self, items: &[T]) -> usize {
        0
    }

    /// Returns true if [`make`](Self::make) is exactly [`Stack::stack`]. Elements may then be stacked directly into the
    /// memory in which the batch leaves a worker process.
    fn only_stacks(&self) -> bool {
        false
    }

    /// Returns the function for some rows of each whole batch. Returns `None` if these rows may differ from the rows of
    /// the whole batch.
    fn of_rows(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Returns the next batch of up to `size` elements of `parent`, if `parent` writes batches in place that equal the
    /// results of [`make`](Self::make): see [`DatasetIterator::next_stacked`].
    fn next_of<I: DatasetIterator<Item = T>>(
        &self,
        parent: &mut I,
        size: usize,
        cx: &mut Cx,
    ) -> Option<Result<Option<InPlace<Self::Batch>>>> {
        None
    }

    /// Returns the batch of the 1 to `size` elements of `dataset` at `indices`, if `dataset` can return it without
    /// making the elements: see [`BulkRead::get_stacked`](crate::dataset::map::BulkRead::get_stacked).
    fn of_columns<D: MapDataset<Item = T>>(
        &self,
        dataset: &D,
        indices: Range<u64>,
        size: usize,
        cx: &mut Cx,
    ) -> Option<InPlace<Self::Batch>> {
        None
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) with value and limit.
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

/// Stacks elements with [`Stack::stack`].
#[derive(Clone, Copy, Debug)]
pub struct Stacked;

impl<T: Stack<Batch: Send + 'static>> MakeBatch<T> for Stacked {
    type Batch = T::Batch;

    fn of_rows(&self) -> Option<Self> {
        Some(*self)
    }

    fn make(&self, items: Vec<T>, _: usize) -> Result<T::Batch> {
        T::stack(items)
    }

    fn nbytes(&self, items: &[T]) -> usize {
        items.iter().map(Stack::nbytes).sum()
    }

    fn only_stacks(&self) -> bool {
        true
    }

    fn next_of<I: DatasetIterator<Item = T>>(&self, parent: &mut I, size: usize, cx: &mut Cx) -> NextStacked<T> {
        parent.next_stacked(size, cx)
    }

    fn of_columns<D>(&self, dataset: &D, indices: Range<u64>, _: usize, cx: &mut Cx) -> GetStacked<T>
    where
        D: MapDataset<Item = T>,
    {
        stacked(dataset, indices, cx)
    }
}

/// Makes batches with a user function.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct BatchFn<F>(pub(in crate::dataset) F);

impl<T, B, F> MakeBatch<T> for BatchFn<F>
where
    B: Send + 'static,
    F: Fn(Vec<T>) -> Result<B> + Send + Sync + 'static,
{
    type Batch = B;

    fn make(&self, items: Vec<T>, _: usize) -> Result<B> {
        (self.0)(items)
    }
}

debug_as!(<F> BatchFn<F>, |self, f| f.write_str("BatchFn"));

/// Fills the batch up with [`Stack::padding`] and stacks it.
#[derive(Clone, Copy, Debug)]
pub struct StackedPadded;

impl<T: Stack<Batch: Send + 'static>> MakeBatch<T> for StackedPadded {
    type Batch = Padded<T::Batch>;

    fn of_rows(&self) -> Option<Self> {
        Some(*self)
    }

    fn make(&self, mut items: Vec<T>, size: usize) -> Result<Self::Batch> {
        let real = items.len();
        room_for(&mut items, size)?;
        while items.len() < size {
            items.push(items[0].padding());
        }
        Ok(Padded { batch: T::stack(items)?, real, size })
    }

    /// Stacks columns if the batch needs no padding.
    fn of_columns<D: MapDataset<Item = T>>(
        &self,
        dataset: &D,
        indices: Range<u64>,
        size: usize,
        cx: &mut Cx,
    ) -> Option<InPlace<Self::Batch>> {
        let InPlace { batch, len, bytes } = stacked(dataset, full(indices, size)?, cx)?;
        Some(InPlace { batch: Padded { batch, real: size, size }, len, bytes })
    }

    fn params(&self) -> String {
        "remainder=pad".into()
    }

    fn nbytes(&self, items: &[T]) -> usize {
        Stacked.nbytes(items)
    }
}

/// Padding of the last batch by [`batch_masked_with`](crate::IterDatasetExt::batch_masked_with).
#[derive(Clone, Debug, PartialEq)]
pub struct Padding {
    /// Value of every number in padding; must fit the dtype of each array. Text and lists are empty in padding.
    pub value: f64,
    /// Name of the mask: a field that is true for real elements (bool, `[size]`).
    pub mask: Name,
}

default_as!(Padding, Self { value: 0.0, mask: Name::new_static("batch_mask") });

impl Padding {
    /// Adds the mask to a batch of `size` elements.
    fn masked(&self, mut batch: Element, is_real: impl Fn(usize) -> bool, size: usize) -> Result<Element> {
        let mask: Vec<u8> = (0..size).map(|row| u8::from(is_real(row))).collect();
        let mask = Array::new(DType::Bool, &[size], Buffer::from_vec(mask))?;
        match batch.insert(&self.mask, mask) {
            None => Ok(batch),
            Some(_) => Err(Error::data(format!("the elements have a field {:?} already", self.mask))
                .help("choose another name for the mask")),
        }
    }

    /// Returns padding in the shape of `element`.
    fn like(&self, element: &Element) -> Result<Element> {
        let mut pad = element.padding();
        fill(&mut pad, self.value)?;
        Ok(pad)
    }
}

impl MakeBatch<Element> for Padding {
    type Batch = Element;

    fn of_rows(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn make(&self, mut items: Vec<Element>, size: usize) -> Result<Element> {
        let real = items.len();
        if real < size {
            let pad = self.like(&items[0])?;
            room_for(&mut items, size)?;
            items.resize(size, pad);
        }
        self.masked(Element::stack(items)?, |row| row < real, size)
    }

    fn says_padding(&self) -> bool {
        true
    }

    fn make_padded(&self, mut items: Vec<Option<Element>>, like: Option<&Element>, size: usize) -> Result<Element> {
        let like = items.iter().flatten().next().or(like);
        let pad =
            self.like(like.ok_or_else(|| Error::state("a batch of padding has no row to derive the padding from"))?)?;
        room_for(&mut items, size)?;
        items.resize(size, None);
        let real: Vec<bool> = items.iter().map(Option::is_some).collect();
        let rows = items.into_iter().map(|item| item.unwrap_or_else(|| pad.clone())).collect();
        self.masked(Element::stack(rows)?, |row| real[row], size)
    }

    /// Stacks columns if the batch needs no padding.
    fn of_columns<D: MapDataset<Item = Element>>(
        &self,
        dataset: &D,
        indices: Range<u64>,
        size: usize,
        cx: &mut Cx,
    ) -> Option<InPlace<Element>> {
        let whole = stacked(dataset, full(indices, size)?, cx)?;
        let masked = self.masked(whole.batch, |_| true, size).inspect_err(|_| cx.undo_chunk());
        masked.ok().map(|batch| InPlace { batch, ..whole })
    }

    fn params(&self) -> String {
        format!("remainder=pad, value={}, mask={}", self.value, self.mask)
    }

    fn nbytes(&self, items: &[Element]) -> usize {
        Stacked.nbytes(items)
    }
}

/// Reserves memory in `items` for a total of `size` elements.
fn room_for<T>(items: &mut Vec<T>, size: usize) -> Result<()> {
    let missing = size.saturating_sub(items.len());
    let refused = |_| Error::config(format!("a batch of {size} elements, padded, does not fit in memory"));
    items.try_reserve_exact(missing).map_err(refused)
}

/// Returns `indices` if the batch needs no padding.
fn full(indices: Range<u64>, size: usize) -> Option<Range<u64>> {
    Some(indices).filter(|indices| indices.end - indices.start == size as u64)
}

/// Sets every number of every array in `element` to `value`.
fn fill(element: &mut Element, value: f64) -> Result<()> {
    if value == 0.0 {
        return Ok(());
    }
    let names: Vec<Name> = element.iter().map(|(name, _)| Name::new(name)).collect();
    for name in names {
        match element.get_mut(&name) {
            Some(Value::Array(array)) => *array = filled(array, value)?,
            Some(Value::Tree(tree)) => fill(tree, value)?,
            _ => {}
        }
    }
    Ok(())
}

fn filled(array: &Array, value: f64) -> Result<Array> {
    let dtype = array.dtype();
    let number = encode(dtype, value)
        .ok_or_else(|| Error::data(format!("the pad value {value} does not fit {}", dtype.name())))?;
    let mut out = Array::builder(dtype, array.shape())?;
    out.bytes_mut().chunks_exact_mut(dtype.size()).for_each(|slot| slot.copy_from_slice(&number[..dtype.size()]));
    Ok(out.freeze())
}

/// Returns the bytes of `value` as a number of `dtype`, or `None` if an integer type cannot represent `value`.
fn encode(dtype: DType, value: f64) -> Option<[u8; 8]> {
    fn bytes(number: impl Scalar) -> [u8; 8] {
        let mut out = [0; 8];
        let raw = bytemuck::bytes_of(&number);
        out[..raw.len()].copy_from_slice(raw);
        out
    }
    // An i128 represents every whole f64 below 2^64 in magnitude exactly.
    let whole = (value.fract() == 0.0 && value.abs() < 2f64.powi(64)).then_some(value as i128);
    Some(match dtype {
        DType::F16 => bytes(half::f16::from_f64(value)),
        DType::BF16 => bytes(half::bf16::from_f64(value)),
        DType::F32 => bytes(value as f32),
        DType::F64 => bytes(value),
        DType::Bool => bytes(u8::try_from(whole?).ok().filter(|&b| b <= 1)?),
        DType::U8 => bytes(u8::try_from(whole?).ok()?),
        DType::I8 => bytes(i8::try_from(whole?).ok()?),
        DType::U16 => bytes(u16::try_from(whole?).ok()?),
        DType::I16 => bytes(i16::try_from(whole?).ok()?),
        DType::U32 => bytes(u32::try_from(whole?).ok()?),
        DType::I32 => bytes(i32::try_from(whole?).ok()?),
        DType::U64 => bytes(u64::try_from(whole?).ok()?),
        DType::I64 => bytes(i64::try_from(whole?).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_padded_batch_for_which_there_is_no_memory_is_an_error() {
        let element = || Element::new().with("x", Array::from_vec(vec![1i16]));
        let error = Padding::default().make(vec![element()], 1 << 45).unwrap_err();
        assert_eq!(error.message(), "a batch of 35184372088832 elements, padded, does not fit in memory");
        assert!(StackedPadded.make(vec![element()], 1 << 45).is_err());
    }

    #[test]
    fn rows_that_are_missing_are_padding_and_masked() {
        let element = |x: i16| Element::new().with("x", Array::from_vec(vec![x]));
        let padding = Padding { value: 9.0, ..Padding::default() };
        let batch = padding.make_padded(vec![None, Some(element(1)), None], None, 4).unwrap();
        assert_eq!(batch.array("x").unwrap().as_slice::<i16>().unwrap(), [9, 1, 9, 9]);
        assert_eq!(batch.array("batch_mask").unwrap().bytes(), [0, 1, 0, 0]);
        let batch = padding.make_padded(vec![None], Some(&element(5)), 1).unwrap();
        assert_eq!(batch.array("x").unwrap().as_slice::<i16>().unwrap(), [9]);
        assert!(padding.make_padded(vec![None], None, 1).is_err());
        assert!(Stacked.make_padded(vec![Some(element(1)), None], None, 2).is_err() && padding.says_padding());
    }

    #[test]
    fn a_pad_value_fits_or_is_refused() {
        assert_eq!(encode(DType::I32, -100.0), Some([156, 255, 255, 255, 0, 0, 0, 0]));
        assert_eq!(encode(DType::F32, 0.5), Some([0, 0, 0, 63, 0, 0, 0, 0]));
        let refused =
            [(DType::U8, 256.0), (DType::I64, 0.5), (DType::Bool, 2.0), (DType::U64, -1.0), (DType::I8, f64::NAN)];
        for (dtype, value) in refused {
            assert_eq!(encode(dtype, value), None, "{dtype} {value}");
        }
    }

    #[test]
    fn trees_are_filled_to_the_leaves() {
        let mut e =
            Element::new().with("in", Element::new().with("x", Array::from_vec(vec![1i16, 2]))).with("t", "text");
        fill(&mut e, 9.0).unwrap();
        let Some(Value::Tree(inner)) = e.get("in") else { panic!("no tree") };
        assert_eq!(inner.array("x").unwrap().as_slice::<i16>().unwrap(), [9, 9]);
        assert_eq!(e.text("t").unwrap(), "text");
    }
}
