//! Elements of a record that are made of other elements of it: each knows of which.

use std::sync::Arc;

use crate::dataset::Role;
use crate::dataset::facts::Facts;
use crate::dataset::iter::left_out;
use crate::dataset::map::Each;
use crate::error::{ErrorKind, Result};

/// Elements that a stage has made of those of one record, in order. The number of each is its place here.
pub(in crate::dataset) struct Traced<T>(pub(super) Vec<Piece<T>>);

/// One of them.
pub(in crate::dataset) struct Piece<T> {
    /// The number of the element that it was made of.
    pub(super) of: u32,
    /// `None` where that has failed.
    pub(super) made: Option<T>,
}

impl<T> Traced<T> {
    /// The same with its elements turned into others.
    #[cfg(feature = "python")]
    pub(super) fn turned<U>(self, turn: impl Fn(T) -> Result<U>) -> Result<Traced<U>> {
        let piece = |Piece { of, made }: Piece<T>| Ok(Piece { of, made: made.map(&turn).transpose()? });
        self.0.into_iter().map(piece).collect::<Result<_>>().map(Traced)
    }
}

/// Says of the function of a stage what is said of another, which it calls.
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

/// The function of a stage, which a stage elsewhere has as well.
pub(super) struct Shared<E>(pub(super) Arc<E>);

impl<T, E: Each<T>> Each<T> for Shared<E> {
    type Out = E::Out;

    fn apply(&self, index: u64, element: T) -> Result<Option<E::Out>> {
        self.0.apply(index, element)
    }
}

/// The same, which lists the element that it makes, or none.
pub(super) struct AsList<E>(pub(super) Arc<E>);

impl<T, E: Each<T>> Each<T> for AsList<E> {
    type Out = Vec<E::Out>;

    fn apply(&self, index: u64, element: T) -> Result<Option<Vec<E::Out>>> {
        match self.0.apply(index, element)? {
            // Those behind it would have other numbers.
            None if self.0.role() == Role::Elementwise => Err(left_out()),
            made => Ok(Some(made.into_iter().collect())),
        }
    }
}

/// A function that lists what it makes of an element, for all elements of a record.
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
                // Others of the record are not bad for it.
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

    /// Drops 2, lists others as often as they say, and fails at 3.
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
        // Their own numbers are those that count behind it.
        let again = OfPieces(Times).apply(0, pieces().unwrap().unwrap());
        let fours = (2..6).flat_map(|of| [(of, Some(4)); 4]);
        assert_eq!(listed(again), [(0, Some(1)), (1, None)].into_iter().chain(fours).collect::<Vec<_>>());
        assert!(OfPieces(Times).apply(0, vec![1, 9]).is_err());
    }
}
