//! Parcels of arbitrary bytes, for `fuzz/` and the tests of damage.

use super::parcel::{Packing, pack, unpack};

/// Uses arbitrary bytes as a block, as a parcel, or as damage to a valid parcel.
///
/// # Panics
/// If unpacking does not restore a block.
pub(crate) fn parcel(data: &[u8]) {
    let Some((first, data)) = data.split_first() else { return };
    let packing = if first & 4 == 0 { Packing::Narrow } else { Packing::Lz4 };
    match first % 4 {
        0 => comes_back(data, packing),
        1 => comes_back(&widened(data), packing),
        2 => {
            // A block of the announced length, up to a limit.
            let len = data.get(8..16).and_then(|len| len.try_into().ok()).map_or(0, u64::from_le_bytes);
            let _ = unpack(data, &mut vec![0; len.min(1 << 20) as usize]);
        }
        _ => {
            let block = widened(data);
            let Some(mut parcel) = pack(&block, packing, block.len()) else { return };
            for hit in data.as_chunks::<4>().0 {
                let at = usize::from(u16::from_le_bytes([hit[0], hit[1]])) % parcel.len();
                parcel[at] ^= hit[2];
            }
            let _ = unpack(&parcel, &mut vec![0; block.len()]);
        }
    }
}

/// Returns the bytes as integers of 4 and 8 bytes, some of which are running sums.
fn widened(data: &[u8]) -> Vec<u8> {
    let short = data.iter().flat_map(|&byte| u32::from(byte).to_le_bytes());
    let sums = data.iter().scan(0u64, |sum, &byte| {
        *sum += u64::from(byte);
        Some(sum.to_le_bytes())
    });
    short.chain(sums.flatten()).chain(data.iter().copied()).collect()
}

/// Packs a block and checks that unpacking restores it.
pub(super) fn comes_back(block: &[u8], packing: Packing) {
    if let Some(parcel) = pack(block, packing, usize::MAX) {
        assert!(parcel.len() < block.len(), "{} bytes of {}", parcel.len(), block.len());
        let mut again = vec![0xa5; block.len()];
        unpack(&parcel, &mut again).expect("a block that was just packed");
        assert!(again == block, "a block of {} bytes came back as another", block.len());
    }
}
