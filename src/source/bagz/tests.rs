use proptest::prelude::*;

use super::*;

/// Returns a file with its limits at the tail, and the limits alone.
fn bag(records: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
    let mut end = 0u64;
    let limit = |record: &&[u8]| {
        end += record.len() as u64;
        end.to_le_bytes()
    };
    let limits: Vec<u8> = records.iter().flat_map(limit).collect();
    ([records.concat(), limits.clone()].concat(), limits)
}

fn all(source: &Bagz) -> Vec<Vec<u8>> {
    (0..source.len()).map(|i| source.read(i).unwrap().as_bytes().to_vec()).collect()
}

#[test]
fn a_name_that_says_the_wrong_thing_is_overruled() {
    let (plain, _) = bag(&[b"one", b"", b"three"]);
    let error = Bagz::options().open_bytes("a.bagz", &plain).unwrap().read(0).unwrap_err();
    assert!(error.help_text().unwrap().contains("open it with `compressed` false"), "{error}");
    let source = Bagz::options().compressed(false).open_bytes("a.bagz", &plain).unwrap();
    assert_eq!(all(&source), [b"one".as_slice(), b"", b"three"]);
    assert!(source.facts().identity.ends_with(", compressed=false"));
    let packed = zstd::bulk::compress(b"one", 1).unwrap();
    let (file, _) = bag(&[&packed]);
    assert_eq!(all(&Bagz::options().compressed(true).open_bytes("a.bag", &file).unwrap()), [b"one"]);
}

#[test]
fn files_follow_each_other_or_take_turns() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, records: &[&[u8]]| std::fs::write(dir.path().join(name), bag(records).0).unwrap();
    write("x-00000-of-00002.bag", &[b"zero", b"two"]);
    write("x-00001-of-00002.bag", &[b"one"]);
    for name in ["x@2.bag", "x@*.bag", "x-*.bag", ""] {
        let source = Bagz::open(dir.path().join(name)).unwrap();
        assert_eq!(all(&source), [b"zero".as_slice(), b"two", b"one"], "{name}");
    }
    let source = Bagz::options().interleaved(true).open(dir.path()).unwrap();
    assert_eq!(all(&source), [b"zero".as_slice(), b"one", b"two"]);
    assert!(source.read(3).is_err() && source.facts().identity.contains("interleaved"));
    write("y.bag", &[]);
    let error = Bagz::options().interleaved(true).open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("x-00000-of-00002.bag: 2 records, where one of 3 interleaved files of 3 has 1"), "{error}");
    let error = Bagz::open(dir.path().join("x@3.bag")).unwrap_err().to_string();
    assert!(error.contains("x-00000-of-00003.bag"), "{error}");
}

#[test]
fn limits_lie_in_the_file_or_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let records = [b"one".as_slice(), b"", b"three"];
    let (whole, limits) = bag(&records);
    std::fs::write(dir.path().join("a.bag"), &whole[..whole.len() - limits.len()]).unwrap();
    std::fs::write(dir.path().join("limits.a.bag"), &limits).unwrap();
    std::fs::write(dir.path().join("b.bag"), &whole).unwrap();
    let source = Bagz::open(dir.path()).unwrap();
    assert_eq!(all(&source), [records, records].concat());
    let error = Bagz::open(dir.path().join("limits.a.bag")).unwrap_err();
    assert!(error.to_string().contains("limits.a.bag: it holds where"), "{error}");
    assert!(error.help_text().unwrap().contains("without `limits.`"), "{error:?}");
    std::fs::write(dir.path().join("limits.a.bag"), &limits[1..]).unwrap();
    let error = Bagz::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("limits.a.bag: byte 16: 23 bytes are no whole number"), "{error}");
}

#[test]
fn a_file_of_no_known_ending_says_itself_whether_it_is_compressed() {
    let packed: Vec<Vec<u8>> = ["", "oat", "rye"]
        .map(|text| match text {
            "" => Vec::new(),
            text => zstd::bulk::compress(text.as_bytes(), 3).unwrap(),
        })
        .into();
    let (file, _) = bag(&packed.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for name in ["a", "a.bagz"] {
        let source = Bagz::options().open_bytes(name, &file).unwrap();
        assert_eq!(all(&source), [b"".as_slice(), b"oat", b"rye"], "{name}");
    }
    assert_eq!(all(&Bagz::options().open_bytes("a.bag", &file).unwrap()), packed);
    let (file, _) = bag(&[b"oat"]);
    assert_eq!(all(&Bagz::options().open_bytes("a", &file).unwrap()), [b"oat"]);
    let error = Bagz::options().open_bytes("a.bagz", &file).unwrap().read(0).unwrap_err().to_string();
    assert_eq!(error, "a.bagz: record 0: byte 0: no frame of zstd begins here");
}

#[test]
fn a_bad_limit_costs_two_records() {
    let (mut file, limits) = bag(&[b"one", b"two", b"six", b"ten"]);
    let start = file.len() - limits.len();
    file[start + 8..start + 16].copy_from_slice(&(1u64 << 63).to_le_bytes());
    let source = Bagz::options().open_bytes("a.bag", &file).unwrap();
    assert_eq!([0, 3].map(|i| source.read(i).unwrap()), [b"one", b"ten"].map(|b| Buffer::copy_from(b)));
    let error = source.read(1).unwrap_err().to_string();
    assert_eq!(error, "a.bag: record 1: byte 20: its limits are 3 and 9223372036854775808, in 12 bytes of records");
    assert!(source.read(2).unwrap_err().to_string().starts_with("a.bag: record 2: byte 28: "));
    // Limits that are damaged only in comparison to their neighbours.
    for (damaged, limit) in [(3, 1u64), (2, 16)] {
        let (mut file, limits) = bag(&[b"one", b"two", b"six", b"ten", b"fig", b"nut"]);
        let at = file.len() - limits.len() + damaged * 8;
        file[at..at + 8].copy_from_slice(&limit.to_le_bytes());
        let source = Bagz::options().open_bytes("a.bag", &file).unwrap();
        let bad: Vec<u64> = (0..6).filter(|&i| source.read(i).is_err()).collect();
        assert_eq!(bad, [damaged as u64, damaged as u64 + 1]);
    }
}

proptest! {
    #[test]
    fn any_damage_is_survived(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let (mut file, _) = bag(&[b"one", b"", b"three", b"four"]);
        let at = at.index(file.len());
        file[at] = byte;
        file.truncate(cut.index(file.len() + 1));
        if let Ok(source) = Bagz::options().open_bytes("a.bag", &file) {
            prop_assert!(source.len() <= file.len() as u64 / 8);
            (0..source.len()).for_each(|i| drop(source.read(i)));
        }
    }
}

#[cfg(feature = "http")]
#[test]
fn a_length_that_a_server_claims_is_refused() {
    crate::store::tests::is_refused_if_claimed("a.bagz", vec![0; 1 << 18], Bagz::open);
}

/// Limits in a file of their own.
#[cfg(all(feature = "http", feature = "formats"))]
#[test]
fn limits_lie_beside_objects() {
    let Some(fixtures) = crate::store::tests::Fixtures::find() else { return };
    for case in fixtures.cases("bagz") {
        let Some(limits) = case["limits_file"].as_str() else { continue };
        fixtures.put(&format!("bagz/{limits}"));
        let name = format!("bagz/{}", case["file"].as_str().unwrap());
        let far = Bagz::open(fixtures.put(&name)).unwrap();
        crate::store::tests::assert_same(&Bagz::open(fixtures.near(&name)).unwrap(), &far);
    }
}
