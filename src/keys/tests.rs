//! What a key file keeps: the keys, through stops at any byte; and what damage is: an error, never another key.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::error::{ErrorKind, Result};

const REMEDY: &str = "make it again with `gristmill index --keys`";

/// Keys of a prefix, made up from a seed: stretches of one kind, so that every way to write a group occurs.
struct Prefix {
    head: KeyHead,
    seed: u64,
}

impl Prefix {
    fn new(seed: u64, columns: usize, len: u64) -> Self {
        let head = KeyHead::new("6c3bd1b5f6a0a5f8", len).stages(["range(n)"]).sources(["one"]);
        Self { head: head.columns((0..columns).map(|at| format!("column{at}"))), seed }
    }

    fn random(&self, at: u64) -> u64 {
        let mut z = (self.seed ^ at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 27)
    }

    fn key(&self, slot: u64) -> (Key, Vec<u32>) {
        let drawn = self.random(slot);
        let key = match self.random(!(slot / 300)) % 6 {
            0 | 1 => Key::Elements(1),
            2 => Key::Elements(u32::from(drawn % 10 < 7)),
            3 if drawn.is_multiple_of(50) => Key::Bad,
            3 => Key::Elements(1),
            4 => Key::Elements((drawn % 5) as u32),
            _ => Key::Elements(0),
        };
        let wide = |at: u64| match self.random(!(slot / 200)) % 4 {
            0 => 4096,
            1 if self.random(at).is_multiple_of(100) => u32::MAX,
            _ => 1 + self.random(at) as u32 % 900,
        };
        let lens = u64::from(key.elements()) * self.head.columns.len() as u64;
        (key, (0..lens).map(|at| wide(slot << 8 | at)).collect())
    }

    /// The keys of a block of the file.
    fn block(&self, number: u64) -> KeyBlock {
        let mut block = KeyBlock::new(self.head.columns.len());
        let first = number * BLOCK as u64;
        for slot in first..first + slots_of(number, self.head.len) as u64 {
            match self.key(slot) {
                (Key::Bad, _) => block.push_bad(),
                (Key::Elements(elements), lens) => block.push(elements, &lens).unwrap(),
            }
        }
        block
    }

    /// Writes at most so many blocks, from where a writer is.
    fn push(&self, writer: &mut KeyWriter, most: usize) {
        for _ in 0..most {
            if writer.slots_wanted() > 0 {
                writer.push_block(&self.block(writer.next_slot() / BLOCK as u64)).unwrap();
            }
        }
    }

    fn write(&self, path: &Path) {
        let mut writer = KeyWriter::create(path, self.head.clone()).unwrap();
        self.push(&mut writer, 100);
        writer.finish().unwrap();
    }

    fn bytes(&self) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        self.write(&dir.path().join("a.gmk"));
        std::fs::read(dir.path().join("a.gmk")).unwrap()
    }

    /// Reads all of a file in every way, and says how many keys could not be read. What is read must be right.
    fn lost(&self, file: &KeyFile) -> u64 {
        let (mut lost, mut lens) = (0, Vec::new());
        for number in 0..file.blocks() {
            let slots: Vec<u64> =
                (0..slots_of(number, self.head.len) as u64).map(|slot| number * BLOCK as u64 + slot).collect();
            let mut gathered = KeyBlock::new(self.head.columns.len());
            let backwards: Vec<u64> = slots.iter().rev().copied().collect();
            let gathering = file.gather(&backwards, &mut gathered);
            match file.block(number) {
                Ok(block) => {
                    gathering.unwrap();
                    assert_eq!(*block, self.block(number));
                    assert!(gathered.iter().eq(block.iter().collect::<Vec<_>>().into_iter().rev()));
                    for (&slot, (key, of_block)) in slots.iter().zip(block.iter()) {
                        assert_eq!(file.key(slot, &mut lens).unwrap(), key, "slot {slot}");
                        assert_eq!(lens, of_block, "slot {slot}");
                    }
                }
                Err(error) => {
                    assert_is_damage(&error);
                    assert!(error.byte_offset().is_some() && gathering.is_err() && gathered.is_empty(), "{error}");
                    assert!(slots.iter().step_by(1000).all(|&slot| file.key(slot, &mut lens).is_err()));
                    lost += slots.len() as u64;
                }
            }
        }
        lost
    }
}

fn assert_is_damage(error: &crate::Error) {
    assert!(matches!(error.kind(), ErrorKind::Data | ErrorKind::Unsupported), "{error:?}");
    assert_eq!((error.help_text(), error.file()), (Some(REMEDY), Some(Path::new("x.gmk"))), "{error:?}");
}

fn opened(bytes: &[u8]) -> Result<KeyFile> {
    KeyFile::of_bytes(bytes.to_vec(), Sums::Checked)
}

/// The folder of a test, and the key file in it.
fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.gmk");
    (dir, path)
}

fn names(dir: &tempfile::TempDir) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn files_of_any_length_hold_their_keys() {
    let (dir, path) = place();
    let block = BLOCK as u64;
    for (at, len) in [0, 1, 127, 128, 129, block - 1, block, block + 1, 2 * block + 300].into_iter().enumerate() {
        let prefix = Prefix::new(len, at % 4, len);
        prefix.write(&path);
        assert_eq!(names(&dir), ["a.gmk"]);
        let file = KeyFile::open(&path).unwrap();
        assert_eq!((file.len(), file.is_empty(), file.head()), (len, len == 0, &prefix.head));
        assert_eq!(prefix.lost(&file), 0);
        let elements: Vec<u64> = (0..file.blocks()).map(|number| prefix.block(number).elements()).collect();
        for number in 0..=elements.len() {
            assert_eq!(file.elements_before(number as u64), elements[..number].iter().sum::<u64>());
        }
        assert_eq!(file.elements(), elements.iter().sum::<u64>());
        assert_eq!(
            file.key(len, &mut Vec::new()).unwrap_err().message(),
            format!("there is no key {len}, there are {len}")
        );
        assert!(file.block(file.blocks()).is_err());
    }
}

#[test]
fn two_files_have_one_id_if_they_hold_the_same() {
    let id = |prefix: Prefix| opened(&prefix.bytes()).unwrap().id();
    assert_eq!(id(Prefix::new(1, 1, 500)), id(Prefix::new(1, 1, 500)));
    assert_ne!(id(Prefix::new(1, 1, 500)), id(Prefix::new(2, 1, 500)));
    let mut other = Prefix::new(1, 1, 500);
    other.head.fingerprint = "0".into();
    assert_ne!(id(Prefix::new(1, 1, 500)), id(other));
}

#[test]
fn a_flipped_bit_anywhere_is_found() {
    let prefix = Prefix::new(7, 2, 700);
    let good = prefix.bytes();
    assert_eq!(prefix.lost(&opened(&good).unwrap()), 0);
    for bit in 0..8 * good.len() {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        match opened(&bad) {
            Err(error) => assert_is_damage(&error),
            Ok(file) => assert_eq!(prefix.lost(&file), 700, "bit {bit} was not found"),
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_found() {
    let good = Prefix::new(7, 1, 700).bytes();
    for end in 0..good.len() {
        assert_is_damage(&opened(&good[..end]).expect_err("a part was opened as the whole"));
    }
    let longer = [&good[..], b"x"].concat();
    assert_is_damage(&opened(&longer).expect_err("more than the whole was opened"));
    let (_dir, path) = place();
    let error = KeyFile::open(&path).unwrap_err();
    assert_eq!((error.kind(), error.help_text()), (ErrorKind::Io, Some(REMEDY)));
}

/// Shows that it is not the hash alone that keeps readers from other memory.
#[test]
fn what_hashes_would_find_is_survived_without_them() {
    let prefix = Prefix::new(9, 2, 600);
    let good = prefix.bytes();
    let mut lens = Vec::new();
    for at in 0..good.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] = value;
            let Ok(file) = KeyFile::of_bytes(bad, Sums::Ignored) else { continue };
            (0..file.len().min(600)).step_by(7).for_each(|slot| drop(file.key(slot, &mut lens)));
            (file.elements() < 1 << 20).then(|| file.block(0));
        }
    }
}

#[test]
fn a_block_of_another_place_is_refused_even_without_hashes() {
    let good = Prefix::new(9, 2, 600).bytes();
    let begin = KeyHead::decode(&good, Sums::Checked).unwrap().2;
    // Its number, the elements before it, its bytes, slots and elements stand behind its hash.
    for at in 8..36 {
        let mut bad = good.clone();
        bad[begin + at] ^= 1;
        let error = KeyFile::of_bytes(bad, Sums::Ignored).unwrap().block(0).unwrap_err();
        assert_eq!(error.message(), "block 0 differs from its entry in the index", "byte {at}");
    }
}

#[test]
fn keys_behind_the_last_are_an_error() {
    let file = KeyFile::of_bytes(Prefix::new(9, 2, 600).bytes(), Sums::Checked).unwrap();
    // Many in a row are read together.
    for slots in [vec![600], (580..601).collect(), (600..630).collect(), vec![u64::MAX]] {
        let error = file.gather(&slots, &mut KeyBlock::new(2)).unwrap_err();
        assert!(
            error.message().starts_with("there is no key ") && error.message().ends_with("there are 600"),
            "{error}"
        );
    }
    file.gather(&(580..600).collect::<Vec<_>>(), &mut KeyBlock::new(2)).unwrap();
}

#[test]
fn blocks_of_another_file_are_not_taken_for_ours() {
    let (mut one, mut other) = (Prefix::new(3, 1, 400), Prefix::new(3, 1, 400));
    one.head.sources = vec!["one.jsonl".into()];
    other.head.sources = vec!["two.jsonl".into()];
    let (mut bytes, other) = (one.bytes(), other.bytes());
    let end = KeyHead::decode(&bytes, Sums::Checked).unwrap().2;
    assert_eq!(bytes.len(), other.len());
    bytes[end..].copy_from_slice(&other[end..]);
    assert!(opened(&bytes).unwrap_err().message().starts_with("the hash of the index is 0x"));
}

#[test]
fn many_threads_read_one_file() {
    let prefix = Prefix::new(5, 1, 2 * BLOCK as u64 + 77);
    let file = opened(&prefix.bytes()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (file, prefix) = (&file, &prefix);
            scope.spawn(move || {
                let mut lens = Vec::new();
                for at in 0..5000 {
                    let slot = prefix.random(at * 4 + thread) % file.len();
                    let key = file.key(slot, &mut lens).unwrap();
                    assert_eq!((key, lens.clone()), prefix.key(slot));
                    if at % 1000 == thread {
                        assert_eq!(
                            file.block(slot / BLOCK as u64).unwrap().len(),
                            slots_of(slot / BLOCK as u64, file.len())
                        );
                    }
                }
            });
        }
    });
    assert!(std::sync::Arc::ptr_eq(&file.block(1).unwrap(), &file.block(1).unwrap()));
}

#[test]
fn a_writer_takes_the_blocks_that_are_wanted() {
    let (dir, path) = place();
    let prefix = Prefix::new(4, 1, BLOCK as u64 + 5);
    let mut writer = KeyWriter::create(&path, prefix.head.clone()).unwrap();
    assert_eq!((writer.next_slot(), writer.slots_wanted()), (0, BLOCK));
    let error = writer.push_block(&KeyBlock::new(1)).unwrap_err();
    let expected = "a block of 0 keys and 1 columns, and the next one has 65536 keys and 1 columns";
    assert_eq!((error.kind(), error.message()), (ErrorKind::Config, expected));
    prefix.push(&mut writer, 1);
    assert!(writer.push_block(&Prefix::new(4, 2, BLOCK as u64 + 5).block(1)).is_err());
    assert_eq!((writer.next_slot(), writer.slots_wanted()), (BLOCK as u64, 5));
    assert_eq!(writer.finish().unwrap_err().message(), "only 65536 of 65541 keys are written");
    assert_eq!(names(&dir), ["a.gmk.part"]);
    let mut writer = KeyWriter::resume(&path, prefix.head.clone()).unwrap();
    prefix.push(&mut writer, 1);
    assert_eq!((writer.next_slot(), writer.slots_wanted()), (BLOCK as u64 + 5, 0));
    assert!(writer.push_block(&KeyBlock::new(1)).is_err());
    writer.finish().unwrap();
    assert_eq!(prefix.lost(&KeyFile::open(&path).unwrap()), 0);
}

#[test]
fn a_part_file_of_other_keys_is_not_continued() {
    let (_dir, path) = place();
    let prefix = Prefix::new(4, 1, 300);
    let mut writer = KeyWriter::create(&path, prefix.head.clone()).unwrap();
    prefix.push(&mut writer, 1);
    drop(writer);
    let other = prefix.head.clone().sources(["another"]);
    let error = KeyWriter::resume(&path, other.clone()).unwrap_err();
    let expected =
        "the part file belongs to other keys: the keys are of another prefix: source 0 was one and is another";
    assert_eq!((error.kind(), error.message()), (ErrorKind::State, expected));
    assert_eq!(KeyWriter::resume(&path, prefix.head.clone()).unwrap().next_slot(), 300);
    assert_eq!(KeyWriter::create(&path, other).unwrap().next_slot(), 0);
    assert!(KeyWriter::create(&path, prefix.head.columns(["a", "a"])).is_err());
}

#[cfg(unix)]
#[test]
fn one_writer_at_a_time_has_a_file() {
    let (_dir, path) = place();
    let prefix = Prefix::new(4, 0, 10);
    let mut writer = KeyWriter::create(&path, prefix.head.clone()).unwrap();
    for second in [KeyWriter::create(&path, prefix.head.clone()), KeyWriter::resume(&path, prefix.head.clone())] {
        let error = second.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Config, "another process writes this key file"));
    }
    prefix.push(&mut writer, 1);
    writer.finish().unwrap();
    // A reader keeps what it has open.
    let file = KeyFile::open(&path).unwrap();
    Prefix::new(5, 0, 20).write(&path);
    assert_eq!((prefix.lost(&file), KeyFile::open(&path).unwrap().len()), (0, 20));
}

/// Whoever may write in a folder may put a link there.
#[cfg(unix)]
#[test]
fn keys_are_written_through_no_link() {
    let (dir, path) = place();
    let precious = dir.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    std::os::unix::fs::symlink(&precious, path.with_file_name("a.gmk.part")).unwrap();
    let head = || Prefix::new(1, 0, 1).head;
    for error in [KeyWriter::create(&path, head()).unwrap_err(), KeyWriter::resume(&path, head()).unwrap_err()] {
        assert!(error.kind() == ErrorKind::Config && error.message().contains("it is a link"), "{error}");
    }
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// The law of writers: however often one is stopped, and wherever what it wrote last is torn, the file is that of a writer that ran through.
    #[test]
    fn a_file_is_the_same_wherever_its_writer_was_stopped(
        seed in any::<u64>(),
        columns in 0..3usize,
        len in prop_oneof![Just(0), Just(1), Just(1 << 16), Just((2 << 16) + 1), 1u64..4 << 16],
        stops in prop::collection::vec((0..3usize, prop::option::of(0.0..1.0f64), any::<bool>()), 0..5),
    ) {
        let (dir, path) = place();
        let prefix = Prefix::new(seed, columns, len);
        let whole = prefix.bytes();
        let part = path.with_file_name("a.gmk.part");
        for (blocks, cut, flipped) in stops {
            let mut writer = KeyWriter::resume(&path, prefix.head.clone()).unwrap();
            prefix.push(&mut writer, blocks);
            let next = writer.next_slot();
            drop(writer);
            let mut bytes = std::fs::read(&part).unwrap();
            prop_assert!(whole.starts_with(&bytes));
            if let Some(cut) = cut {
                let at = (cut * bytes.len() as f64) as usize;
                bytes.truncate(at);
                // Pages of a file come to the disk in any order.
                if flipped {
                    bytes.extend(whole[at..].iter().map(|byte| byte ^ 1).take(5000));
                }
                std::fs::write(&part, &bytes).unwrap();
            } else {
                prop_assert_eq!(KeyWriter::resume(&path, prefix.head.clone()).unwrap().next_slot(), next);
            }
        }
        let mut writer = KeyWriter::resume(&path, prefix.head.clone()).unwrap();
        prefix.push(&mut writer, 100);
        writer.finish().unwrap();
        prop_assert_eq!(names(&dir), ["a.gmk"]);
        prop_assert!(std::fs::read(&path).unwrap() == whole);
        prop_assert_eq!(prefix.lost(&KeyFile::open(&path).unwrap()), 0);
    }

    #[test]
    fn a_flipped_bit_costs_its_block_and_changes_no_key(seed in any::<u64>(), place in 0.0..1.0f64, bit in 0..8) {
        let prefix = Prefix::new(seed, 1, BLOCK as u64 + 700);
        let mut bytes = prefix.bytes();
        let at = (place * bytes.len() as f64) as usize;
        bytes[at] ^= 1u8 << bit;
        match opened(&bytes) {
            Err(error) => assert_is_damage(&error),
            Ok(file) => prop_assert!([700, BLOCK as u64].contains(&prefix.lost(&file))),
        }
    }
}
