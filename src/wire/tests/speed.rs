//! Cost of an element: `cargo test --release --lib wire::tests::speed -- --ignored --nocapture`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::samples::Extent;
use super::super::{ChunkWriter, read};
use super::Slot;
use crate::element::{Array, BufferMut, Element, Owner};

/// Adds up the time of a part of the work.
struct Clock<'a>(&'a mut Duration);

impl Clock<'_> {
    fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        *self.0 += start.elapsed();
        result
    }
}

/// Nanoseconds for each of `items`: the least of many rounds, so that other programs have no part in it.
fn ns(items: usize, mut work: impl FnMut(Clock<'_>)) -> f64 {
    let mut round = || {
        let mut spent = Duration::ZERO;
        work(Clock(&mut spent));
        spent.as_nanos() as f64 / items as f64
    };
    (0..1000).map(|_| round()).fold(f64::MAX, f64::min)
}

fn element(fields: usize, bytes: usize, label: bool) -> Element {
    let names = ["tokens", "segment_ids", "positions", "targets"];
    let one = |e: Element, name: &&str| e.with(name, Array::from_vec(vec![1u8; bytes / fields]));
    let element = names.iter().take(fields).fold(Element::new(), one);
    if label { element.with("label", Array::scalar(3i64)) } else { element }
}

#[test]
#[ignore = "a measurement, which takes a while"]
fn of_one_element() {
    let cases = [
        ("1 KiB, 1 field", element(1, 1024, false)),
        ("1 KiB, 1 field and a scalar", element(1, 1024, true)),
        ("1 KiB, 4 fields", element(4, 1024, false)),
        ("a scalar", element(1, 4, false)),
        ("1 KiB of text", Element::new().with("text", &*"x".repeat(1024))),
    ];
    for (name, element) in cases {
        let slots: Vec<Slot> = (0..900).map(|_| Ok(Some(element.clone()))).collect();
        let (mut memory, from) = (BufferMut::zeroed(1 << 20), vec![1u8; element.nbytes()]);
        let step = from.len().next_multiple_of(64);
        let copy = ns(slots.len(), |mut clock| {
            clock.time(|| {
                let places = memory.as_mut_bytes().chunks_mut(step).take(slots.len());
                places.for_each(|place| place[..from.len()].copy_from_slice(black_box(&from)));
            });
        });
        let mut used = 0;
        let write = ns(slots.len(), |mut clock| {
            clock.time(|| {
                let mut writer = ChunkWriter::new(memory.as_mut_bytes());
                slots.iter().for_each(|slot| writer.push(slot).unwrap());
                used = writer.finish().used;
            });
        });
        let owner: Arc<dyn Owner> = Arc::new(Extent(memory));
        let cloned = ns(slots.len(), |mut clock| {
            let got = clock.time(|| slots.iter().map(|slot| slot.as_ref().unwrap().clone()).collect::<Vec<_>>());
            assert_eq!(got.len(), slots.len());
        });
        let read_only = ns(slots.len(), |mut clock| {
            let got = clock.time(|| read::<Element>(&owner, used).unwrap());
            assert_eq!(got.len(), slots.len());
        });
        let read_and_drop = ns(slots.len(), |mut clock| clock.time(|| drop(black_box(read::<Element>(&owner, used)))));
        println!(
            "{name}: clone {cloned:.1} ns; write {write:.1}, memcpy alone {copy:.1}; read {read_only:.1}, and drop {read_and_drop:.1}; {} B",
            used / slots.len()
        );
    }
}
