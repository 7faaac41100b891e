//! Items that are no elements.

use super::super::samples::{chunk, extent, slots};
use super::super::{Cross, Crossing, crossing, read, read_parts};
use super::slots_of;
use crate::element::Element;
use crate::element::Padded;
use crate::error::Result;

fn crosses<T: Cross + Clone + PartialEq + std::fmt::Debug>(items: &[T]) {
    let codec: Crossing<T> = crossing().expect("a type of the list");
    let slots: Vec<Result<Option<T>>> = items.iter().map(|item| Ok(Some(item.clone()))).collect();
    let (bytes, written) = chunk(1 << 16, |writer| {
        slots.iter().for_each(|slot| writer.push_with(slot, codec).unwrap());
        writer.push::<T>(&Ok(None)).unwrap();
    });
    let owner = extent(&bytes);
    let parts = read_parts(&owner, written.used, codec, Some(Crossing::<String>::OF)).unwrap();
    let got: Vec<T> = slots_of(parts).into_iter().flat_map(Result::unwrap).collect();
    assert_eq!(got, items);
    if T::KIND != u64::KIND {
        assert!(read::<u64>(&owner, written.used).unwrap_err().message().contains("an item of kind"));
    }
}

#[test]
fn other_types_cross_too() {
    crosses::<i64>(&[0, -1, i64::MIN, i64::MAX]);
    crosses::<u64>(&[u64::MAX]);
    crosses::<i8>(&[-128, 127]);
    crosses::<f32>(&[1.5, f32::NEG_INFINITY]);
    crosses::<f64>(&[-0.0, 1e300]);
    crosses::<bool>(&[true, false]);
    crosses::<usize>(&[usize::MAX]);
    crosses::<String>(&["".into(), "twelve bytes".into()]);
    crosses::<Vec<u8>>(&[vec![], vec![1], vec![7; 100]]);
    crosses::<Vec<i64>>(&[vec![], vec![-1], (0..1000).collect()]);
    crosses::<Vec<Vec<f32>>>(&[vec![vec![], vec![1.0; 9]]]);
    crosses::<Vec<bool>>(&[vec![true; 70]]);
    crosses::<Padded<Vec<i32>>>(&[Padded { batch: vec![1, 2, 0], real: 2, size: 3 }]);
    crosses::<(i64, String)>(&[(1, "one".into())]);
    crosses::<(Vec<u32>, Vec<usize>)>(&[(vec![1; 20], vec![2; 20])]);
    crosses::<Vec<Element>>(&[slots().into_iter().flatten().flatten().collect(), Vec::new()]);
    crosses::<Padded<Element>>(&[Padded { batch: Element::new().with("x", "y"), real: 1, size: 1 }]);
    struct Own;
    assert!(crossing::<Own>().is_none() && crossing::<Option<i64>>().is_none());
}

fn kinds_alone<T: Cross>() -> Vec<u32> {
    vec![T::KIND, Vec::<T>::KIND, Vec::<Vec<T>>::KIND, Padded::<Vec<T>>::KIND, Padded::<Vec<Vec<T>>>::KIND]
}

fn kinds_with<A: Cross>() -> Vec<u32> {
    fn both<A: Cross, B: Cross>() -> [u32; 4] {
        let (rows, batch) = (Vec::<(A, B)>::KIND, <(Vec<A>, Vec<B>)>::KIND);
        [<(A, B)>::KIND, rows, batch, Padded::<(Vec<A>, Vec<B>)>::KIND]
    }
    let numbers = [both::<A, i32>(), both::<A, i64>(), both::<A, u32>(), both::<A, u64>(), both::<A, f32>()];
    let others = [both::<A, f64>(), both::<A, bool>(), both::<A, usize>(), both::<A, String>()];
    [kinds_alone::<A>(), numbers.concat(), others.concat()].concat()
}

#[test]
fn no_two_types_are_of_one_kind() {
    let lone = [kinds_alone::<u8>(), kinds_alone::<i8>(), kinds_alone::<u16>(), kinds_alone::<i16>()];
    let paired = [kinds_with::<i32>(), kinds_with::<i64>(), kinds_with::<u32>(), kinds_with::<u64>()];
    let floats = [kinds_with::<f32>(), kinds_with::<f64>()];
    let others = [kinds_with::<bool>(), kinds_with::<usize>(), kinds_with::<String>(), kinds_with::<Element>()];
    let kinds = [lone.concat(), paired.concat(), floats.concat(), others.concat()].concat();
    let different: std::collections::HashSet<u32> = kinds.iter().copied().collect();
    assert_eq!((different.len(), kinds.len()), (430, 430));
}
