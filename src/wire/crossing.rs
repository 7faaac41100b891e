//! Codecs of types that are looked up at run time.

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

/// Codec of the items of a type.
pub(crate) struct Crossing<T> {
    pub(super) kind: u32,
    pub(super) write: fn(&T, &mut Out<'_>) -> Result<(), Stop>,
    pub(super) read: fn(&mut In<'_>) -> Result<T>,
    pub(super) rows: Option<AsRows<T>>,
}

clone_as!(<T> Crossing<T>, |self| *self);

impl<T> Copy for Crossing<T> {}

impl<T: Cross> Crossing<T> {
    /// Codec of a type with built-in support.
    pub(crate) const OF: Self = Self { kind: T::KIND, write: T::write, read: T::read, rows: T::ROWS };
}

/// Returns the codec of `T`, or `None` if `T` is an unregistered type of the user's program.
pub(crate) fn crossing<T: 'static>() -> Option<Crossing<T>> {
    let entries = ELEMENTS.into_iter().chain(LONE.into_iter().flatten()).chain(PAIRS.into_iter().flatten().flatten());
    let more = MORE.locked();
    let mut entries = entries.chain(more.iter().copied());
    entries.find_map(|entry| (entry as &dyn Any).downcast_ref()).copied()
}

/// Returns the codec of `T`, whose elements must cross.
///
/// `place` is the last point at which elements can be converted, such as "before `to_iter`". The error message contains it.
///
/// # Errors
/// [`ErrorKind::Config`] if `T` has no codec.
pub(crate) fn needed<T: 'static>(place: &str) -> Result<Crossing<T>> {
    crossing().ok_or_else(|| {
        let what = std::any::type_name::<T>();
        Error::new(ErrorKind::Config, format!("elements of type {what} cannot leave a worker process")).help(format!(
            "convert each to an `Element` {place} (numbers, text, lists and pairs of them work too, and types registered by \
             `workers::crosses`), or use threads"
        ))
    })
}

pub(crate) type Entry = &'static (dyn Any + Sync);

/// [`Crossing`]s of the types that a program has registered.
static MORE: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Registers codecs of more types. Earlier registrations take precedence.
pub(crate) fn also(crossings: &[Entry]) {
    MORE.locked().extend_from_slice(crossings);
}

/// Codecs of elements. Batches of elements are elements.
const ELEMENTS: [Entry; 4] = [
    &Crossing::<Element>::OF,
    &Crossing::<Vec<Element>>::OF,
    &Crossing::<Padded<Element>>::OF,
    &Crossing::<(Element, Element)>::OF,
];

/// Codecs of a type, its batches, and batches of its batches.
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

/// Codecs of a pair, and of its batches before and after transposition.
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

/// Pairs every type on the left with every type on the right.
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
