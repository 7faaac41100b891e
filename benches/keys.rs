//! Key files: cost of a key to write and to read, in order and in random order, and the size of the files.
//!
//! `cargo bench -p benches --bench keys [-- NAME …]`
//! - `sizes` prints bytes per element, equal on every machine.
//! - `order` writes and reads a file of 4 Mi keys with one column, block by block, beside copying 4 Mi numbers of 4
//!   bytes.
//! - `shuffled` writes a file of 10^8 keys (200 MB) and measures the time to open it. It reads 4 Mi of its keys in
//!   shuffled order, singly and gathered, beside 4 Mi look-ups in a `Vec<u32>` of all lengths (400 MB).
//!
//! Lengths are log-normal with mean 600 and sigma 1. Rates are of CPU time: medians of nine rounds.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use gristmill::Result;
use gristmill::keys::{BLOCK, KeyBlock, KeyFile, KeyHead, KeyWriter};

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/median.rs"]
mod median;
#[path = "support/random.rs"]
mod random;
#[path = "support/wanted.rs"]
mod wanted;

/// Keys read per round.
const KEYS: usize = 4 << 20;
/// Keys of the large file.
const MANY: u64 = 100_000_000;

fn head(len: u64) -> KeyHead {
    KeyHead::new("0123456789abcdef", len).columns(["tokens"])
}

/// Returns the lengths of 2^20 texts. The benches repeat them.
fn texts() -> Vec<u32> {
    let mut random = random::Random(7);
    let mut length = || (600f64.ln() - 0.5 + random.normal()).exp().clamp(1.0, 1e6) as u32;
    (0..1 << 20).map(|_| length()).collect()
}

/// Writes the keys of `len` slots. `key` returns the number of elements of a slot and their length.
fn write(path: &Path, len: u64, key: impl Fn(u64) -> (u32, u32)) -> Result<()> {
    let mut writer = KeyWriter::create(path, head(len))?;
    let (mut block, mut lens) = (KeyBlock::new(1), Vec::new());
    while writer.slots_wanted() > 0 {
        block.clear();
        let first = writer.next_slot();
        for slot in first..first + writer.slots_wanted() as u64 {
            let (elements, length) = key(slot);
            lens.clear();
            lens.resize(elements as usize, length);
            block.push(elements, &lens)?;
        }
        writer.push_block(&block)?;
    }
    writer.finish()
}

fn sizes(folder: &Path) -> Result<()> {
    let path = folder.join("sizes.gmk");
    let texts = texts();
    let text = |slot: u64| texts[slot as usize % texts.len()];
    let size = |what: &str, key: &dyn Fn(u64) -> (u32, u32)| -> Result<()> {
        write(&path, KEYS as u64, key)?;
        let (bytes, elements) = (std::fs::metadata(&path)?.len(), KeyFile::open(&path)?.elements());
        println!("{what:<44} {:.3} bytes an element", bytes as f64 / elements as f64);
        Ok(())
    };
    size("log-normal lengths", &|slot| (1, text(slot)))?;
    size("log-normal lengths, one of a million 2^31", &|slot| {
        (1, if slot % 1_000_000 == 5 { 1 << 31 } else { text(slot) })
    })?;
    size("log-normal lengths, a third dropped", &|slot| {
        (u32::from(slot.wrapping_mul(0x9e37_79b9) % 97 % 3 > 0), text(slot))
    })?;
    size("lengths that are all equal", &|_| (1, 4096))?;
    size("four elements of equal length each", &|_| (4, 2048))
}

/// Prints a rate.
fn rate(what: &str, keys: usize, work: impl FnMut()) {
    let seconds = median::seconds(9, cpu_clock::on_core, work);
    println!("{what:<44} {:.1} M keys/s", keys as f64 / seconds / 1e6);
}

fn order(folder: &Path) -> Result<()> {
    let path = folder.join("order.gmk");
    let texts = texts();
    let blocks: Vec<KeyBlock> = (0..KEYS / BLOCK)
        .map(|number| {
            let mut block = KeyBlock::new(1);
            (0..BLOCK).try_for_each(|at| block.push(1, &[texts[(number * BLOCK + at) % texts.len()]]))?;
            Ok(block)
        })
        .collect::<Result<_>>()?;
    rate("written", KEYS, || {
        let written = KeyWriter::create(&path, head(KEYS as u64)).and_then(|mut writer| {
            blocks.iter().try_for_each(|block| writer.push_block(block))?;
            writer.finish()
        });
        written.expect("room for a file");
    });
    let file = KeyFile::open(&path)?;
    let read = |number| file.block(number).expect("a block that was written");
    rate("read in order", KEYS, || (0..file.blocks()).for_each(|number| drop(black_box(read(number)))));
    rate("read in order, and every key looked at", KEYS, || {
        let of_block = |number| read(number).iter().map(|(_, lens)| u64::from(lens[0])).sum::<u64>();
        black_box((0..file.blocks()).map(of_block).sum::<u64>());
    });
    let (all, mut copy) = (vec![7u32; KEYS], vec![0u32; KEYS]);
    rate("copying as many numbers of 4 bytes", KEYS, || black_box(&mut copy).copy_from_slice(black_box(&all)));
    Ok(())
}

fn shuffled(folder: &Path) -> Result<()> {
    let path = folder.join("shuffled.gmk");
    let texts = texts();
    let begun = Instant::now();
    write(&path, MANY, |slot| (1, texts[slot as usize % texts.len()]))?;
    let bytes = std::fs::metadata(&path)?.len();
    println!("10^8 keys made and written in {:.1} s, {} MB", begun.elapsed().as_secs_f64(), bytes / 1_000_000);

    let open = || drop(black_box(KeyFile::open(&path).expect("a file that was written")));
    println!(
        "10^8 keys, opened                            {:.3} ms",
        1e3 * median::seconds(99, || begun.elapsed(), open)
    );

    let file = KeyFile::open(&path)?;
    let mut random = random::Random(1);
    let slots: Vec<u64> = (0..KEYS).map(|_| random.next() % MANY).collect();
    let mut lens = Vec::new();
    // The unmeasured first round verifies the blocks.
    rate("read in shuffled order, one by one", KEYS, || {
        let mut sum = 0;
        for &slot in &slots {
            file.key(slot, &mut lens).expect("a key that was written");
            sum += u64::from(lens[0]);
        }
        black_box(sum);
    });
    let mut gathered = KeyBlock::new(1);
    rate("read in shuffled order, gathered", KEYS, || {
        let mut sum = 0;
        for slots in slots.chunks(1024) {
            gathered.clear();
            file.gather(slots, &mut gathered).expect("keys that were written");
            sum += gathered.iter().map(|(_, lens)| u64::from(lens[0])).sum::<u64>();
        }
        black_box(sum);
    });
    let all: Vec<u32> = (0..MANY).map(|slot| texts[slot as usize % texts.len()]).collect();
    rate("looked up in a Vec<u32>", KEYS, || {
        black_box(slots.iter().map(|&slot| u64::from(all[slot as usize])).sum::<u64>());
    });
    Ok(())
}

/// Name and function of a part of the bench.
type Part = (&'static str, fn(&Path) -> Result<()>);

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("gristmill-bench-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let parts: [Part; 3] = [("sizes", sizes), ("order", order), ("shuffled", shuffled)];
    let run = parts.iter().filter(|(name, _)| wanted::wanted(name)).try_for_each(|(_, part)| part(&folder));
    std::fs::remove_dir_all(&folder)?;
    run
}
