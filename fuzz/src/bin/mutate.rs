//! `mutate TARGET SECONDS [SEED-FILE …]`: runs a target on mutations of seed files, in a deterministic sequence.
//!
//! It is the fallback if libFuzzer cannot be built, and is not guided by coverage. A failing input is written to the
//! current folder, and `mutate TARGET 0 FILE` repeats it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next() % n as u64) as usize }
    }
}

/// Integers at which arithmetic overflows.
const EDGES: [u64; 10] = [0, 1, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX];

fn mutate(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len().max(1));
    match random.below(8) {
        _ if bytes.is_empty() => bytes.extend_from_slice(other),
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = random.next() as u8,
        2 => bytes.truncate(at),
        3 => bytes.insert(at, random.next() as u8),
        4 => drop(bytes.drain(at..(at + 1 + random.below(16)).min(bytes.len()))),
        5 => {
            let (edge, width) = (EDGES[random.below(EDGES.len())], 1 << random.below(4));
            let end = (at + width).min(bytes.len());
            bytes[at..end].copy_from_slice(&edge.to_le_bytes()[..end - at]);
        }
        6 => {
            let from = random.below(other.len());
            let part = &other[from..(from + 1 + random.below(64)).min(other.len())];
            bytes.splice(at..at, part.iter().copied());
        }
        _ => {
            let end = (at + 1 + random.below(32)).min(bytes.len());
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, seconds, files @ ..] = args.as_slice() else {
        eprintln!("mutate TARGET SECONDS [SEED-FILE …]");
        std::process::exit(2);
    };
    let seconds: u64 = seconds.parse().expect("a number of seconds");
    let mut seeds: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("a readable file")).collect();
    seeds.push(b"{\"text\": \"a\\n\\u00e9\", \"n\": [1, 2.5e3, null]}".to_vec());
    seeds.iter().for_each(|seed| gristmill::fuzzing::run(name, seed));
    let (start, mut random, mut runs) = (Instant::now(), Random(0x9e37_79b9_7f4a_7c15), 0u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        let other = seeds[random.below(seeds.len())].clone();
        for _ in 0..1 + random.below(4) {
            mutate(&mut bytes, &other, &mut random);
        }
        if catch_unwind(AssertUnwindSafe(|| gristmill::fuzzing::run(name, &bytes))).is_err() {
            let file = format!("crash-{name}-{runs}");
            std::fs::write(&file, &bytes).expect("a writable folder");
            eprintln!("{name}: found {file}");
            std::process::exit(1);
        }
        runs += 1;
    }
    println!("{name}: {runs} runs, nothing found");
}
