//! The guard of several hosts: cost of a batch digest beside copying the batch, and cost of a round of statements.
//!
//! `cargo bench -p benches --bench guard [-- NAME …]`
//! - `digest` is CPU time of the digest of a batch of which each host has all rows. A copy of its bytes into existing
//!   memory is measured in turns. Medians of nine rounds. Batches are larger than the caches if they are so in
//!   training.
//! - `round` is the time of a statement, and of comparing the statements of 64 and 1024 hosts, which happens once per
//!   128 batches.

use std::hint::black_box;

use gristmill::part::{Fed, Guard, Part, Statement, compare};
use gristmill::{Array, Element, Result};

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/median.rs"]
mod median;
#[path = "support/wanted.rs"]
mod wanted;

/// Returns a batch of `leaves` leaves of `bytes` bytes each.
fn batch(leaves: usize, bytes: usize) -> Element {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as i32
    };
    (0..leaves).fold(Element::new(), |element, leaf| {
        let values: Vec<i32> = (0..bytes / 4).map(|_| next()).collect();
        element.with(format!("leaf{leaf}").as_str(), Array::from_vec(values))
    })
}

fn digest() -> Result<()> {
    for (name, leaves, bytes) in [
        ("packed, 512 × 4096 tokens", 3, 512 * 4096 * 4),
        ("packed, 64 × 1024 tokens", 3, 64 * 1024 * 4),
        ("images, 256 × 224 × 224 × 3", 1, 256 * 224 * 224 * 3),
        ("leaves of 64 KiB, all of which is read", 3, 64 << 10),
    ] {
        let batch = batch(leaves, bytes);
        let mut copies: Vec<Vec<u8>> = batch.iter().map(|_| vec![1u8; bytes]).collect();
        let total = (leaves * bytes) as f64;
        let times = (256 << 20) / (leaves * bytes) + 1;
        let mut guard = Guard::new(0);
        let mut number = 0;
        let mut take = || {
            for _ in 0..times {
                guard.feed(number, Fed::content(black_box(&batch)));
                number += 1;
            }
        };
        let mut copy = || {
            for _ in 0..times {
                for ((_, leaf), copy) in batch.iter().zip(&mut copies) {
                    if let gristmill::Value::Array(array) = leaf {
                        copy.copy_from_slice(black_box(array.bytes()));
                    }
                }
                black_box(&copies);
            }
        };
        let (mut taken, mut copied) = (Vec::new(), Vec::new());
        for _ in 0..9 {
            taken.push(median::seconds(1, cpu_clock::on_core, &mut take) / times as f64);
            copied.push(median::seconds(1, cpu_clock::on_core, &mut copy) / times as f64);
        }
        let of = |list: &mut Vec<f64>| {
            list.sort_by(f64::total_cmp);
            list[list.len() / 2]
        };
        let (taken, copied) = (of(&mut taken), of(&mut copied));
        println!(
            "{name:<42} {:>8.1} µs, {:>6.1} GB/s; copy {:>8.1} µs, {:>5.1} GB/s; ratio {:.3}",
            1e6 * taken,
            1e-9 * total / taken,
            1e6 * copied,
            1e-9 * total / copied,
            taken / copied
        );
    }
    Ok(())
}

fn round() -> Result<()> {
    let mut guard = Guard::new(0);
    (0..128).for_each(|number| guard.feed(number, Fed::Content(u128::from(number))));
    for hosts in [64, 1024] {
        let said = || Statement::new(&Part::of(7, hosts), &guard).to_json();
        let one = median::seconds(9, cpu_clock::on_core, || (0..1000).for_each(|_| drop(black_box(said())))) / 1000.0;
        let all: Vec<String> =
            (0..hosts).map(|index| Statement::new(&Part::of(index, hosts), &guard).to_json()).collect();
        let compared = median::seconds(9, cpu_clock::on_core, || drop(black_box(compare(black_box(&all)))));
        println!(
            "{hosts} hosts: a statement of {} bytes {:.1} µs, the comparison of all {:.1} µs",
            all[0].len(),
            1e6 * one,
            1e6 * compared
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    if wanted::wanted("digest") {
        digest()?;
    }
    if wanted::wanted("round") {
        round()?;
    }
    Ok(())
}
