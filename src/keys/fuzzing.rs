//! Fuzz target for key files in memory.

use super::block::KeyBlock;
use super::file::KeyFile;
use super::{BLOCK, Sums, encoded};

/// Maximum number of blocks read per file, and of slots read individually per block.
const READ: u64 = 1000;
/// Maximum number of elements per block. Small files can claim a huge number of elements, which would allocate memory.
const ELEMENTS: u64 = 1 << 20;

/// Reads a key file from arbitrary bytes, and checks that all ways to read a block return equal keys.
///
/// The whole block, its single slots, its slots gathered in reverse and its re-encoding must agree. Hashes are not checked, since damage
/// would never get past them.
pub(crate) fn keys(data: &[u8]) {
    let Ok(file) = KeyFile::of_bytes(data.to_vec(), Sums::Ignored) else { return };
    for number in 0..file.blocks().min(READ) {
        if file.elements_before(number + 1) - file.elements_before(number) > ELEMENTS {
            continue;
        }
        let Ok(block) = file.block(number) else { continue };
        let slots: Vec<u64> = (0..(block.len() as u64).min(READ)).map(|slot| number * BLOCK as u64 + slot).collect();
        let mut lens = Vec::new();
        let mut expected = Vec::new();
        for (&slot, (key, of_block)) in slots.iter().zip(block.iter()) {
            assert_eq!(file.key(slot, &mut lens).expect("a key of a valid block"), key);
            assert_eq!(lens, of_block);
            expected.push((key, of_block));
        }
        let backwards: Vec<u64> = slots.iter().rev().copied().collect();
        let mut gathered = KeyBlock::new(block.columns());
        file.gather(&backwards, &mut gathered).expect("keys of a block that was read");
        assert!(gathered.iter().eq(expected.into_iter().rev()));

        let mut bytes = Vec::new();
        let head = encoded::encode(&block, number, 0, 0, &mut bytes).expect("a block that was read");
        let again = encoded::Encoded {
            bytes: &bytes,
            columns: block.columns(),
            slots: block.len(),
            elements: head.elements as usize,
        };
        let mut decoded = KeyBlock::new(block.columns());
        assert!(again.is_whole() && again.decode(&mut decoded).is_some() && decoded == *block);
    }
}
