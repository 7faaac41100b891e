//! Stacking elements into a batch.

use super::{Array, DType, Element, ElementSpec, Name, Value};
use crate::error::{Error, Result};

/// The trait of what `batch` can stack: elements of one kind become one batch with a leading dimension.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stacked into a batch",
    label = "no `Stack`",
    note = "elements, arrays, text, numbers and tuples of them can",
    note = "where a function returns a `Result`, `try_map` in place of `map` yields what is in it"
)]
pub trait Stack: Sized {
    /// The type of a batch of them.
    type Batch;

    /// Stacks `items`, of which there is at least one, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data) if they differ in structure, dtype or shape, naming the first difference.
    fn stack(items: Vec<Self>) -> Result<Self::Batch>;

    /// An item like `self`, all padding: what fills a last batch to its fixed size.
    fn padding(&self) -> Self;

    /// Payload bytes of it, for the report; 0 where they are not known.
    fn nbytes(&self) -> usize {
        size_of::<Self>()
    }
}

macro_rules! stack_numbers {
    ($($type:ty),*) => {
        $(impl Stack for $type {
            type Batch = Vec<Self>;
            fn stack(items: Vec<Self>) -> Result<Vec<Self>> {
                Ok(items)
            }
            fn padding(&self) -> Self {
                Default::default()
            }
        })*
    };
}
stack_numbers!(u8, i8, u16, i16, u32, i32, u64, i64, usize, f32, f64, bool, String);

impl<T: Clone + Default> Stack for Vec<T> {
    type Batch = Vec<Self>;

    fn stack(items: Vec<Self>) -> Result<Vec<Self>> {
        Ok(items)
    }

    fn padding(&self) -> Self {
        vec![T::default(); self.len()]
    }

    fn nbytes(&self) -> usize {
        size_of_val(self.as_slice())
    }
}

impl<A: Stack, B: Stack> Stack for (A, B) {
    type Batch = (A::Batch, B::Batch);

    fn stack(items: Vec<Self>) -> Result<Self::Batch> {
        let (a, b) = items.into_iter().unzip();
        Ok((A::stack(a)?, B::stack(b)?))
    }

    fn padding(&self) -> Self {
        (self.0.padding(), self.1.padding())
    }
}

/// Arrays get a leading dimension; anything else becomes a list.
impl Stack for Element {
    type Batch = Element;

    fn stack(items: Vec<Self>) -> Result<Element> {
        let refs: Vec<&Element> = items.iter().collect();
        stack_elements(&refs)
    }

    fn padding(&self) -> Self {
        let fields = self.iter().map(|(name, value)| (name, value_padding(value)));
        fields.fold(Element::with_capacity(self.len()), |e, (name, value)| e.with(name, value))
    }

    fn nbytes(&self) -> usize {
        self.nbytes()
    }
}

fn stack_elements(items: &[&Element]) -> Result<Element> {
    let mut sink = ElementSink::default();
    stack_into(items, &mut sink)?;
    Ok(sink.whole)
}

/// The target of a batch: its fields in order, those of a tree in it between [`open`](Self::open) and [`close`](Self::close).
pub(crate) trait StackSink {
    /// The reason why it takes no more.
    type Stop: From<Error>;

    /// The batch itself begins, or the tree `name` in it: one field for every field of `first`.
    fn open(&mut self, name: &str, first: &Element) -> Result<(), Self::Stop>;

    /// Ends what was opened last, which has all its fields.
    fn close(&mut self);

    /// An array of `shape`: the bytes of `rows`, all of one length, one after the other.
    fn array<'a>(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        rows: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    ) -> Result<(), Self::Stop>;

    /// Values that cannot be stacked, as a list.
    fn list(&mut self, name: &str, values: &[&Value]) -> Result<(), Self::Stop>;
}

/// Stacks `items`, of which there is at least one, into `sink`: every byte is written once, in its place.
pub(crate) fn stack_into<S: StackSink>(items: &[&Element], sink: &mut S) -> Result<(), S::Stop> {
    stack_tree("", items, sink)
}

fn stack_tree<S: StackSink>(name: &str, items: &[&Element], sink: &mut S) -> Result<(), S::Stop> {
    let first = items[0];
    sink.open(name, first)?;
    for (at, (name, value)) in first.iter().enumerate() {
        let column = column(items, at, name).ok_or_else(|| mismatch(items))?;
        match value {
            Value::Array(array) => {
                if !column.iter().all(|value| alike(array, value)) {
                    return Err(mismatch(items).into());
                }
                let mut shape = Vec::with_capacity(array.shape().len() + 1);
                shape.push(column.len());
                shape.extend_from_slice(array.shape());
                sink.array(name, array.dtype(), &shape, column.iter().map(|value| row(value)))?;
            }
            Value::Tree(_) => {
                let trees: Option<Vec<_>> =
                    column.iter().map(|v| if let Value::Tree(t) = v { Some(t) } else { None }).collect();
                stack_tree(name, &trees.ok_or_else(|| mismatch(items))?, sink)?;
            }
            _ => sink.list(name, &column)?,
        }
    }
    sink.close();
    Ok(())
}

/// The values of field `at` in all items, if every item has just the fields of the first.
fn column<'a>(items: &[&'a Element], at: usize, name: &str) -> Option<Vec<&'a Value>> {
    let width = items[0].len();
    let field = |item: &&'a Element| match item.fields.get(at) {
        Some((n, value)) if n == name && item.len() == width => Some(value),
        _ => None,
    };
    items.iter().map(field).collect()
}

fn alike(first: &Array, value: &Value) -> bool {
    matches!(value, Value::Array(a) if a.dtype() == first.dtype() && a.shape() == first.shape())
}

fn row(value: &Value) -> &[u8] {
    if let Value::Array(array) = value { array.bytes() } else { &[] }
}

/// Puts the batch together as an element of its own.
#[derive(Default)]
struct ElementSink {
    open: Vec<(Name, Element)>,
    whole: Element,
}

impl ElementSink {
    fn add(&mut self, name: &str, value: Value) {
        if let Some((_, tree)) = self.open.last_mut() {
            tree.fields.push((name.into(), value));
        }
    }
}

impl StackSink for ElementSink {
    type Stop = Error;

    fn open(&mut self, name: &str, first: &Element) -> Result<()> {
        self.open.push((name.into(), Element::with_capacity(first.len())));
        Ok(())
    }

    fn close(&mut self) {
        let Some((name, tree)) = self.open.pop() else { return };
        if self.open.is_empty() {
            self.whole = tree;
        } else {
            self.add(&name, Value::Tree(tree));
        }
    }

    fn array<'a>(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        rows: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    ) -> Result<()> {
        let mut out = Array::of_rows(dtype, shape)?;
        for row in rows {
            let pushed = out.push(row);
            debug_assert!(pushed.is_some(), "rows of {} bytes are alike", row.len());
        }
        self.add(name, Value::Array(out.freeze()));
        Ok(())
    }

    fn list(&mut self, name: &str, values: &[&Value]) -> Result<()> {
        self.add(name, Value::List(values.iter().map(|&value| value.clone()).collect()));
        Ok(())
    }
}

#[cold]
fn mismatch(items: &[&Element]) -> Error {
    let first = ElementSpec::of(items[0]);
    let difference =
        items.iter().enumerate().find_map(|(i, e)| Some((i, first.first_difference(&ElementSpec::of(e))?)));
    let (at, what) = difference.unwrap_or((0, "their structure differs".into()));
    Error::data(format!("cannot stack {} elements: element 0 and {at} of the batch differ: {what}", items.len()))
        .help("pack, pad or bucket sequences of different lengths before `batch`")
}

fn value_padding(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        // A shape that exists once can be allocated again.
        Value::Array(a) => {
            Array::builder(a.dtype(), a.shape()).map_or(Value::Null, |zeros| Value::Array(zeros.freeze()))
        }
        Value::Str(_) => Value::from(""),
        Value::Bytes(_) => Value::Bytes(super::Buffer::EMPTY),
        Value::List(_) => Value::List(Vec::new()),
        Value::Tree(tree) => Value::Tree(tree.padding()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(x: Vec<i32>, t: &str) -> Element {
        Element::new().with("x", Array::from_vec(x)).with("in", Element::new().with("t", t))
    }

    #[test]
    fn arrays_gain_a_dimension_and_text_becomes_a_list() {
        let batch = Element::stack(vec![element(vec![1, 2], "a"), element(vec![3, 4], "b")]).unwrap();
        assert_eq!(batch.array("x").unwrap().shape(), [2, 2]);
        assert_eq!(batch.array("x").unwrap().as_slice::<i32>().unwrap(), [1, 2, 3, 4]);
        let Some(Value::Tree(inner)) = batch.get("in") else { panic!("no tree") };
        assert_eq!(inner.get("t"), Some(&Value::List(vec!["a".into(), "b".into()])));
    }

    #[test]
    fn trees_in_trees_keep_their_places() {
        let deep = |x: i32| {
            let inner = Element::new().with("y", Array::scalar(x)).with("none", Element::new());
            Element::new().with("a", Element::new().with("b", inner)).with("x", Array::scalar(x))
        };
        let batch = Element::stack(vec![deep(1), deep(2)]).unwrap();
        let Some(Value::Tree(a)) = batch.get("a") else { panic!("no tree") };
        let Some(Value::Tree(b)) = a.get("b") else { panic!("no tree") };
        assert_eq!(b.array("y").unwrap().as_slice::<i32>().unwrap(), [1, 2]);
        assert_eq!(b.get("none"), Some(&Value::Tree(Element::new())));
        assert_eq!(batch.array("x").unwrap().shape(), [2]);
        let error = Element::stack(vec![deep(1), deep(2).with("a", "text")]).unwrap_err();
        assert!(error.message().contains("a/b/y"), "{error}");
    }

    #[test]
    fn a_difference_is_named() {
        let error = Element::stack(vec![element(vec![1, 2], "a"), element(vec![3], "b")]).unwrap_err();
        assert!(error.message().contains("element 0 and 1 of the batch differ: x is int32[2] in one"), "{error}");
        let error = Element::stack(vec![element(vec![1], "a"), Element::new()]).unwrap_err();
        assert!(error.message().contains("x (int32[1]) is in one and not in another"), "{error}");
    }

    #[test]
    fn padding_has_the_shape_and_no_content() {
        let p = element(vec![1, 2], "a").padding();
        assert_eq!(p.array("x").unwrap().as_slice::<i32>().unwrap(), [0, 0]);
    }
}
