//! Blocks packed for a link between hosts: rates of packing and unpacking, and the packed size.
//!
//! `cargo bench -p benches --bench parcel [-- NAME …]`. Blocks have 8 MiB. `tokens` are ids of 4 bytes below 65,536
//! with their positions; half of the ids are drawn from a few frequent ids, as in text. `images` are floats of 4 bytes,
//! scaled from integers of one byte. `text` is words. Each block is packed in both ways, beside copying it. Rates are
//! block bytes per CPU second: medians of nine rounds.

use std::hint::black_box;

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/median.rs"]
mod median;
// Included by path: the module is private and does not use the rest of the crate.
#[path = "../src/wire/parcel/mod.rs"]
mod parcel;
#[path = "support/random.rs"]
mod random;
#[path = "support/wanted.rs"]
mod wanted;

use parcel::{Packing, pack, unpack};

const BLOCK: usize = 8 << 20;

/// Returns rows of 2048 ids and 2048 positions.
fn tokens() -> Vec<u8> {
    let mut random = random::Random(3);
    let mut id = || {
        let rank = random.normal().abs() * 8000.0;
        if random.next().is_multiple_of(2) { (rank / 40.0) as u32 } else { (rank as u32).min(65_535) }
    };
    let row = |_| (0..2048).map(|_| id()).chain(0..2048).collect::<Vec<u32>>();
    (0..BLOCK / (4 * 4096)).flat_map(row).flat_map(u32::to_le_bytes).collect()
}

/// Returns pixels of three channels that differ little from their neighbours.
fn images() -> Vec<u8> {
    let mut random = random::Random(5);
    let mut pixel = |n: usize| {
        let smooth = 128.0 + 90.0 * (n as f64 / 700.0).sin();
        let byte = (smooth + 12.0 * random.normal()).clamp(0.0, 255.0).round();
        ((byte / 255.0 - 0.45) / 0.22) as f32
    };
    (0..BLOCK / 4).map(&mut pixel).flat_map(f32::to_le_bytes).collect()
}

/// Returns words from a vocabulary of a few thousand, some of them frequent.
fn text() -> Vec<u8> {
    let mut random = random::Random(7);
    let words: Vec<String> = (0..4000)
        .map(|_| (0..2 + random.next() % 9).map(|_| char::from(b'a' + (random.next() % 26) as u8)).collect())
        .collect();
    let mut text = String::with_capacity(BLOCK + 16);
    while text.len() < BLOCK {
        text.push_str(&words[(random.normal().abs() * 800.0) as usize % words.len()]);
        text.push(' ');
    }
    text.truncate(BLOCK);
    text.into_bytes()
}

/// Returns block bytes per second.
fn rate(work: impl FnMut()) -> f64 {
    BLOCK as f64 / median::seconds(9, cpu_clock::on_core, work)
}

fn measure(what: &str, block: &[u8]) {
    let mut copy = vec![0; BLOCK];
    let copied = rate(|| black_box(&mut copy).copy_from_slice(black_box(block)));
    println!("{what}: copied at {:.2} GB/s", copied / 1e9);
    for (name, packing) in [("narrowed", Packing::Narrow), ("narrowed, LZ4", Packing::Lz4)] {
        let packed = rate(|| drop(black_box(pack(black_box(block), packing, BLOCK))));
        let Some(parcel) = pack(block, packing, BLOCK) else {
            println!("  {name:<16} stays as it is, which is found at {:.2} GB/s", packed / 1e9);
            continue;
        };
        let unpacked = rate(|| unpack(black_box(&parcel), &mut copy).expect("a block that was just packed"));
        assert!(copy == block, "{what}, {name}: another block came back");
        println!(
            "  {name:<16} {:.2} × smaller, packed at {:.2} GB/s ({:.0} % of copying), unpacked at {:.2} GB/s ({:.0} %)",
            BLOCK as f64 / parcel.len() as f64,
            packed / 1e9,
            100.0 * packed / copied,
            unpacked / 1e9,
            100.0 * unpacked / copied,
        );
    }
}

/// Name of a part of the bench, and the function that makes its block.
type Part = (&'static str, fn() -> Vec<u8>);

fn main() {
    let parts: [Part; 3] = [("tokens", tokens), ("images", images), ("text", text)];
    for (name, block) in parts.iter().filter(|(name, _)| wanted::wanted(name)) {
        measure(name, &block());
    }
}
