//! Elements of a lane, and the states behind some of them.

use super::super::fuzz::survives;
use super::super::samples::{chunk, extent, slots};
use super::super::{ChunkWriter, Crossing, LaneEnd, LaneSlots, read_lane};
use crate::element::Element;
use crate::error::{Error, Result};

type Slot = (Result<Element>, Option<String>);

/// Elements and errors; behind some there is a state.
fn lane() -> Vec<Slot> {
    let mark = |n: usize| (n % 3 == 1).then(|| format!("{{\"dataset\": {n}, \"state\": \"{}\"}}", "ä".repeat(n)));
    slots().into_iter().filter_map(Result::transpose).enumerate().map(|(n, slot)| (slot, mark(n))).collect()
}

fn push(writer: &mut ChunkWriter<'_>, (slot, mark): &Slot) -> std::result::Result<(), usize> {
    writer.push_lane(slot, mark.as_deref(), Crossing::OF).unwrap().map_err(|full| full.need)
}

fn written(end: Option<Option<&Error>>) -> Vec<u8> {
    let (bytes, counts) = chunk(1 << 16, |writer| {
        lane().iter().for_each(|slot| push(writer, slot).unwrap());
        if let Some(failure) = end {
            writer.push_end(failure).unwrap();
        }
    });
    assert_eq!(counts.indices, lane().len() as u64);
    bytes
}

fn lane_of(bytes: &[u8]) -> LaneSlots<Element> {
    read_lane(&extent(bytes), bytes.len(), Crossing::OF).unwrap()
}

#[test]
fn what_is_written_is_read() {
    let failure = Error::data("no more").path("a").help("look there");
    for end in [None, Some(None), Some(Some(&failure))] {
        let read = lane_of(&written(end));
        assert_eq!(format!("{:?}", read.slots), format!("{:?}", lane()));
        match (end, read.end) {
            (None, LaneEnd::Open) | (Some(None), LaneEnd::Ended) => {}
            (Some(Some(_)), LaneEnd::Failed(error)) => assert_eq!(format!("{error:?}"), format!("{failure:?}")),
            (end, read) => panic!("{read:?} was {end:?}"),
        }
    }
}

#[test]
fn a_slot_and_its_state_are_both_there_or_neither() {
    let all = lane();
    for room in (64..8000).step_by(24) {
        let mut bytes = vec![0; room];
        let mut writer = ChunkWriter::new(&mut bytes);
        let full = all.iter().enumerate().find_map(|(n, slot)| Some((n, push(&mut writer, slot).err()?)));
        let used = writer.finish().used;
        let read = lane_of(&bytes[..used]).slots;
        let (len, need) = full.unwrap_or((all.len(), 0));
        assert_eq!(format!("{read:?}"), format!("{:?}", &all[..len]));
        if let Some(next) = all.get(len) {
            let (_, counts) = chunk(need, |writer| push(writer, next).unwrap());
            assert_eq!(counts.used, need, "it needs no more and no less");
        }
    }
}

#[test]
fn damage_is_an_error_or_another_lane() {
    let bytes = written(Some(Some(&Error::data("no more"))));
    for at in 0..bytes.len() {
        for wrong in [0, 0xff, bytes[at].wrapping_add(1)] {
            let mut bytes = bytes.clone();
            bytes[at] = wrong;
            survives(&bytes);
        }
    }
    // Nothing can stand behind the end.
    let (twice, _) = chunk(1 << 12, |writer| {
        writer.push_end(None).unwrap();
        writer.push_end(None).unwrap();
    });
    let error = read_lane::<Element>(&extent(&twice), twice.len(), Crossing::OF).err().unwrap();
    assert!(error.to_string().contains("after the end of a lane"), "{error}");
    let (other, _) = chunk(1 << 12, |writer| writer.push_lane(&Ok(7i64), None, Crossing::OF).unwrap().unwrap());
    assert!(read_lane::<Element>(&extent(&other), other.len(), Crossing::OF).is_err());
}
