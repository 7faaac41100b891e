//! Blocks that come back as they were, and parcels that are damaged.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::element::{Array, Element};
use crate::wire::parcel::{Damaged, Packing, pack, unpack};
use crate::wire::parcel_fuzz::{comes_back, parcel};
use crate::wire::samples::{chunk, slots, trees};

const WAYS: [Packing; 2] = [Packing::Narrow, Packing::Lz4];

fn bytes_of<const N: usize>(integers: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    integers.into_iter().flatten().collect()
}

/// Packs a block, and returns how many times as long it is as its parcel.
fn ratio(block: &[u8], packing: Packing) -> f64 {
    comes_back(block, packing);
    pack(block, packing, usize::MAX).map_or(1.0, |parcel| block.len() as f64 / parcel.len() as f64)
}

/// Numbers that do not repeat.
fn noise(count: usize) -> impl Iterator<Item = u64> {
    (0..count as u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9))
}

#[test]
fn integers_take_as_many_bytes_as_their_values_need() {
    let ids: Vec<u64> = noise(1 << 17).map(|n| n >> 48).collect();
    let times = |integers: Vec<u8>| (ratio(&integers, Packing::Narrow) * 10.0).round() / 10.0;
    assert_eq!(times(bytes_of(ids.iter().map(|&id| (id as u32).to_le_bytes()))), 1.9, "ids below 65,536");
    assert_eq!(times(bytes_of(ids.iter().map(|id| id.to_le_bytes()))), 3.7, "the same of 8 bytes");
    assert_eq!(times(bytes_of(ids.iter().map(|id| (id & 0xff).to_le_bytes()))), 7.0, "below 256");
    assert_eq!(times(bytes_of(ids.iter().map(|&id| (id as i32 / 2 - 100).to_le_bytes()))), 1.9, "with a sign");
    assert_eq!(times(bytes_of(ids.iter().map(|id| (id << 16).to_le_bytes()))), 1.9, "below 2^32");
    assert_eq!(times(bytes_of((0..1 << 17).map(|n: u32| (n * 200).to_le_bytes()))), 3.7, "positions");
    assert_eq!(times(bytes_of((0..1 << 17).map(|n: u64| (n * 200 + (1 << 40)).to_le_bytes()))), 7.0, "far out");
    assert!(ratio(&[0; 1 << 20], Packing::Narrow) > 50.0, "zeros");
    let floats = bytes_of(noise(1 << 17).map(|n| (n as f32).to_le_bytes()));
    assert_eq!(pack(&floats, Packing::Narrow, usize::MAX), None, "floats stay as they are");
    assert_eq!(pack(&floats, Packing::Lz4, usize::MAX), None);
    assert!(ratio(&b"the same words again ".repeat(5000), Packing::Lz4) > 50.0);
}

#[test]
fn what_is_larger_than_it_may_be_is_left_as_it_lies() {
    let block = bytes_of(noise(10_000).map(|n| (n >> 48).to_le_bytes()));
    let parcel = pack(&block, Packing::Narrow, block.len()).unwrap();
    assert_eq!(pack(&block, Packing::Narrow, parcel.len()).as_ref(), Some(&parcel));
    assert_eq!(pack(&block, Packing::Narrow, parcel.len() - 1), None);
    assert_eq!(pack(&block, Packing::Plain, block.len()), None);
    assert_eq!(pack(&[], Packing::Lz4, 0), None);
}

#[test]
fn blocks_of_elements_come_back_bit_for_bit() {
    let (slots, trees) = (slots(), trees());
    for packing in WAYS {
        let (bytes, _) = chunk(1 << 20, |writer| {
            for n in 0..20 {
                let ids = Array::from_vec((0..900).map(|id| (id * 7 + n) % 50_000).collect::<Vec<i32>>());
                let row = Ok(Some(Element::new().with("ids", ids)));
                slots.iter().chain([&row]).for_each(|slot| writer.push(slot).expect("room for all"));
            }
        });
        assert!(ratio(&bytes, packing) > 1.2);
        let (bytes, _) = chunk(1 << 20, |writer| {
            trees.iter().for_each(|tree| writer.push(&Ok(Some(tree.clone()))).expect("room for all"));
        });
        comes_back(&bytes, packing);
    }
}

#[test]
fn damage_is_named() {
    let block = bytes_of(noise(100_000).map(|n| (n >> 48).to_le_bytes()));
    for packing in WAYS {
        let sound = pack(&block, packing, block.len()).unwrap();
        let unpacked = |parcel: &[u8]| unpack(parcel, &mut vec![0; block.len()]);
        let with = |at: usize, bytes: &[u8]| {
            let mut parcel = sound.clone();
            parcel[at..at + bytes.len()].copy_from_slice(bytes);
            unpacked(&parcel)
        };
        assert_eq!(unpacked(&sound), Ok(()));
        assert_eq!(unpacked(&[]), Err(Damaged::Cut));
        assert_eq!(unpacked(&sound[..sound.len() - 1]), Err(Damaged::Cut));
        assert_eq!(unpacked(&[&sound[..], &[0]].concat()), Err(Damaged::TooLong));
        assert_eq!(with(0, b"x"), Err(Damaged::Magic));
        assert_eq!(with(8, &u64::MAX.to_le_bytes()), Err(Damaged::Length(u64::MAX)));
        assert!(matches!(with(16, &[0xff; 4]), Err(Damaged::Section(u32::MAX, _))));
        assert!(matches!(with(20, &[0xff; 4]), Err(Damaged::Section(_, u32::MAX))));
        assert_eq!(unpack(&sound, &mut vec![0; block.len() - 8]), Err(Damaged::Length(block.len() as u64)));
    }
    let sound = pack(&block, Packing::Narrow, block.len()).unwrap();
    // Steps of bits that mean nothing, and integers of 4 bytes in 4 bytes.
    for kind in [1, 0x90, 0xff, 0x83] {
        let mut parcel = sound.clone();
        parcel[24] = kind;
        assert_eq!(unpack(&parcel, &mut vec![0; block.len()]), Err(Damaged::Width(kind)));
    }
}

#[test]
fn any_cut_is_an_error() {
    let block = bytes_of((0..700).map(|n: u32| (n % 77).to_le_bytes()));
    for packing in WAYS {
        let sound = pack(&block, packing, block.len()).unwrap();
        for len in 0..sound.len() {
            assert!(unpack(&sound[..len], &mut vec![0; block.len()]).is_err(), "{len} of {}", sound.len());
        }
    }
}

/// Runs of integers of one width, within so many bits of where they begin, some of them sorted; and any bytes between them.
fn blocks() -> impl Strategy<Value = Vec<u8>> {
    let run = (any::<bool>(), any::<bool>(), 0..64u32, any::<u64>(), vec(any::<u64>(), 0..700), 0..70usize);
    let run = run.prop_map(|(wide, sorted, bits, base, mut integers, between)| {
        integers.iter_mut().for_each(|integer| *integer &= (1 << bits) - 1);
        if sorted {
            integers.sort_unstable();
        }
        let bytes = integers.iter().map(|&integer| base.wrapping_add(integer).to_le_bytes());
        let bytes: Vec<u8> = bytes.flat_map(|bytes| bytes.into_iter().take(if wide { 8 } else { 4 })).collect();
        [bytes, (0..between as u8).collect()].concat()
    });
    vec(run, 0..12).prop_map(|runs| runs.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 60 } else { 600 }))]

    #[test]
    fn any_block_comes_back(block in blocks()) {
        WAYS.iter().for_each(|&packing| comes_back(&block, packing));
    }

    #[test]
    fn a_block_of_several_sections_comes_back(block in blocks(), times in 1..40usize) {
        WAYS.iter().for_each(|&packing| comes_back(&block.repeat(times), packing));
    }

    #[test]
    fn no_bytes_are_more_than_an_error(data in vec(any::<u8>(), 0..600)) {
        parcel(&data);
    }

    #[test]
    fn damage_is_survived(block in blocks(), hits in vec((any::<prop::sample::Index>(), any::<u8>()), 1..5)) {
        for packing in WAYS {
            let Some(mut parcel) = pack(&block, packing, block.len()) else { continue };
            for (at, byte) in &hits {
                let at = at.index(parcel.len());
                parcel[at] = *byte;
            }
            let _ = unpack(&parcel, &mut vec![0; block.len()]);
        }
    }
}
