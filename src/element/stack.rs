//! Stacking elements into a batch.

use super::{Array, Element, ElementSpec, Value};
use crate::error::{Error, Result};

/// What `batch` can stack: elements of one kind become one batch with a leading dimension.
pub trait Stack: Sized {
    /// What a batch of them is.
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
    let first = items[0];
    let mut batch = Element::with_capacity(first.len());
    for (at, (name, value)) in first.iter().enumerate() {
        let column = column(items, at, name).ok_or_else(|| mismatch(items))?;
        batch.fields.push((name.into(), stack_values(value, &column).ok_or_else(|| mismatch(items))??));
    }
    Ok(batch)
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

/// `None` where the values have not one structure.
fn stack_values(first: &Value, column: &[&Value]) -> Option<Result<Value>> {
    match first {
        Value::Array(array) => stack_arrays(array, column).map(|r| r.map(Value::Array)),
        Value::Tree(_) => {
            let trees: Option<Vec<_>> =
                column.iter().map(|v| if let Value::Tree(t) = v { Some(t) } else { None }).collect();
            Some(stack_elements(&trees?).map(Value::Tree))
        }
        _ => Some(Ok(Value::List(column.iter().map(|&v| v.clone()).collect()))),
    }
}

fn stack_arrays(first: &Array, column: &[&Value]) -> Option<Result<Array>> {
    let mut shape = Vec::with_capacity(first.shape().len() + 1);
    shape.push(column.len());
    shape.extend_from_slice(first.shape());
    let mut out = match Array::builder(first.dtype(), &shape) {
        Ok(out) => out,
        Err(error) => return Some(Err(error)),
    };
    let row = first.bytes().len();
    for (i, value) in column.iter().enumerate() {
        match value {
            Value::Array(a) if a.dtype() == first.dtype() && a.shape() == first.shape() => {
                out.bytes_mut()[i * row..(i + 1) * row].copy_from_slice(a.bytes());
            }
            _ => return None,
        }
    }
    Some(Ok(out.freeze()))
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
