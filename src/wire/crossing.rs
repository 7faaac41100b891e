//! The codec of a type that is only known when the program runs.

use std::any::Any;
use std::sync::Mutex;

use super::cross::Cross;
use super::input::In;
use super::output::{Out, Stop};
use super::rows::AsRows;
use crate::element::Element;
use crate::element::Padded;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Locked;

/// The way in which items of one type cross.
pub(crate) struct Crossing<T> {
    pub(super) kind: u32,
    pub(super) write: fn(&T, &mut Out<'_>) -> Result<(), Stop>,
    pub(super) read: fn(&mut In<'_>) -> Result<T>,
    pub(super) rows: Option<AsRows<T>>,
}

impl<T> Clone for Crossing<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Crossing<T> {}

impl<T: Cross> Crossing<T> {
    /// The crossing of a type that is known here.
    pub(crate) const OF: Self = Self { kind: T::KIND, write: T::write, read: T::read, rows: T::ROWS };
}

/// The crossing of `T`, or `None` if it is a type that only the program itself knows.
pub(crate) fn crossing<T: 'static>() -> Option<Crossing<T>> {
    let entries = ELEMENTS.into_iter().chain(LONE.into_iter().flatten()).chain(PAIRS.into_iter().flatten().flatten());
    let more = MORE.locked();
    let mut entries = entries.chain(more.iter().copied());
    entries.find_map(|entry| (entry as &dyn Any).downcast_ref()).copied()
}

/// The same, where elements have to cross; `place` is where they could still become others.
///
/// # Errors
/// [`ErrorKind::Config`] for a type without one.
pub(crate) fn needed<T: 'static>(place: &str) -> Result<Crossing<T>> {
    crossing().ok_or_else(|| {
        let what = std::any::type_name::<T>();
        Error::new(ErrorKind::Config, format!("elements of type {what} cannot leave a worker process")).help(format!(
            "make an `Element` of each {place} (numbers, text, lists and pairs of them travel too, and types that \
             `workers::crosses` is told of), or use threads"
        ))
    })
}

pub(crate) type Entry = &'static (dyn Any + Sync);

/// The [`Crossing`]s of types that are not known here.
static MORE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Items of more types cross from now on; what was said first stands.
pub(crate) fn also(crossings: &[Entry]) {
    MORE.locked().extend_from_slice(crossings);
}

/// Batches of elements are elements.
const ELEMENTS: [Entry; 4] = [
    &Crossing::<Element>::OF,
    &Crossing::<Vec<Element>>::OF,
    &Crossing::<Padded<Element>>::OF,
    &Crossing::<(Element, Element)>::OF,
];

/// A type, its batches, and batches of those.
struct Lone<T>(T);

impl<T: Cross> Lone<T> {
    const ALL: [Entry; 5] = [
        &Crossing::<T>::OF,
        &Crossing::<Vec<T>>::OF,
        &Crossing::<Vec<Vec<T>>>::OF,
        &Crossing::<Padded<Vec<T>>>::OF,
        &Crossing::<Padded<Vec<Vec<T>>>>::OF,
    ];
}

/// Pairs, what becomes of one element, and batches.
struct Pair<A, B>(A, B);

impl<A: Cross, B: Cross> Pair<A, B> {
    const ALL: [Entry; 4] = [
        &Crossing::<(A, B)>::OF,
        &Crossing::<Vec<(A, B)>>::OF,
        &Crossing::<(Vec<A>, Vec<B>)>::OF,
        &Crossing::<Padded<(Vec<A>, Vec<B>)>>::OF,
    ];
}

macro_rules! lone {
    ($($type:ty),*) => {
        [$(Lone::<$type>::ALL),*]
    };
}

/// Every type on the left with every one on the right.
macro_rules! pairs {
    ($($a:ty),* ; $b:tt) => {
        [$(pairs!(@ $a ; $b)),*]
    };
    (@ $a:ty ; [$($b:ty),*]) => {
        [$(Pair::<$a, $b>::ALL),*]
    };
}

const LONE: [[Entry; 5]; 13] = lone!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, usize, bool, String);
const PAIRS: [[[Entry; 4]; 9]; 9] = pairs!(
    i32, i64, u32, u64, f32, f64, bool, usize, String;
    [i32, i64, u32, u64, f32, f64, bool, usize, String]
);
