//! Element specs: shapes and dtypes without data.

use super::{DType, Element, Value};

/// The spec of a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeafSpec {
    /// An array of this dtype and shape.
    Array(DType, Vec<usize>),
    /// Any other value, by its [`Value::kind`].
    Other(&'static str),
}

/// The specs of all leaves of an element in order, each with a path such as `tokens/left`.
///
/// Elements with equal specs can be stacked. An accelerator compiles only once if the spec is constant for a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ElementSpec(Vec<(String, LeafSpec)>);

impl ElementSpec {
    /// Returns the spec of `element`.
    pub fn of(element: &Element) -> Self {
        let mut leaves = Vec::new();
        collect("", element, &mut leaves);
        Self(leaves)
    }

    /// Iterates over the leaves in order, each with its path.
    pub fn leaves(&self) -> impl ExactSizeIterator<Item = (&str, &LeafSpec)> {
        self.0.iter().map(|(path, leaf)| (path.as_str(), leaf))
    }

    /// Describes the first leaf that differs between `self` and `other`; `None` if they are equal.
    pub fn first_difference(&self, other: &Self) -> Option<String> {
        let both = self.0.iter().zip(&other.0).find(|(a, b)| a != b);
        if let Some(((name_a, a), (name_b, b))) = both {
            return Some(format!("{name_a} is {a} in one and {name_b} is {b} in another"));
        }
        let (longer, shorter) = if self.0.len() > other.0.len() { (self, other) } else { (other, self) };
        longer.0.get(shorter.0.len()).map(|(name, leaf)| format!("{name} ({leaf}) is in one and not in another"))
    }
}

fn collect(prefix: &str, element: &Element, leaves: &mut Vec<(String, LeafSpec)>) {
    for (name, value) in element.iter() {
        let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        match value {
            Value::Array(a) => leaves.push((path, LeafSpec::Array(a.dtype(), a.shape().to_vec()))),
            Value::Tree(tree) => collect(&path, tree, leaves),
            other => leaves.push((path, LeafSpec::Other(other.kind()))),
        }
    }
}

display_as!(LeafSpec, |self, f| {
    match self {
        Self::Array(dtype, shape) => write!(f, "{dtype}{shape:?}"),
        Self::Other(kind) => f.write_str(kind),
    }
});

display_as!(ElementSpec, |self, f| {
    for (i, (path, leaf)) in self.0.iter().enumerate() {
        write!(f, "{}{path} {leaf}", if i == 0 { "" } else { ", " })?;
    }
    Ok(())
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Array;

    #[test]
    fn says_what_differs() {
        let a = Element::new().with("x", Array::from_vec(vec![1i32, 2])).with("t", "text");
        let b = Element::new().with("x", Array::from_vec(vec![1i32]));
        let (a, b) = (ElementSpec::of(&a), ElementSpec::of(&b));
        assert_eq!(a.to_string(), "x int32[2], t text");
        assert_eq!(a.first_difference(&b).unwrap(), "x is int32[2] in one and x is int32[1] in another");
        assert_eq!(a.first_difference(&a), None);
    }
}
