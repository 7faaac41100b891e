//! Stacking of elements into batches.

use super::{Array, DType, Element, ElementSpec, Name, Value};
use crate::error::{Error, Result};

/// A type that `batch` can stack: its elements become a batch with a leading dimension.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stacked into a batch",
    label = "no `Stack`",
    note = "elements, arrays, text, numbers and tuples of them can",
    note = "for a function that returns a `Result`, use `try_map` instead of `map`"
)]
pub trait Stack: Sized {
    /// The type of a batch.
    type Batch;

    /// Stacks `items`, which must not be empty, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Data`](crate::ErrorKind::Data), naming the first difference, if items differ in structure, dtype or shape.
    fn stack(items: Vec<Self>) -> Result<Self::Batch>;

    /// Returns a padding item shaped like `self`, used to fill the last batch to its fixed size.
    fn padding(&self) -> Self;

    /// Returns the payload bytes of the item for the report, or 0 if unknown.
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

/// Stacks arrays along a new leading dimension and trees by field; any other value becomes a list.
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

/// A target for a batch. Receives fields in order; fields of a tree arrive between [`open`](Self::open) and
/// [`close`](Self::close).
pub(crate) trait StackSink {
    /// The reason why the sink stops.
    type Stop: From<Error>;

    /// Begins the batch, or the nested tree `name`, with a field for each field of `first`.
    fn open(&mut self, name: &str, first: &Element) -> Result<(), Self::Stop>;

    /// Ends the batch or tree opened last, after its last field.
    fn close(&mut self);

    /// Adds an array of `shape`, the concatenation of `rows`, which have equal length.
    fn array<'a>(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        rows: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
    ) -> Result<(), Self::Stop>;

    /// Adds a list of values that cannot be stacked.
    fn list(&mut self, name: &str, values: &[&Value]) -> Result<(), Self::Stop>;
}

/// Stacks `items`, which must not be empty, into `sink`. Every byte is written once, at its final position.
pub(crate) fn stack_into<S: StackSink>(items: &[&Element], sink: &mut S) -> Result<(), S::Stop> {
    stack_tree("", items, "", sink)
}

fn stack_tree<S: StackSink>(name: &str, items: &[&Element], path: &str, sink: &mut S) -> Result<(), S::Stop> {
    let first = items[0];
    if items.iter().any(|item| item.len() != first.len()) {
        return Err(mismatch(items, path).into());
    }
    sink.open(name, first)?;
    for (at, (name, value)) in first.iter().enumerate() {
        let column = column(items, at, name).ok_or_else(|| mismatch(items, path))?;
        let differ = || mismatch_in(&column, &format!("{path}{name}"));
        match value {
            _ if are_listed(&column) => sink.list(name, &column)?,
            Value::Array(array) => {
                if !column.iter().all(|value| alike(array, value)) {
                    return Err(differ().into());
                }
                let mut shape = Vec::with_capacity(array.shape().len() + 1);
                shape.push(column.len());
                shape.extend_from_slice(array.shape());
                sink.array(name, array.dtype(), &shape, column.iter().map(|value| row(value)))?;
            }
            Value::Tree(_) => {
                let trees: Option<Vec<_>> =
                    column.iter().map(|v| if let Value::Tree(t) = v { Some(t) } else { None }).collect();
                let trees = trees.ok_or_else(differ)?;
                stack_tree(name, &trees, &format!("{path}{name}/"), sink)?;
            }
            _ => return Err(differ().into()),
        }
    }
    sink.close();
    Ok(())
}

/// Returns true if a column becomes a list. The result does not depend on the order of the rows.
fn are_listed(column: &[&Value]) -> bool {
    // JSON has no type for the items of an empty list.
    let has_lists = column.iter().any(|value| matches!(value, Value::List(_)));
    column.iter().all(|value| is_listed(value) || has_lists && is_empty(value))
}

/// Returns true if a value always goes into a list of the batch, regardless of other rows.
pub(super) fn is_listed(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Tree(_))
}

fn is_empty(value: &Value) -> bool {
    matches!(value, Value::Array(array) if array.shape() == [0])
}

/// Returns the values of a field in all items, if every item has the field. Tries position `at` before a search by name.
fn column<'a>(items: &[&'a Element], at: usize, name: &str) -> Option<Vec<&'a Value>> {
    let field = |item: &&'a Element| match item.fields.get(at) {
        Some((n, value)) if n == name => Some(value),
        _ => item.get(name),
    };
    items.iter().map(field).collect()
}

fn alike(first: &Array, value: &Value) -> bool {
    matches!(value, Value::Array(a) if a.dtype() == first.dtype() && a.shape() == first.shape())
}

fn row(value: &Value) -> &[u8] {
    if let Value::Array(array) = value { array.bytes() } else { &[] }
}

/// A sink that assembles the batch as a new element.
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

/// Makes the error for trees at `path` with different fields.
#[cold]
fn mismatch(items: &[&Element], path: &str) -> Error {
    let missing = |(at, item): (usize, &&Element)| {
        let lacks = |a: &Element, b: &Element| {
            a.iter().find(|(name, _)| b.get(name).is_none()).map(|(name, _)| name.to_owned())
        };
        let name = lacks(items[0], item).or_else(|| lacks(item, items[0]))?;
        let value = items[0].get(&name).or_else(|| item.get(&name))?;
        Some((at, format!("{path}{name} ({}) is in one and not in another", spec("", value).to_string().trim())))
    };
    let found = items.iter().enumerate().find_map(missing);
    let (at, what) = found.unwrap_or((0, "their structure differs".into()));
    unlike(items.len(), at, &what, "give all elements the same fields by a `map` before `batch`, or choose columns")
}

/// Makes the error for values of a field that differ in type or shape.
#[cold]
fn mismatch_in(column: &[&Value], path: &str) -> Error {
    let first = column[0];
    let is_other =
        |value: &Value| spec("", value).first_difference(&spec("", first)).is_some() && !are_listed(&[value, first]);
    let at = column.iter().position(|value| is_other(value)).unwrap_or(0);
    let what = spec(path, first).first_difference(&spec(path, column[at]));
    let help = match (first, column[at]) {
        (Value::Array(a), Value::Array(b)) if a.dtype() == b.dtype() => {
            "pack, pad or bucket sequences of different lengths before `batch`"
        }
        _ => "replace nulls, and give numbers one type, by a `map` before `batch`",
    };
    unlike(column.len(), at, what.as_deref().unwrap_or("their structure differs"), help)
}

fn spec(path: &str, value: &Value) -> ElementSpec {
    ElementSpec::of(&Element::new().with(path, value.clone()))
}

#[cold]
fn unlike(count: usize, at: usize, what: &str, help: &str) -> Error {
    Error::data(format!("cannot stack {count} elements: element 0 and {at} of the batch differ: {what}")).help(help)
}

fn value_padding(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        // An array of this shape exists, so the allocation is expected to succeed.
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
    fn columns_do_not_depend_on_the_row_that_comes_first() {
        let stack = |values: [Value; 2]| Element::stack(values.map(|value| Element::new().with("x", value)).to_vec());
        let array = |items: Vec<i64>| Value::Array(Array::from_vec(items));
        let text = Value::List(vec!["a".into()]);
        let (one, half) = (Value::Array(Array::scalar(1i64)), Value::Array(Array::scalar(0.5f64)));
        let tree = Value::Tree(Element::new().with("y", "a"));
        let lists = [[Value::Null, "a".into()], [text.clone(), array(vec![])], [text.clone(), Value::Null]];
        for [a, b] in lists {
            assert_eq!(stack([a.clone(), b.clone()]).unwrap().get("x"), Some(&Value::List(vec![a.clone(), b.clone()])));
            assert_eq!(stack([b.clone(), a.clone()]).unwrap().get("x"), Some(&Value::List(vec![b, a])));
        }
        let refused = [
            [Value::Null, one.clone()],
            [Value::Null, array(vec![])],
            ["a".into(), one.clone()],
            [half, one],
            [Value::Null, tree.clone()],
            ["a".into(), tree],
            [text, array(vec![1])],
        ];
        for [a, b] in refused {
            for values in [[a.clone(), b.clone()], [b.clone(), a.clone()]] {
                let error = stack(values).unwrap_err();
                assert!(error.message().contains("element 0 and 1 of the batch differ: x"), "{error}");
            }
        }
        let none = Element::new();
        let one = Element::new().with("x", Array::scalar(1i64));
        for items in [vec![none.clone(), one.clone()], vec![one, none]] {
            let error = Element::stack(items).unwrap_err();
            assert!(error.message().contains("x (int64[]) is in one and not in another"), "{error}");
        }
        assert_eq!(stack([array(vec![]), array(vec![])]).unwrap().array("x").unwrap().shape(), [2, 0]);
    }

    #[test]
    fn fields_go_by_name() {
        let (a, b) = (element(vec![1], "a"), Element::new().with("in", Element::new().with("t", "b")));
        let batch = Element::stack(vec![a, b.with("x", Array::from_vec(vec![2i32]))]).unwrap();
        assert_eq!(batch.array("x").unwrap().as_slice::<i32>().unwrap(), [1, 2]);
    }

    #[test]
    fn padding_has_the_shape_and_no_content() {
        let p = element(vec![1, 2], "a").padding();
        assert_eq!(p.array("x").unwrap().as_slice::<i32>().unwrap(), [0, 0]);
    }
}
