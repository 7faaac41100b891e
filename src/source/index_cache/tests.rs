use std::sync::atomic::{AtomicUsize, Ordering};

use super::entry::Entry;
use super::folder::FolderIndex;
use super::single::decode;
use super::*;
use crate::source::index::LineIndex;

fn text(dir: &Path) -> (PathBuf, Vec<u8>) {
    let path = dir.join("t.jsonl");
    fs::write(&path, "one\n\ntwo\nthree").unwrap();
    let bytes = fs::read(&path).unwrap();
    (path, bytes)
}

fn is_right(starts: Starts, bytes: &[u8]) -> bool {
    let index = LineIndex(starts);
    index == LineIndex::build(bytes, index.0.facts.keep_blank) && index.line(2, bytes).unwrap().1 == b"three"
}

fn key(path: &Path, bytes: &[u8]) -> Key {
    let content = Content::from(Buffer::copy_from(bytes));
    Key::of(&path.into(), &content, &content.id(path), Records::Lines).unwrap()
}

fn lines(path: &Path, bytes: &[u8], cache: &IndexCache) -> Starts {
    let find = || Ok(LineIndex::build(bytes, false).0);
    single::load_or_find(cache.path_for(&path.into()), &key(path, bytes), find).unwrap()
}

#[test]
fn a_cached_index_equals_a_fresh_one_until_the_file_changes() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = text(dir.path());
    let beside = dir.path().join(".t.jsonl.gmi");
    let key = key(&path, &bytes);
    assert!(is_right(lines(&path, &bytes, &IndexCache::Beside), &bytes));
    let open = |key: &Key| decode(&Buffer::copy_from(&fs::read(&beside).unwrap()), key);
    assert!(is_right(open(&key).unwrap(), &bytes));
    assert!(is_right(lines(&path, &bytes, &IndexCache::Beside), &bytes));
    for other in [
        Key { records: Records::AllLines, ..key },
        Key { records: Records::Frames, ..key },
        Key { records: Records::Fields(b',', None), ..key },
        Key { size: 1, ..key },
        Key { changed: 1, ..key },
        Key { sample: 1, ..key },
    ] {
        assert!(open(&other).is_none());
    }
}

#[test]
fn a_damaged_cache_file_is_ignored_and_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = text(dir.path());
    let cache = IndexCache::Folder(dir.path().join("new/folder"));
    lines(&path, &bytes, &cache);
    let at = cache.path_for(&path.as_path().into()).unwrap();
    let good = fs::read(&at).unwrap();
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 0x40;
        assert!(decode(&Buffer::copy_from(&bad), &key(&path, &bytes)).is_none(), "byte {i}");
        assert!(decode(&Buffer::copy_from(&good[..i]), &key(&path, &bytes)).is_none(), "cut at {i}");
    }
    fs::write(&at, &good[..good.len() - 1]).unwrap();
    assert!(is_right(lines(&path, &bytes, &cache), &bytes));
    assert_eq!(fs::read(&at).unwrap(), good);
    assert_eq!(fs::read_dir(dir.path().join("new/folder")).unwrap().count(), 1);
}

/// The changed middle is not sampled, and size and modification time are preserved. Reads return whole lines or fail.
#[cfg(unix)]
#[test]
fn a_file_whose_time_was_set_back_is_searched_again() {
    use std::io::{Seek, SeekFrom};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    fs::write(&path, "0123456789abcde\n".repeat(1 << 20)).unwrap();
    let open = || crate::source::Lines::open(&path).unwrap();
    let read = |lines: &crate::source::Lines, index| crate::dataset::map::RandomAccess::read(lines, index);
    let (middle, before) = (1 << 19, open());
    assert!(dir.path().join(".a.txt.gmi").exists());
    let mut file = fs::File::options().write(true).open(&path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.seek(SeekFrom::Start(16 * middle + 20_000)).unwrap();
    file.write_all(b"01234567\n9abcdef").unwrap();
    file.set_modified(modified).unwrap();
    drop(file);
    // The source opened before the change reports that the index no longer fits.
    let text = read(&before, middle + 1250).unwrap_err().to_string();
    assert!(text.contains("a.txt: record 525538: the index is of another file, or the file was changed"), "{text}");
    let after = open();
    assert_eq!([1250, 1251].map(|line| read(&after, middle + line).unwrap()), ["01234567", "9abcdef0123456789abcde"]);
}

/// An index is copied to memory, so truncating its cache file does not affect open sources.
#[test]
fn a_cache_file_that_is_cut_while_it_is_in_use_stops_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    fs::write(&path, "0123456789abcde\n".repeat(1 << 20)).unwrap();
    drop(crate::source::Lines::open(&path).unwrap());
    let lines = crate::source::Lines::open(&path).unwrap();
    fs::File::options().write(true).open(dir.path().join(".a.txt.gmi")).unwrap().set_len(0).unwrap();
    assert_eq!(crate::dataset::map::RandomAccess::read(&lines, 900_000).unwrap(), "0123456789abcde");
}

#[test]
fn an_unwritable_place_means_no_cache() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = text(dir.path());
    let cache = IndexCache::Folder(path.join("below a file"));
    assert!(is_right(lines(&path, &bytes, &cache), &bytes));
    let small = small(dir.path(), 0..9);
    assert_eq!(opened(&small, &cache), opened(&small, &IndexCache::Off));
}

/// Writes a file of 1 MiB for each number. Line lengths differ between files.
fn small(dir: &Path, numbers: impl IntoIterator<Item = usize>) -> Vec<PathBuf> {
    let write = |i: usize| {
        let path = dir.join(format!("{i}.txt"));
        let line = format!("{}\n", "x".repeat(90_000 + 1000 * i));
        fs::write(&path, &line.repeat(12)[..1 << 20]).unwrap();
        path
    };
    numbers.into_iter().map(write).collect()
}

/// Opens files. Returns the number of searched files and the results.
fn opened_as(files: &[PathBuf], records: Records, cache: &IndexCache) -> (usize, (Vec<Starts>, Vec<String>)) {
    let open = |path: &PathBuf| {
        let file = Location::from(path);
        (file.clone(), Content::open(&file, Access::Normal).unwrap())
    };
    let (files, searched): (Contents, _) = (files.iter().map(open).collect(), AtomicUsize::new(0));
    let find = |at: usize| {
        searched.fetch_add(1, Ordering::Relaxed);
        Ok(LineIndex::build(files[at].1.here().unwrap(), records == Records::AllLines).0)
    };
    let (starts, ids) = load_or_find(&files, records, cache, find).unwrap();
    (searched.into_inner(), (starts, ids.iter().map(|id| format!("{id:?}")).collect()))
}

fn opened(files: &[PathBuf], cache: &IndexCache) -> (Vec<Starts>, Vec<String>) {
    opened_as(files, Records::Lines, cache).1
}

fn searched(files: &[PathBuf], cache: &IndexCache) -> usize {
    let (searched, found) = opened_as(files, Records::Lines, cache);
    assert_eq!(found, opened(files, &IndexCache::Off));
    searched
}

#[test]
fn small_files_of_a_folder_are_searched_once() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let files = small(dir.path(), 0..20);
    let beside = IndexCache::Beside;
    assert_eq!((searched(&files[..7], &beside), searched(&files, &beside), searched(&files, &beside)), (7, 20, 0));
    let hidden =
        |dir: &Path| fs::read_dir(dir).unwrap().flatten().filter(|e| file_name(&e.path()).starts_with('.')).count();
    assert_eq!((hidden(dir.path()), dir.path().join(".gmi").exists()), (1, true));
    // A subset in another order; then with files of another folder; then too few files to use the index.
    let mut some: Vec<PathBuf> = files[3..12].iter().rev().cloned().collect();
    assert_eq!(searched(&some, &beside), 0);
    some.extend(small(other.path(), 0..3));
    assert_eq!((searched(&some, &beside), searched(&files[..7], &beside)), (3, 7));
    assert_eq!(hidden(other.path()), 0);
    // The index of another kind of records has separate rows.
    let all_lines = || opened_as(&files, Records::AllLines, &beside).0;
    assert_eq!((all_lines(), all_lines(), searched(&files, &beside)), (20, 0, 0));
    let folder = IndexCache::Folder(other.path().join("indices"));
    assert_eq!((searched(&files, &folder), searched(&files, &folder)), (20, 0));
}

#[test]
fn of_files_that_change_only_those_are_searched() {
    let dir = tempfile::tempdir().unwrap();
    let (files, at) = (small(dir.path(), 0..20), dir.path().join(".gmi"));
    let searched = || searched(&files, &IndexCache::Beside);
    let written = || fs::read(&at).unwrap();
    assert_eq!(searched(), 20);
    let first = written();
    let change = |numbers: std::ops::Range<usize>| {
        for path in &files[numbers] {
            let mut text = fs::read(path).unwrap();
            text[100] = b'\n';
            fs::write(path, text).unwrap();
        }
    };
    // Searching this file is faster than writing an index.
    change(0..1);
    assert_eq!((searched(), searched(), written() == first), (1, 1, true));
    change(1..8);
    assert_eq!((searched(), searched()), (8, 0));
    assert!(written().len() > first.len());
}

/// Rows of other files in the folder are kept. Rows of deleted files are dropped.
#[test]
fn an_index_grows_with_what_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let files = small(dir.path(), 0..20);
    let searched = |files: &[PathBuf]| searched(files, &IndexCache::Beside);
    let rows =
        || FolderIndex::decode(Buffer::copy_from(&fs::read(dir.path().join(".gmi")).unwrap())).unwrap().all().len();
    assert_eq!((searched(&files[..10]), rows()), (10, 10));
    fs::remove_file(&files[0]).unwrap();
    assert_eq!((searched(&files[10..]), rows()), (10, 19));
    assert_eq!(searched(&files[1..]), 0);
}

#[test]
fn a_damaged_index_of_a_folder_is_ignored_and_written_again() {
    let dir = tempfile::tempdir().unwrap();
    let (files, at) = (small(dir.path(), 0..9), dir.path().join(".gmi"));
    let expected = opened(&files, &IndexCache::Beside).0;
    let good = fs::read(&at).unwrap();
    let right = |bytes: &[u8]| {
        let index = FolderIndex::decode(Buffer::copy_from(bytes))?;
        let all = index.all();
        assert!(all.iter().all(|starts| expected.contains(starts)));
        Some(all.len())
    };
    assert_eq!(right(&good), Some(9));
    for i in 0..good.len() {
        let mut bad = good.clone();
        bad[i] ^= 0x40;
        assert!(right(&bad).is_none_or(|right| right < 9), "byte {i}");
        assert!(right(&good[..i]).is_none_or(|right| right < 9), "cut at {i}");
    }
    for bad in [&good[..good.len() / 2], b"gmlines1", b""] {
        fs::write(&at, bad).unwrap();
        assert_eq!(searched(&files, &IndexCache::Beside), 9);
        assert_eq!(fs::read(&at).unwrap(), good);
    }
}

/// Rows with a correct hash and wrong claims cause no reads past the end of the file.
#[test]
fn rows_of_other_files_are_not_believed() {
    let path = Path::new("a");
    let starts = LineIndex::build(b"one\ntwo", false).0;
    let key = Key { records: Records::Lines, size: 7, changed: 1, sample: 2 };
    let entry = Entry::of(&key, &starts);
    let index = |entry: Entry, start: u64| {
        let row = [&7u64.to_le_bytes(), entry.to_bytes().as_slice(), &start.to_le_bytes()].concat();
        let header = [b"gmfiles1".as_slice(), &1u64.to_le_bytes(), &xxh3_64(&row).to_le_bytes()].concat();
        let file = [header, row, starts.parts().1.as_bytes().to_vec()].concat();
        FolderIndex::decode(Buffer::copy_from(&file)).unwrap().get(7, &key)
    };
    assert_eq!(index(entry, 104), Some(starts.clone()), "{path:?}");
    for start in [0, 100, 103, 105, 108, 112, u64::MAX, u64::MAX - 3] {
        assert_eq!(index(entry, start), None, "{start}");
    }
    for len in [1, 3, u64::MAX, 1 << 62] {
        assert_eq!(index(Entry { len, ..entry }, 104), None, "{len}");
    }
    for pages in [0, 2, u64::MAX] {
        assert_eq!(index(Entry { pages, ..entry }, 104), None, "{pages}");
    }
}

#[test]
fn finding_records_is_a_cause_of_start_up() {
    let bytes = b"1234567\n".repeat(1 << 20);
    let files = vec![("many.jsonl".into(), Content::from(Buffer::copy_from(&bytes)))];
    let from = std::time::Instant::now();
    let find = |_: usize| Ok(LineIndex::build(&bytes, false).0);
    load_or_find(&files, Records::Lines, &IndexCache::Off, find).unwrap();
    let made = crate::startup::made_between(from, std::time::Instant::now());
    assert!(made.iter().any(|(what, _)| *what == "an index built"), "{made:?}");
}
