use proptest::prelude::*;

use super::*;
use crate::dataset::map::RandomAccess;

/// Writes the sequences [1, 2], [], [3], [4, 5, 6]. The last two form a document.
fn written() -> (Vec<u8>, Vec<u8>) {
    let mut writer = MegatronWriter::options().several_sequences(true).write_to(Vec::new(), Vec::new()).unwrap();
    for (ids, ends) in [(vec![1u16, 2], true), (vec![], true), (vec![3], false), (vec![4, 5, 6], false)] {
        writer.write(&Element::new().with("tokens", Array::from_vec(ids))).unwrap();
        if ends {
            writer.end_document();
        }
    }
    writer.finish().unwrap()
}

/// Writes the sequences with a legacy index: with documents, like Megatron-LM, or without documents, like fairseq.
fn legacy(documents: bool) -> (Vec<u8>, Vec<u8>) {
    let mut index = LEGACY.to_vec();
    let mut numbers = vec![1u64, 8, 2, 4, 4];
    if documents {
        numbers.push(4);
    }
    numbers.extend([0, 1, 2, 3, 4].iter().chain(&[0, 2, 2, 3, 6]).chain(&[2, 0, 1, 3]));
    if documents {
        numbers.extend([0, 1, 2, 4]);
    }
    numbers.iter().for_each(|number| index.extend_from_slice(&number.to_le_bytes()));
    (written().0, index)
}

const LEGACY: &[u8] = b"TNTIDX\0\0";

fn ids(unit: MegatronUnit, (data, index): &(Vec<u8>, Vec<u8>)) -> Vec<Vec<u16>> {
    let source = Megatron::options().unit(unit).open_bytes(index, data).unwrap();
    let read = |i| source.read(i).unwrap().array("tokens").unwrap().as_slice::<u16>().unwrap().to_vec();
    (0..source.len()).map(read).collect()
}

#[test]
fn all_kinds_of_index_give_the_same() {
    for files in [written(), legacy(true)] {
        assert_eq!(ids(MegatronUnit::Sequence, &files), [vec![1, 2], vec![], vec![3], vec![4, 5, 6]]);
        assert_eq!(ids(MegatronUnit::Document, &files), [vec![1, 2], vec![], vec![3, 4, 5, 6]]);
    }
    assert_eq!(ids(MegatronUnit::Document, &legacy(false)), ids(MegatronUnit::Sequence, &written()));
}

#[test]
fn rows_without_elements_are_the_ids() {
    for files in [written(), legacy(true), legacy(false)] {
        for unit in [MegatronUnit::Sequence, MegatronUnit::Document] {
            let source = Megatron::options().unit(unit).open_bytes(&files.1, &files.0).unwrap();
            let rows = source.read_ragged(&[2, 0, 1], &["tokens".into()]).unwrap();
            let column = &rows.columns()[0];
            let expected = ids(unit, &files);
            for (row, at) in [2, 0, 1].into_iter().enumerate() {
                assert_eq!(column.cells(row), bytemuck::cast_slice::<u16, u8>(&expected[at]), "{unit:?}");
            }
            assert!(column.lens().eq([2, 0, 1].map(|at: usize| expected[at].len())));
            assert!(source.read_ragged(&[0, 9], &["tokens".into()]).is_none(), "no such row");
            assert!(source.read_ragged(&[0], &["mode".into()]).is_none());
        }
    }
}

#[test]
fn a_dataset_has_several_names_and_its_ids_are_cropped() {
    use crate::MapDatasetExt;
    use crate::source::{TokenLayout, Tokens};
    let dir = tempfile::tempdir().unwrap();
    let (data, index) = written();
    std::fs::write(dir.path().join("a.v1.bin"), data).unwrap();
    std::fs::write(dir.path().join("a.v1.idx"), index).unwrap();
    for name in ["a.v1", "a.v1.bin", "a.v1.idx", ""] {
        let path = dir.path().join(name);
        assert_eq!(Megatron::open(&path).unwrap().len(), 4, "{name}");
        let crops = Tokens::open(&path, TokenLayout::Detect).unwrap().crops(3).collect().unwrap();
        assert_eq!(crops[1].array("tokens").unwrap().as_slice::<i32>().unwrap(), [4, 5, 6], "{name}");
    }
    std::fs::remove_file(dir.path().join("a.v1.bin")).unwrap();
    let error = Megatron::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("a.v1.bin"), "{error}");
}

#[test]
fn modes_are_of_sequences() {
    let mut writer =
        MegatronWriter::options().dtype(DType::I32).several_sequences(true).write_to(vec![], vec![]).unwrap();
    let element = |ids: &[u16]| Element::new().with("tokens", Array::from_vec(ids.to_vec()));
    for mode in [0i8, -1] {
        writer.write(&element(&[7]).with("mode", Array::scalar(mode))).unwrap();
    }
    assert!(writer.write(&element(&[8])).unwrap_err().to_string().contains("record 2: all sequences have a mode"));
    let (data, index) = writer.finish().unwrap();
    let read = |unit| Megatron::options().unit(unit).open_bytes(&index, &data).unwrap();
    let second = read(MegatronUnit::Sequence).read(1).unwrap();
    assert_eq!((second.array("mode").unwrap().as_i64(), second.array("mode").unwrap().shape()), (Some(-1), &[][..]));
    let document = read(MegatronUnit::Document).read(0).unwrap();
    assert_eq!(document.array("mode").unwrap().as_slice::<i8>().unwrap(), [0, -1]);
    assert_eq!(document.array("tokens").unwrap().as_slice::<i32>().unwrap(), [7, 7]);
}

#[test]
fn ids_that_do_not_fit_are_refused() {
    let write = |dtype, ids: Vec<i64>| {
        let mut writer = MegatronWriter::options().dtype(dtype).write_to(vec![], vec![])?;
        writer.write(&Element::new().with("tokens", Array::from_vec(ids)))?;
        writer.finish()
    };
    assert_eq!(write(DType::U16, vec![1, 65535]).unwrap().0, [1, 0, 255, 255]);
    let error = write(DType::U16, vec![1, 65536]).unwrap_err();
    assert_eq!(error.to_string(), "record 0: id 65536 at 1 does not fit uint16");
    assert_eq!(write(DType::BF16, vec![]).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn sequences_in_another_order_are_joined_and_may_not_overlap() {
    let (data, mut index) = written();
    // The positions follow a header of 34 bytes and four lengths. The position of the third sequence becomes 0.
    let at = 34 + 16 + 16;
    index[at..at + 8].copy_from_slice(&0u64.to_le_bytes());
    let files = (data, index);
    assert_eq!(ids(MegatronUnit::Document, &files)[2], [1, 4, 5, 6]);
    let mut again = files.1.clone();
    again[34 + 8..34 + 12].copy_from_slice(&6i32.to_le_bytes());
    let source = Megatron::options().unit(MegatronUnit::Document).open_bytes(&again, &files.0).unwrap();
    let error = source.read(2).unwrap_err().to_string();
    assert_eq!(error, "a.idx: record 2: its sequences overlap: they have 18 bytes together");
}

#[test]
fn damage_costs_its_record() {
    let (data, index) = written();
    let source = Megatron::options().open_bytes(&index, &data[..10]).unwrap();
    let error = source.read(3).unwrap_err().to_string();
    assert_eq!(error, "a.idx: record 3: bytes 6 to 12 of a.bin, which has 10");
    assert!(source.read(2).is_ok());
}

use crate::error::ErrorKind;

proptest! {
    #[test]
    fn what_is_written_is_read(sequences in prop::collection::vec(prop::collection::vec(any::<i32>(), 0..20), 0..20)) {
        let mut writer = MegatronWriter::options().write_to(Vec::new(), Vec::new()).unwrap();
        for ids in &sequences {
            writer.write(&Element::new().with("tokens", Array::from_vec(ids.clone()))).unwrap();
        }
        let (data, index) = writer.finish().unwrap();
        for unit in [MegatronUnit::Sequence, MegatronUnit::Document] {
            let source = Megatron::options().unit(unit).open_bytes(&index, &data).unwrap();
            prop_assert_eq!(source.len(), sequences.len() as u64);
            for (i, ids) in sequences.iter().enumerate() {
                let read = source.read(i as u64).unwrap();
                prop_assert_eq!(read.array("tokens").unwrap().as_slice::<i32>().unwrap(), ids.as_slice());
            }
        }
    }

    #[test]
    fn any_damage_is_survived(old in any::<bool>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in 0usize..30) {
        let (data, mut index) = if old { legacy(true) } else { written() };
        let at = at.index(index.len());
        index[at] = byte;
        index.truncate(index.len().saturating_sub(cut));
        for unit in [MegatronUnit::Sequence, MegatronUnit::Document] {
            if let Ok(source) = Megatron::options().unit(unit).open_bytes(&index, &data) {
                (0..source.len().min(100)).for_each(|i| drop(source.read(i)));
            }
        }
    }
}

/// An index and the data beside it, named by either.
#[cfg(all(feature = "http", feature = "formats"))]
#[test]
fn pairs_of_objects_are_pairs_of_files() {
    let Some(fixtures) = crate::store::tests::Fixtures::find() else { return };
    for case in fixtures.cases("megatron") {
        let [name, data] = ["file", "bin"].map(|key| format!("megatron/{}", case[key].as_str().unwrap()));
        for url in [fixtures.put(&name), fixtures.put(&data)] {
            let far = Megatron::open(&url).unwrap();
            crate::store::tests::assert_same(&Megatron::open(fixtures.near(&name)).unwrap(), &far);
        }
    }
}
