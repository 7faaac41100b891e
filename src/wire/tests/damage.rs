//! Tests that what is damaged is an error or something else, at no cost.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::fuzz::{survives, wire};
use super::super::samples::{chunk, extent, slots};
use super::super::{Cross, HEADER, ITEM, MAGIC, ROWS, VERSION, read};
use super::generate::any_slots;
use crate::element::{BufferMut, Element, Owner};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_an_error_or_another_chunk(
        all in any_slots(),
        hits in vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (mut bytes, _) = chunk(1 << 16, |writer| all.iter().for_each(|slot| writer.push(slot).unwrap()));
        for (index, byte, how) in hits {
            let at = index.index(bytes.len());
            // Words of the table are mostly small.
            let word = HEADER + (at / 8 * 8) % 512;
            match (how, bytes.get_mut(word..word + 8)) {
                (0, _) => bytes[at] = byte,
                (1, _) => bytes[at] ^= 1 << (byte % 8),
                (_, Some(word)) => word.copy_from_slice(&u64::from(byte >> (how * 2)).to_le_bytes()),
                _ => {}
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
            let len = (bytes.len() as u64).to_le_bytes();
            if let Some(word) = bytes.get_mut(16..24) {
                word.copy_from_slice(&len);
            }
        }
        survives(&bytes);
    }
}

#[test]
fn every_byte_may_be_wrong() {
    let (bytes, _) = chunk(1 << 16, |writer| slots().iter().for_each(|slot| writer.push(slot).unwrap()));
    for at in 0..bytes.len() {
        for wrong in [0, 1, 0x7f, 0xff, bytes[at].wrapping_add(1)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            survives(&bytes);
        }
    }
    for len in 0..bytes.len() {
        survives(&bytes[..len]);
        assert!(read::<Element>(&extent(&bytes), len).is_err());
    }
}

/// A chunk of these words and no payload.
fn words(slots: u64, words: &[u64]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER + 512];
    let header = [MAGIC, VERSION, bytes.len() as u64, slots, words.len() as u64];
    for (at, word) in header
        .iter()
        .enumerate()
        .map(|(i, w)| (8 * i, w))
        .chain(words.iter().enumerate().map(|(i, w)| (HEADER + 8 * i, w)))
    {
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[test]
fn a_chunk_that_promises_too_much_is_refused_before_anything_is_allocated() {
    let element = u64::from(ITEM) | u64::from(Element::KIND) << 32;
    let list = u64::from(ITEM) | u64::from(Vec::<u64>::KIND) << 32;
    let array = u64::from(1u8) | 12 << 8;
    let x = u64::from(b'x');
    let message = |slots, table: &[u64]| {
        let bytes = words(slots, table);
        let error = read::<Element>(&extent(&bytes), bytes.len())
            .err()
            .or_else(|| read::<Vec<u64>>(&extent(&bytes), bytes.len()).err());
        error.unwrap().to_string()
    };
    let start = "a damaged chunk from a worker: ";
    assert_eq!(
        message(1 << 40, &[0]),
        format!("byte 0: {start}1099511627776 values are announced, and there is room for 1")
    );
    assert!(message(1, &[element, 0, 1 << 50]).contains("1125899906842624 values are announced"));
    assert!(message(1, &[element, 0, 1, 4, 1, x, 1 << 50]).contains("1125899906842624 values are announced"));
    assert!(message(1, &[element, 0, 1, array | 2 << 32, 1, x, 1 << 40, 1 << 40]).contains("has no size"));
    assert!(message(1, &[element, 0, 1, array | 1 << 32, 1, x, 1 << 40, 0]).contains("8796093022208 bytes at 0"));
    assert!(message(1, &[element, 0, 1, array | 1 << 62, 1, x, 0, 0]).contains("values are announced"));
    assert!(message(1, &[element, 0, 1, 99, 1, x]).contains("there is no value of kind 0x63"));
    assert!(message(1, &[element, 1, 0]).contains("structure 1 comes up, and 0 are known"));
    assert!(message(1, &[element, 0, 2, 0, 1, x, 0, 1, x, 0, 0]).contains("two fields \"x\""));
    assert!(message(1, &[element, 0, 1, 0, 1, x, 7]).contains("a null is 7"));
    assert!(message(1, &[element, 0, 1, 0, 1, 0xff, 0]).contains("text: invalid utf-8"));
    assert!(message(1, &[element, 0, 1, 0, 1]).contains("the table ends before its last value"));
    assert!(message(1, &[0, 0]).contains("1 words after the last slot"));
    assert!(message(1, &[77]).contains("there is no slot of kind 0x4d"));
    assert!(message(1, &[list]).contains("an item of kind"));
    // Rows: of one structure, with a dimension, how many, and where.
    let rows = |kind: u64, dim: u64, count: u64, at: u64| {
        message(1, &[u64::from(ROWS) | u64::from(Element::KIND) << 32, 0, 1, kind, 1, x, dim, count, at])
    };
    let bytes = 1 | 1 << 8 | 1 << 32;
    assert!(rows(bytes, 16, 9, 64).contains("576 bytes at 64"), "{}", rows(bytes, 16, 9, 64));
    assert!(rows(bytes, 16, 8, 32).contains("512 bytes at 32, aligned to 64"));
    assert!(rows(bytes, 16, 1 << 60, 64).contains("rows of 64 bytes"));
    assert!(rows(bytes, 16, 0, 64).contains("0 rows"));
    assert!(rows(bytes, 1, 1, 1 << 40).contains("1 rows of 8 bytes at"));
    assert!(rows(array | 1 << 32, u64::MAX, 1, 64).contains("rows have no size"));
    assert!(rows(2, 16, 1, 64).contains("is no array"));
    // Trees of one structure in each other: each needs words of its own.
    let mut nested = vec![element, 0, 2, 5, 1, x, 5, 1, u64::from(b'y')];
    nested.extend([0; 50]);
    assert!(message(1, &nested).contains("values are announced"), "{}", message(1, &nested));
}

#[test]
fn text_that_many_share_is_copied_once() {
    let shared: Vec<String> = vec!["0123456789".repeat(40); 20];
    let (mut bytes, written) = chunk(1 << 16, |writer| writer.push(&Ok(Some(shared))).unwrap());
    assert!(read::<Vec<String>>(&extent(&bytes), written.used).is_ok());
    // All offsets are made the first.
    let first = bytes[HEADER + 24..HEADER + 32].to_vec();
    for i in 1..20 {
        bytes[HEADER + 24 + 16 * i..][..8].copy_from_slice(&first);
    }
    assert!(read::<Vec<String>>(&extent(&bytes), written.used).is_ok(), "so much may be copied from anywhere");
    let texts = 20u64.to_le_bytes();
    assert_eq!(bytes[HEADER + 8..HEADER + 16], texts);
    let longer: Vec<u64> = (0..20).flat_map(|_| [8000, 576]).collect();
    let item = u64::from(ITEM) | u64::from(Vec::<String>::KIND) << 32;
    let table: Vec<u64> = [item, 20].into_iter().chain(longer).collect();
    let mut bytes = words(1, &table);
    bytes.resize(16_000, b'a');
    bytes[16..24].copy_from_slice(&16_000u64.to_le_bytes());
    let error = read::<Vec<String>>(&extent(&bytes), 16_000).unwrap_err();
    assert!(error.message().ends_with("8000 bytes at 576, again"), "{error}");
}

#[test]
fn an_extent_that_is_shorter_or_crooked_is_refused() {
    let (bytes, written) = chunk(1 << 12, |writer| writer.push(&Ok(Some(1i64))).unwrap());
    assert_eq!((written.indices, written.used), (1, HEADER + 512));
    let owner = extent(&bytes);
    assert!(
        read::<i64>(&owner, written.used + 1).unwrap_err().message().contains("577 bytes are used of an extent of 576")
    );
    assert!(read::<i64>(&owner, 63).unwrap_err().message().contains("63 bytes are used and the header has 64"));
    struct Crooked(BufferMut);
    impl Owner for Crooked {
        fn bytes(&self) -> &[u8] {
            &self.0.as_bytes()[8..]
        }
    }
    let mut memory = BufferMut::zeroed(8 + bytes.len());
    memory.as_mut_bytes()[8..].copy_from_slice(&bytes);
    let crooked: Arc<dyn Owner> = Arc::new(Crooked(memory));
    assert!(read::<i64>(&crooked, written.used).unwrap_err().message().contains("multiple of 64"));
}

#[test]
fn the_fuzzer_finds_its_way_in() {
    for first in 0..3u8 {
        for seed in 0..200u8 {
            let bytes: Vec<u8> = (0..seed).map(|i| i.wrapping_mul(seed) >> (i % 7)).collect();
            wire(&[&[first], bytes.as_slice()].concat());
        }
    }
}

#[test]
fn rows_that_others_have_too_are_refused() {
    let element = |x: i64| Ok(Some(Element::new().with("x", crate::element::Array::from_vec(vec![x; 64]))));
    let (mut bytes, written) = chunk(1 << 14, |writer| {
        (0..10).for_each(|x| writer.push(&element(x)).unwrap());
        writer.push::<Element>(&Ok(None)).unwrap();
        (0..10).for_each(|x| writer.push(&element(x)).unwrap());
    });
    let runs = |bytes: &[u8]| read::<Element>(&extent(bytes), written.used).map(|slots| slots.len());
    assert_eq!(runs(&bytes).unwrap(), 21);
    // Both runs say that they are all that there is.
    let count = |bytes: &[u8]| {
        (0..64).map(|word| HEADER + 8 * word).filter(|at| bytes[*at..at + 8] == 10u64.to_le_bytes()).collect::<Vec<_>>()
    };
    let places = count(&bytes);
    assert_eq!(places.len(), 2);
    let start = bytes[places[0] + 8..places[0] + 16].to_vec();
    bytes[places[1] + 8..places[1] + 16].copy_from_slice(&start);
    assert_eq!(runs(&bytes).unwrap(), 21);
    for at in &places {
        bytes[*at..at + 8].copy_from_slice(&14u64.to_le_bytes());
    }
    assert!(runs(&bytes).unwrap_err().message().contains("again"));
}
