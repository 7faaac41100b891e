//! Elements made from other elements of the same record. Each stores the number of its input element.

use std::sync::Arc;

use crate::dataset::Role;
use crate::dataset::facts::Facts;
use crate::dataset::iter::left_out;
use crate::dataset::map::Each;
use crate::error::{ErrorKind, Result};

/// Elements that a stage makes from the elements of a record, in order. An element's number is its index in this list.
pub(in crate::dataset) struct Traced<T>(pub(super) Vec<Piece<T>>);

/// An element made from an element of the record.
pub(in crate::dataset) struct Piece<T> {
    /// The number of the input element.
    pub(super) of: u32,
    /// The element, or `None` if the stage failed.
    pub(super) made: Option<T>,
}

impl<T> Traced<T> {
    /// Converts each element by `turn`.
    #[cfg(feature = "python")]
    pub(super) fn turned<U>(self, turn: impl Fn(T) -> Result<U>) -> Result<Traced<U>> {
        let piece = |Piece { of, made }: Piece<T>| Ok(Piece { of, made: made.map(&turn).transpose()? });
        self.0.into_iter().map(piece).collect::<Result<_>>().map(Traced)
    }
}

/// Implements [`Facts`] for a wrapper of a stage's function, by forwarding to the function.
macro_rules! same_facts {
    ($name:ident) => {
        impl<E: Facts> Facts for $name<E> {
            fn name(&self) -> &'static str {
                self.0.name()
            }
            fn params(&self) -> String {
                self.0.params()
            }
            fn role(&self) -> Role {
                self.0.role()
            }
            fn is_native(&self) -> bool {
                self.0.is_native()
            }
            fn has_every_index(&self) -> bool {
                self.0.has_every_index()
            }
            fn sees_index(&self) -> bool {
                self.0.sees_index()
            }
        }
    };
}

/// The function of a stage, shared with the stage itself.
pub(super) struct Shared<E>(pub(super) Arc<E>);

impl<T, E: Each<T>> Each<T> for Shared<E> {
    type Out = E::Out;

    fn apply(&self, index: u64, element: T) -> Result<Option<E::Out>> {
        self.0.apply(index, element)
    }
}

/// Like [`Shared`], but lists the element: an empty list if the function drops the element.
pub(super) struct AsList<E>(pub(super) Arc<E>);

impl<T, E: Each<T>> Each<T> for AsList<E> {
    type Out = Vec<E::Out>;

    fn apply(&self, index: u64, element: T) -> Result<Option<Vec<E::Out>>> {
        match self.0.apply(index, element)? {
            // Later elements of the record would get other numbers.
            None if self.0.role() == Role::Elementwise => Err(left_out()),
            made => Ok(Some(made.into_iter().collect())),
        }
    }
}

/// Applies a function that returns a list to every element of a record.
pub(super) struct OfPieces<E>(pub(super) E);

impl<E> OfPieces<E> {
    fn of_each<T, U>(&self, index: u64, pieces: impl Iterator<Item = Option<T>>) -> Result<Option<Traced<U>>>
    where
        E: Each<T, Out = Vec<U>>,
    {
        let mut all = Vec::new();
        for (of, piece) in (0..).zip(pieces) {
            match piece.map(|piece| self.0.apply(index, piece)) {
                Some(Ok(made)) => {
                    all.extend(made.into_iter().flatten().map(|made| Piece { of, made: Some(made) }));
                }
                Some(Err(error)) if error.kind() != ErrorKind::Data => return Err(error),
                // A failed element does not make the rest of the record bad.
                Some(Err(_)) | None => all.push(Piece { of, made: None }),
            }
        }
        Ok(Some(Traced(all)))
    }
}

impl<T, U, E: Each<T, Out = Vec<U>>> Each<Vec<T>> for OfPieces<E> {
    type Out = Traced<U>;

    fn apply(&self, index: u64, pieces: Vec<T>) -> Result<Option<Traced<U>>> {
        self.of_each(index, pieces.into_iter().map(Some))
    }
}

impl<T, U, E: Each<T, Out = Vec<U>>> Each<Traced<T>> for OfPieces<E> {
    type Out = Traced<U>;

    fn apply(&self, index: u64, pieces: Traced<T>) -> Result<Option<Traced<U>>> {
        self.of_each(index, pieces.0.into_iter().map(|piece| piece.made))
    }
}

same_facts!(Shared);
same_facts!(AsList);
same_facts!(OfPieces);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    /// Drops 2, repeats each other number x times, and fails at 3.
    struct Times;

    impl Facts for Times {
        fn name(&self) -> &'static str {
            "times"
        }
    }

    impl Each<u32> for Times {
        type Out = Vec<u32>;

        fn apply(&self, _: u64, x: u32) -> Result<Option<Vec<u32>>> {
            match x {
                2 => Ok(None),
                3 => Err(Error::data("three")),
                9 => Err(Error::config("nine")),
                _ => Ok(Some(vec![x; x as usize])),
            }
        }
    }

    fn listed(made: Result<Option<Traced<u32>>>) -> Vec<(u32, Option<u32>)> {
        made.unwrap().unwrap().0.into_iter().map(|piece| (piece.of, piece.made)).collect()
    }

    #[test]
    fn each_piece_knows_of_which_it_was_made() {
        let pieces = || OfPieces(Times).apply(0, vec![1, 2, 3, 4, 0]);
        let four = (3, Some(4));
        assert_eq!(listed(pieces()), [(0, Some(1)), (2, None), four, four, four, four]);
        // The second stage numbers its input elements anew.
        let again = OfPieces(Times).apply(0, pieces().unwrap().unwrap());
        let fours = (2..6).flat_map(|of| [(of, Some(4)); 4]);
        assert_eq!(listed(again), [(0, Some(1)), (1, None)].into_iter().chain(fours).collect::<Vec<_>>());
        assert!(OfPieces(Times).apply(0, vec![1, 9]).is_err());
    }
}
