//! Files written by other libraries, and damaged copies of them: each must read as its manifest says.
//!
//! The folder is `GRISTMILL_FIXTURES`, by default `../shared/fixtures` beside the crate; its README describes the manifests.

#[cfg(feature = "array_record")]
mod array_record;
#[cfg(feature = "arrow")]
mod arrow;
#[cfg(all(feature = "tf_record", feature = "compress"))]
mod examples;
#[cfg(feature = "mds")]
mod mds;
#[cfg(feature = "parquet")]
mod parquet;
mod values;
#[cfg(feature = "webdataset")]
mod webdataset;

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use gristmill::dataset::map::RandomAccess;
use gristmill::source::{Jsonl, Lines, Npy, TokenLayout, TokenType, Tokens};
use gristmill::{Array, ErrorKind, Result};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use self::values::{assert_array, assert_equal};

/// Counts the bytes that are allocated.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "an allocator is unsafe to write; this one hands everything on to the system's")]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promise is the one that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What reading a file gave: every record as bytes, for the formats whose manifest hashes them.
#[derive(Debug, Default)]
struct Read {
    records: Vec<Vec<u8>>,
}

fn folder(format: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/fixtures");
    let root = std::env::var_os("GRISTMILL_FIXTURES").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let folder = root.join(format);
    if !folder.is_dir() {
        println!("skipped: no fixtures in {}; set GRISTMILL_FIXTURES", folder.display());
        return None;
    }
    Some(folder)
}

fn cases(folder: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(folder.join("manifest.json")).unwrap();
    let manifest: Json = serde_json::from_str(&text).unwrap();
    let cases = manifest["cases"].as_array().unwrap().clone();
    // A folder has no hash of its own.
    for case in cases.iter().filter(|case| !case["file_sha256"].is_null()) {
        let bytes = std::fs::read(folder.join(case["file"].as_str().unwrap())).unwrap();
        assert_eq!(hex(&Sha256::digest(&bytes)), case["file_sha256"], "{} is not the manifest's file", case["file"]);
    }
    cases
}

/// The valid cases of a format, and their paths.
#[cfg(any(feature = "mds", feature = "tf_record"))]
fn valid(format: &str) -> Vec<(PathBuf, Json)> {
    let Some(folder) = folder(format) else { return Vec::new() };
    let valid = cases(&folder).into_iter().filter(|case| case["kind"] == "valid");
    valid.map(|case| (folder.join(case["file"].as_str().unwrap()), case)).collect()
}

/// The case of which a damaged one was made.
fn origin(folder: &Path, case: &Json) -> Json {
    let made_of = |other: &Json| other["file"] == case["derived_from"];
    cases(folder).into_iter().find(made_of).unwrap_or_else(|| panic!("{}: made of no case", case["file"]))
}

/// The folder of the format that the file of a case is in.
fn folder_of<'a>(path: &'a Path, case: &Json) -> &'a Path {
    let depth = Path::new(case["file"].as_str().unwrap()).components().count();
    path.ancestors().nth(depth).unwrap()
}

#[cfg(any(feature = "mds", feature = "tf_record"))]
fn records(case: &Json) -> u64 {
    case["num_records"].as_u64().unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Reads every case with `read`, which asserts what a whole file must be, and checks the outcome against `expect`.
fn check_all(format: &str, read: impl Fn(&Path, &Json) -> Result<Read>) {
    let Some(folder) = folder(format) else { return };
    let cases = cases(&folder);
    assert!(!cases.is_empty(), "no cases of {format}");
    for case in &cases {
        check(&folder, case, &read);
    }
}

fn check(folder: &Path, case: &Json, read: &impl Fn(&Path, &Json) -> Result<Read>) {
    let (file, expect) = (case["file"].as_str().unwrap(), case["expect"].as_str().unwrap());
    let path = folder.join(file);
    // One file at a time: their bytes would be counted together.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = (ALLOCATED.load(Relaxed), bytes_read());
    let outcome = catch_unwind(AssertUnwindSafe(|| read(&path, case))).unwrap_or_else(|_| panic!("{file}: panicked"));
    let (allocated, bytes_read) = (ALLOCATED.load(Relaxed) - before.0, bytes_read() - before.1);
    let file_bytes = case["file_bytes"].as_u64().unwrap_or(0) as usize;
    // In all, so memory that is taken again and again counts, too. The most are 13 MiB and 0.7 MiB.
    let most = (file_bytes + (64 << 20), 16 * file_bytes + (1 << 20));
    assert!(allocated <= most.0, "{file}: {allocated} bytes were allocated, and {} are allowed", most.0);
    assert!(bytes_read <= most.1, "{file}: {bytes_read} bytes were read, and {} are allowed", most.1);
    match (&outcome, expect) {
        (Ok(_), "read_ok" | "read_ok_or_error" | "ok_or_error" | "read_ok_or_unsupported") => {}
        (Err(_), "ok_or_error" | "read_ok_or_error") => named(file, case, &outcome),
        (Err(_), "error") => named(file, case, &outcome),
        (Err(e), "read_ok_or_unsupported") if e.kind() == ErrorKind::Unsupported => {}
        _ => panic!("{file}: expected {expect}, got {outcome:?}"),
    }
}

/// Bytes that this process has read so far; 0 if the system does not count them.
fn bytes_read() -> usize {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap_or(0)
}

/// An error names the file, and the byte, line, record or row group.
fn named(file: &str, case: &Json, outcome: &Result<Read>) {
    let text = outcome.as_ref().unwrap_err().to_string();
    println!("{text}");
    // Of a folder, what is damaged may be any of its files.
    let file = case["dataset_dir"].as_str().unwrap_or(file);
    assert!(text.contains(file), "{text}: does not name {file}");
    let places = ["byte ", "line ", "record ", "row group "];
    assert!(places.iter().any(|place| text.contains(place)), "{file}: {text}: names no place");
    if let Some(line) = case["line"].as_u64() {
        assert!(text.contains(&format!("line {line}: ")), "{file}: {text}: not line {line}");
    }
    if let Some(group) = case["row_group"].as_u64() {
        assert!(text.contains(&format!("row group {group}")), "{file}: {text}: not row group {group}");
    }
}

/// The records of a valid file, by count and by hash.
fn assert_records(read: &Read, case: &Json) {
    let Some(count) = case["num_records"].as_u64() else { return };
    assert_eq!(read.records.len() as u64, count, "{}", case["file"]);
    let mut all = Sha256::new();
    for (i, record) in read.records.iter().enumerate() {
        all.update((record.len() as u64).to_le_bytes());
        all.update(record);
        if let Some(hash) = case["records_sha256"].get(i) {
            assert_eq!(hex(&Sha256::digest(record)), *hash, "{} record {i}", case["file"]);
        }
    }
    if let Some(hash) = case["concat_sha256"].as_str() {
        assert_eq!(hex(&all.finalize()), hash, "{}", case["file"]);
    }
}

/// The rows of a valid file are those of the file beside it.
#[cfg(feature = "columns")]
fn assert_rows(rows: &[gristmill::Element], path: &Path, case: &Json) {
    let what = case["file"].as_str().unwrap();
    assert_eq!(rows.len() as u64, case["num_records"].as_u64().unwrap(), "{what}");
    let expected = path.with_file_name(case["expected_rows"].as_str().unwrap());
    let expected = std::fs::read_to_string(expected).unwrap();
    assert_eq!(expected.lines().count(), rows.len(), "{what}");
    for (i, (row, line)) in rows.iter().zip(expected.lines()).enumerate() {
        let want: Json = serde_json::from_str(line).unwrap();
        assert_equal(&row.clone().into(), &want, &format!("{what} row {i}"));
    }
}

/// The good records before a damage must come out.
fn assert_good(good: u64, case: &Json) {
    if let Some(want) = case["good_records"].as_u64() {
        assert_eq!(good, want, "{}: good records before the damage", case["file"]);
    }
}

#[test]
fn jsonl_lines() {
    check_all("jsonl", |path, case| {
        // Lines need not be JSON: what is only wrong as JSON reads.
        let mut read = Read::default();
        if is_compressed(path) {
            #[cfg(feature = "compress")]
            {
                use gristmill::IterDatasetExt;
                let lines = gristmill::source::StreamOptions::new().lines(path)?.collect()?;
                read.records = lines.into_iter().map(String::into_bytes).collect();
            }
        } else {
            let lines = Lines::open(path)?;
            for i in 0..lines.len() {
                match lines.read(i) {
                    Ok(line) => read.records.push(line.into_bytes()),
                    Err(error) => {
                        assert_good(i, case);
                        return Err(error);
                    }
                }
            }
            if case["kind"] == "damaged" {
                // The lines are right, and the damage is one of JSON.
                return Jsonl::open(path)
                    .and_then(|source| (0..source.len()).try_for_each(|i| source.read(i).map(drop)))
                    .map(|()| read);
            }
        }
        assert_records(&read, case);
        Ok(read)
    });
}

fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ["gz", "zst", "lz4", "zlib", "tgz"].iter().any(|known| ext == *known))
}

#[test]
fn jsonl_records() {
    let Some(folder) = folder("jsonl") else { return };
    for case in cases(&folder) {
        let path = folder.join(case["file"].as_str().unwrap());
        if case["kind"] != "valid" || is_compressed(&path) {
            continue;
        }
        let (source, lines) = (Jsonl::open(&path).unwrap(), Lines::open(&path).unwrap());
        assert_eq!(source.len(), case["num_records"].as_u64().unwrap());
        for i in 0..source.len() {
            let json: Json = serde_json::from_str(&lines.read(i).unwrap()).unwrap();
            let element = source.read(i).unwrap();
            for (name, value) in json.as_object().unwrap() {
                let what = format!("{} record {i} {name}", case["file"]);
                assert_equal(element.get(name).unwrap(), value, &what);
                let one = Jsonl::options().columns([name]).open(&path).unwrap();
                assert_eq!(one.read(i).unwrap().get(name), element.get(name), "{what}");
            }
        }
    }
}

/// Damage in a field that was not asked for is damage of the record all the same, where it is one of structure.
#[test]
fn jsonl_damage_is_seen_beside_the_chosen_column() {
    check_all("jsonl", |path, case| {
        if is_compressed(path) {
            #[cfg(feature = "compress")]
            {
                use gristmill::IterDatasetExt;
                gristmill::source::StreamOptions::new().jsonl(path)?.collect()?;
            }
            return Ok(Read::default());
        }
        let options = Jsonl::options();
        let source = common_column(path, case).into_iter().fold(options, |o, c| o.columns([c])).open(path)?;
        for i in 0..source.len() {
            source.read(i).inspect_err(|_| assert_good(i, case))?;
        }
        Ok(Read::default())
    });
}

/// A name that every record of a file has, or of the one of which it was made, if there is one.
fn common_column(path: &Path, case: &Json) -> Option<String> {
    let folder = folder_of(path, case);
    let good = if case["kind"] == "valid" { case.clone() } else { origin(folder, case) };
    let good = folder.join(good["file"].as_str().unwrap());
    if is_compressed(&good) {
        return None;
    }
    let text = std::fs::read_to_string(good).unwrap();
    let rows: Vec<Json> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let names = rows.first()?.as_object()?.keys();
    names.into_iter().find(|name| rows.iter().all(|row| row.get(name.as_str()).is_some())).cloned()
}

#[test]
fn npy() {
    check_all("npy", |path, case| {
        let what = case["file"].as_str().unwrap();
        let derived = case["derived_from"].as_str();
        if path.extension().is_some_and(|ext| ext == "npz") {
            #[cfg(feature = "compress")]
            {
                let npz = gristmill::source::Npz::open(path)?;
                let element = npz.element()?;
                let arrays = case["arrays"].as_object().expect("a damaged archive gives an error");
                assert_eq!(element.len(), arrays.len(), "{what}");
                arrays.iter().for_each(|(name, want)| assert_array(element.array(name).unwrap(), want, name));
            }
            return Ok(Read::default());
        }
        let npy = Npy::open(path)?;
        assert!(derived.is_none(), "{what}: a damaged file was read");
        assert_array(&npy.array().unwrap(), case, what);
        assert_eq!(npy.len(), case["num_records"].as_u64().unwrap(), "{what}");
        let rows: Vec<u8> =
            (0..npy.len()).flat_map(|i| npy.read(i).unwrap().array("data").unwrap().bytes().to_vec()).collect();
        assert_eq!(rows, npy.array().unwrap().bytes(), "{what}");
        Ok(Read::default())
    });
}

#[test]
fn tokens_bin() {
    use gristmill::MapDatasetExt;
    check_all("tokens_bin", |path, case| {
        let what = case["file"].as_str().unwrap();
        let tokens = Tokens::open(path, token_layout(path, case))?;
        if let Some(count) = case["num_tokens"].as_u64() {
            assert_eq!(tokens.len(), count, "{what}");
        }
        if case["kind"] == "valid" {
            let ids = tokens.crops(tokens.len() as usize).collect()?.remove(0);
            let ids = ids.array("tokens")?.as_slice::<i32>()?.to_vec();
            let ends = |name: &str| -> Vec<i32> { serde_json::from_value(case[name].clone()).unwrap() };
            assert!(ids.starts_with(&ends("first")) && ids.ends_with(&ends("last")), "{what}");
            let view = &tokens.views()?[0];
            let same = match view.as_slice::<u16>() {
                Ok(narrow) => narrow.iter().map(|&id| i32::from(id)).eq(ids),
                Err(_) => view.as_slice::<u32>()?.iter().map(|&id| id as i32).eq(ids),
            };
            assert!(same, "{what}");
            assert_eq!(hex(&Sha256::digest(view.bytes())), case["sha256"], "{what}");
        }
        Ok(Read::default())
    });
}

/// What a file of tokens is, or the one of which it was made: one of llm.c's by its magic number, else one of bare ids.
fn token_layout(path: &Path, case: &Json) -> TokenLayout {
    let folder = folder_of(path, case);
    let good = if case["kind"] == "valid" { case.clone() } else { origin(folder, case) };
    let bytes = std::fs::read(folder.join(good["file"].as_str().unwrap())).unwrap();
    let magic = bytes.first_chunk().map_or(0, |magic| i32::from_le_bytes(*magic));
    match bytes.len() as u64 / good["num_tokens"].as_u64().unwrap().max(1) {
        _ if [20_240_520, 20_240_801].contains(&magic) => TokenLayout::LlmC,
        4 => TokenLayout::Bare(TokenType::U32),
        _ => TokenLayout::Bare(TokenType::U16),
    }
}

#[cfg(feature = "bagz")]
#[test]
fn bagz() {
    use gristmill::source::Bagz;
    check_all("bagz", |path, case| {
        let what = case["file"].as_str().unwrap();
        let source = Bagz::open(path)?;
        let (mut read, mut failed, mut first) = (Read::default(), Vec::new(), None);
        for i in 0..source.len() {
            match source.read(i) {
                Ok(record) => read.records.push(record.as_bytes().to_vec()),
                Err(error) => {
                    failed.push(i);
                    first.get_or_insert(error);
                }
            }
        }
        let Some(error) = first else {
            assert_records(&read, case);
            return Ok(read);
        };
        let damaged: [u64; 2] = serde_json::from_value(case["damaged_records"].clone()).unwrap();
        assert_eq!(failed, (damaged[0]..damaged[1]).collect::<Vec<_>>(), "{what}");
        let whole = Bagz::open(folder_of(path, case).join(case["derived_from"].as_str().unwrap()))?;
        for i in (0..source.len()).filter(|i| !failed.contains(i)) {
            assert_eq!(source.read(i)?, whole.read(i)?, "{what} record {i}");
        }
        Err(error)
    });
}

#[test]
fn megatron() {
    use gristmill::source::{Megatron, MegatronUnit};
    check_all("megatron", |path, case| {
        let what = case["file"].as_str().unwrap();
        let (sequences, documents) =
            (Megatron::open(path)?, Megatron::options().unit(MegatronUnit::Document).open(path)?);
        let tokens = |source: &Megatron, i| Ok(source.read(i)?.array("tokens")?.clone());
        let ids = (0..sequences.len()).map(|i| tokens(&sequences, i)).collect::<Result<Vec<_>>>()?;
        let joined = (0..documents.len()).map(|i| tokens(&documents, i)).collect::<Result<Vec<_>>>()?;
        let read = Read { records: ids.iter().map(|ids| ids.bytes().to_vec()).collect() };
        assert_records(&read, case);
        let numbers = |name: &str| -> Vec<usize> { serde_json::from_value(case[name].clone()).unwrap_or_default() };
        assert_eq!(ids.iter().map(Array::size).collect::<Vec<_>>(), numbers("sequence_lengths"), "{what}");
        let ends = numbers("document_indices");
        assert_eq!(documents.len() as usize, ends.len() - 1, "{what}");
        for (document, ends) in joined.iter().zip(ends.windows(2)) {
            assert_eq!(document.bytes(), read.records[ends[0]..ends[1]].concat(), "{what}");
        }
        Ok(read)
    });
}

#[cfg(all(feature = "tf_record", feature = "compress"))]
#[test]
fn tfrecord() {
    use gristmill::Load;
    use gristmill::source::{TfRecord, TfRecordStream};
    check_all("tfrecord", |path, case| {
        let mut read = Read::default();
        let mut records = TfRecordStream::open(path)?.loader().build()?;
        for record in records.by_ref() {
            match record {
                Ok(record) => read.records.push(record.as_bytes().to_vec()),
                Err(error) => {
                    assert_good(read.records.len() as u64, case);
                    // By number it is refused when it is opened, or where the record is damaged, and there alone.
                    if !is_compressed(path)
                        && let Ok(source) = TfRecord::open(path)
                    {
                        let bad: Vec<_> = (0..source.len()).filter(|&i| source.read(i).is_err()).collect();
                        assert_eq!(bad, [read.records.len() as u64], "{}", case["file"]);
                    }
                    return Err(error);
                }
            }
        }
        if !is_compressed(path) {
            let source = TfRecord::open(path)?;
            let all: Vec<_> = (0..source.len()).map(|i| source.read(i).unwrap().as_bytes().to_vec()).collect();
            assert!(all == read.records, "{}", case["file"]);
        }
        assert_records(&read, case);
        Ok(read)
    });
}
