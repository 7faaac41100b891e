//! Objects of a server that has its troubles.

mod formats;
mod hostile;
#[path = "../../../tests/support/objects.rs"]
pub(crate) mod objects;
#[cfg(feature = "formats")]
mod opening;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use objects::{Server, Trouble};

use super::options::StoreOptions;
use super::remote::blocks::BLOCK;
use super::remote::object::{Object, Wanted};
use super::remote::shared::Shared;
use crate::error::{Error, ErrorKind, Result};

/// Short pauses, and few attempts.
fn options() -> StoreOptions {
    StoreOptions::default().attempts(4).stall(Duration::from_millis(300))
}

fn open_with(url: &str, options: StoreOptions) -> Result<Arc<Object>> {
    Object::open_by(Path::new(url), Arc::new(Shared::new(options)?), Wanted::Version)
}

fn open(url: &str) -> Arc<Object> {
    open_with(url, options()).unwrap()
}

/// So many blocks and 10 bytes.
fn bytes(blocks: u64) -> Vec<u8> {
    (0..blocks * BLOCK + 10).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn all(object: &Arc<Object>) -> Result<Vec<u8>> {
    Ok(object.read(0..object.len())?.as_bytes().to_vec())
}

/// Checks that `open` returns an error for an object whose server claims a length of 1 TiB and sends `bytes`.
pub(crate) fn is_refused_if_claimed<T>(name: &str, bytes: Vec<u8>, open: impl FnOnce(String) -> Result<T>) {
    StoreOptions::default().attempts(2).apply();
    let server = Server::start();
    let url = server.put(name, bytes);
    server.claim(name, CLAIMED);
    let error = open(url).map(drop).unwrap_err();
    assert!(error.message().contains("gave up after"), "{error}");
}

/// Length in bytes that a server claims.
pub(crate) const CLAIMED: u64 = 1 << 40;

/// Files that other libraries wrote, in a store and on this machine.
#[cfg(feature = "formats")]
pub(crate) struct Fixtures {
    pub(crate) server: Server,
    folder: std::path::PathBuf,
}

#[cfg(feature = "formats")]
impl Fixtures {
    /// Returns `None` if the files are not there.
    pub(crate) fn find() -> Option<Self> {
        let beside = || concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/fixtures").into();
        let folder = std::env::var_os("GRISTMILL_FIXTURES").map_or_else(beside, std::path::PathBuf::from);
        if !folder.is_dir() {
            println!("skipped: no {}", folder.display());
            return None;
        }
        Some(Self { server: Server::start(), folder })
    }

    /// The path of a file on this machine.
    pub(crate) fn near(&self, name: &str) -> std::path::PathBuf {
        self.folder.join(name)
    }

    /// Puts a file into the store. Returns its URL.
    pub(crate) fn put(&self, name: &str) -> String {
        self.server.put(name, std::fs::read(self.near(name)).unwrap())
    }

    /// Returns the valid cases of a format that have records, as its manifest lists them.
    pub(crate) fn cases(&self, format: &str) -> Vec<serde_json::Value> {
        let manifest = std::fs::read(self.near(format).join("manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        let is_read = |case: &&serde_json::Value| case["kind"] == "valid" && case["num_records"].as_u64() > Some(0);
        manifest["cases"].as_array().unwrap().iter().filter(is_read).cloned().collect()
    }
}

/// Checks that two sources have equal records.
#[cfg(feature = "formats")]
pub(crate) fn assert_same<S: crate::dataset::map::RandomAccess<Record: PartialEq + std::fmt::Debug>>(
    near: &S,
    far: &S,
) {
    let all = |source: &S| source.read_many(&(0..source.len()).rev().collect::<Vec<u64>>()).dense().unwrap();
    assert_eq!((near.len(), all(near)), (far.len(), all(far)));
}

#[test]
fn ranges_are_read_by_blocks_and_once() {
    let (server, bytes) = (Server::start(), bytes(9));
    let object = open(&server.put("a", bytes.clone()));
    assert_eq!(object.len(), bytes.len() as u64);
    server.requests();
    for range in [5..5, 5..6, 0..BLOCK, BLOCK - 1..BLOCK + 1, 3 * BLOCK + 7..7 * BLOCK + 9, 9 * BLOCK..9 * BLOCK + 10] {
        let read = object.read(range.clone()).unwrap();
        assert_eq!(read.as_bytes(), &bytes[range.start as usize..range.end as usize], "{range:?}");
    }
    let ranges: Vec<_> = server.requests().into_iter().map(|request| request.range.unwrap()).collect();
    let blocks: u64 = ranges.iter().map(|(first, last)| (last - first).div_ceil(BLOCK)).sum();
    // Blocks 0, 1, 3 to 7 and 9: each once, and neighbours together.
    assert_eq!((ranges.len(), blocks), (4, 8), "{ranges:?}");
    assert!(all(&object).unwrap() == bytes);
    assert!(server.requests().iter().all(|request| request.if_match.is_some()));
}

#[test]
fn front_to_back_everything_is_asked_for_once() {
    let (server, bytes) = (Server::start(), bytes(40));
    // Less memory than the object takes.
    let object = open_with(&server.put("a", bytes.clone()), options().memory_bytes(4 << 20)).unwrap();
    let mut read = Vec::new();
    while read.len() < bytes.len() {
        read.extend_from_slice(object.read_on(read.len() as u64).unwrap().as_bytes());
    }
    assert!(read == bytes);
    let fetched: u64 = server.requests().iter().filter_map(|request| request.range).map(|(from, to)| to - from).sum();
    assert_eq!(fetched, bytes.len() as u64);
}

#[test]
fn ranges_that_will_be_read_come_in_few_requests() {
    let (server, bytes) = (Server::start(), bytes(9));
    let object = open(&server.put("a", bytes.clone()));
    object.fetch(&[5 * BLOCK..5 * BLOCK + 1, 0..2 * BLOCK, 6 * BLOCK - 1..6 * BLOCK + 1, 99 * BLOCK..100 * BLOCK]);
    for block in [0, 1, 5, 6] {
        object.read(block * BLOCK..block * BLOCK + 1).unwrap();
    }
    let mut ranges: Vec<_> = server.requests().into_iter().filter_map(|request| request.range).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [(0, 2 * BLOCK), (5 * BLOCK, 7 * BLOCK)]);
}

/// Whoever reads them reads them one by one, and asks for none but the next.
#[cfg(feature = "array_record")]
#[test]
fn what_a_shuffled_pass_will_read_is_on_its_way() {
    use crate::source::{ArrayRecord, ArrayRecordWriter, Compression};
    use crate::{Executor, Load, MapDatasetExt, dataset::map::Source};
    let mut writer = ArrayRecordWriter::options().compression(Compression::None).write_to(Vec::new()).unwrap();
    let record = |i: usize| vec![i as u8; 2_500_000];
    (0..24).for_each(|i| writer.write(&record(i)).unwrap());
    let server = Server::start();
    let url = server.put("a.array_record", writer.finish().unwrap());
    for executor in [Executor::Inline, Executor::Threads(1)] {
        // Another memory, where nothing lies yet.
        StoreOptions::default().memory_bytes((64 << 20) + executor.to_string().len() as u64).apply();
        let source = Source::new(ArrayRecord::open(&url).unwrap());
        let order = crate::dataset::map::Range::new(0, 24).shuffle(5).collect().unwrap();
        server.together(8);
        let records = source.shuffle(5).map(|record| record).to_iter().loader().executor(executor).build().unwrap();
        let read: Vec<_> = records.map(Result::unwrap).collect();
        assert_eq!(server.missing(), 0, "{executor}");
        assert!(read.iter().zip(order).all(|(read, i)| *read.as_bytes() == record(i as usize)), "{executor}");
    }
}

#[test]
fn what_is_no_longer_wanted_is_not_fetched() {
    let (server, bytes) = (Server::start(), bytes(12));
    let object = open(&server.put("a", bytes));
    let (wanted, unwanted) = (Arc::new(()), Arc::new(()));
    object.will_read(0..BLOCK, &Arc::downgrade(&unwanted));
    object.will_read(3 * BLOCK..3 * BLOCK + 1, &Arc::downgrade(&wanted));
    object.will_read(4 * BLOCK..6 * BLOCK, &Arc::downgrade(&wanted));
    drop(unwanted);
    server.requests();
    object.go_on();
    for block in [3, 4, 5, 9] {
        object.read(block * BLOCK..block * BLOCK + 1).unwrap();
    }
    let mut ranges: Vec<_> = server.requests().into_iter().filter_map(|request| request.range).collect();
    ranges.sort_unstable();
    assert_eq!(ranges, [(3 * BLOCK, 6 * BLOCK), (9 * BLOCK, 10 * BLOCK)]);
}

#[test]
fn what_goes_wrong_for_a_while_is_tried_again() {
    let (server, bytes) = (Server::start(), bytes(2));
    for (name, troubles) in [
        ("busy", vec![Trouble::Status(503, "x: y"), Trouble::Status(500, "x: y")]),
        ("too many", vec![Trouble::Status(429, "Retry-After: 0")]),
        ("cut", vec![Trouble::Cut(10), Trouble::Cut(0), Trouble::Cut(BLOCK as usize + 3)]),
        ("cut again and again", vec![Trouble::Cut(20_000); 9]),
        ("stalled", vec![Trouble::Stall(100)]),
        ("wrong range", vec![Trouble::WrongRange]),
    ] {
        let object = open(&server.put("a", bytes.clone()));
        server.trouble(troubles);
        assert!(all(&object).unwrap() == bytes, "{name}");
        assert_eq!(server.troubles_left(), 0, "{name}");
    }
}

#[test]
fn a_body_that_was_cut_is_continued_where_it_was_cut() {
    let (server, bytes) = (Server::start(), bytes(2));
    let object = open(&server.put("a", bytes.clone()));
    server.requests();
    server.trouble([Trouble::Cut(BLOCK as usize + 7)]);
    assert!(all(&object).unwrap() == bytes);
    let ranges: Vec<_> = server.requests().into_iter().filter_map(|request| request.range).collect();
    assert_eq!(ranges.len(), 2);
    // What was on the way when the connection broke may not have come.
    assert!(ranges[1].0 <= BLOCK + 7 && ranges[1].1 == bytes.len() as u64, "{ranges:?}");
}

#[test]
fn retry_after_is_waited_for_and_no_longer_than_allowed() {
    let server = Server::start();
    let url = server.put("a", bytes(0));
    let object = open(&url);
    server.trouble([Trouble::Status(503, "Retry-After: 1"), Trouble::Status(429, "Retry-After: 0")]);
    all(&object).unwrap();

    let object = open_with(&url, options().timeout(Duration::from_secs(5))).unwrap();
    server.trouble([Trouble::Status(503, "Retry-After: 3600")]);
    let error = all(&object).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("gave up after 1 attempts") && text.contains("before a pause of 3600.0 s"), "{text}");
}

#[test]
fn at_the_end_of_patience_everything_is_said() {
    let server = Server::start();
    let url = server.put("a", bytes(0));
    let object = open(&url);
    server.trouble(vec![Trouble::Status(503, "x: y"); 4]);
    let error = all(&object).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!("{url}: bytes 0 to 10: gave up after 4 attempts in ")), "{text}");
    assert!(text.ends_with(": the server answered 503"), "{text}");
    assert_eq!(error.kind(), ErrorKind::Io);
    // It was not for ever.
    assert_eq!(all(&object).unwrap().len(), 10);
}

#[test]
fn an_object_without_a_tag_is_known_by_its_size() {
    let (server, mut bytes) = (Server::start(), bytes(3));
    server.tell(objects::Tells::Time);
    let object = open(&server.put("a", bytes.clone()));
    object.read(0..1).unwrap();
    let before = bytes.len();
    bytes.push(1);
    server.put("a", bytes);
    let error = object.read(BLOCK..BLOCK + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    let told = format!("changed since it was opened: it has {} bytes now, and had {before}", before + 1);
    assert!(error.message().contains(&told), "{error}");
}

#[test]
fn an_object_that_changed_is_an_error() {
    let (server, first) = (Server::start(), bytes(1));
    let object = open(&server.put("a", first.clone()));
    let hash = object.hash();
    object.read(0..1).unwrap();
    let mut second = first.clone();
    second[0] ^= 1;
    server.put("a", second);
    let error = object.read(BLOCK..BLOCK + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.message().contains("changed since it was opened"), "{error}");
    assert_ne!(open(&server.url("a")).hash(), hash);
    // What is back as it was is what was opened.
    server.put("a", first);
    object.read(BLOCK..BLOCK + 1).unwrap();
}

#[test]
fn what_no_patience_mends_is_said_at_once() {
    let server = Server::start();
    let error = |url: &str| open_with(url, options()).unwrap_err();
    assert!(error(&server.url("none")).message().ends_with("there is no such object"));
    assert_eq!(server.requests().len(), 1);
    let object = open(&server.put("a", bytes(1)));
    for (trouble, want) in [
        (Trouble::NoRange, "the server does not support range requests"),
        (Trouble::Status(403, "x: y"), "the server answered 403"),
        (Trouble::Status(416, "x: y"), "changed since it was opened"),
    ] {
        server.requests();
        server.trouble([trouble]);
        let error = object.read(0..1).unwrap_err();
        assert!(error.message().contains(want), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
    let error = error("http://127.0.0.1:1/a");
    assert!(error.message().contains("gave up after 4 attempts"), "{error}");
}

/// The reason is in the body of the answer to a GET request alone.
#[test]
fn the_reason_of_a_refusal_is_shown_with_its_remedy() {
    let server = Server::start();
    let body =
        "<Error><Code>SignatureDoesNotMatch</Code><Message>hidden</Message><StringToSign>hidden</StringToSign></Error>";
    let url = server.refuse("a", 403, "x-amz-request-id: 4F2A", body);
    let error = open_with(&url, options()).unwrap_err();
    assert_eq!(error.message(), "the server answered 403 (SignatureDoesNotMatch, request 4F2A)");
    assert!(error.help_text().is_some_and(|help| help.contains("AWS_SECRET_ACCESS_KEY")), "{:?}", error.help_text());
    assert_eq!(server.requests().len(), 2);
    // A header with the code spares the second request.
    let url = server.refuse("b", 403, "x-ms-error-code: AuthorizationFailure", "");
    let error = open_with(&url, options()).unwrap_err();
    assert_eq!((error.message(), server.requests().len()), ("the server answered 403 (AuthorizationFailure)", 1));
}

/// By a name that is reserved for that.
#[test]
fn a_host_that_does_not_exist_is_named_and_not_asked_for_again_and_again() {
    for url in ["http://nohost.invalid/a.txt", "http://nohost.invalid/"] {
        let error = crate::source::Lines::open(url).unwrap_err();
        assert!(error.message().contains("no address of the host \"nohost.invalid\" is found"), "{error}");
        assert!(error.help_text().is_some_and(|help| help.contains("spelling of the host")));
    }
}

#[test]
fn secrets_are_in_no_message() {
    let server = Server::start();
    let url = server.put("a", bytes(1)) + "?X-Amz-Signature=hidden&x=hidden";
    let shown = |error: &Error| format!("{error} {error:?} {:?} {:?}", error.help_text(), error.file());
    let object = open(&url);
    // The server is asked with all of it.
    assert!(server.requests()[0].path.ends_with("hidden"));
    for trouble in [
        vec![Trouble::Status(403, "x: hidden")],
        vec![Trouble::Status(500, "x: y"); 4],
        vec![Trouble::Cut(0); 4],
        vec![Trouble::NoRange],
        vec![Trouble::WrongRange; 4],
    ] {
        server.trouble(trouble);
        let text = shown(&object.read(0..1).unwrap_err());
        assert!(!text.contains("hidden") && text.contains("127.0.0.1"), "{text}");
    }
    let missing = server.url("none?sig=hidden");
    for url in [missing.as_str(), "http://user:hidden@127.0.0.1:1/a?sig=hidden"] {
        let error = crate::source::Lines::open(url).unwrap_err();
        assert!(!shown(&error).contains("hidden"), "{}", shown(&error));
    }
}

#[test]
fn blocks_on_disk_spare_requests_and_survive() {
    let (server, bytes, dir) = (Server::start(), bytes(5), tempfile::tempdir().unwrap());
    let url = server.put("a", bytes.clone());
    let open = || open_with(&url, options().cache_dir(dir.path())).unwrap();
    let gets = || server.requests().iter().filter(|request| request.method == "GET").count();
    let first = open();
    assert!(all(&first).unwrap() == bytes);
    // Until what is being written is written.
    let disk = first.shared.disk.clone().unwrap();
    while !(0..6).all(|block| disk.has(first.key_of(block))) {
        std::thread::yield_now();
    }
    assert_eq!(gets(), 1);
    assert!(all(&open()).unwrap() == bytes);
    assert_eq!(gets(), 0);
    // One that is damaged, and one that is gone, are fetched again, and no others.
    damage(dir.path(), |files| {
        std::fs::write(&files[0], b"damage").unwrap();
        std::fs::remove_file(&files[3]).unwrap();
    });
    let ranges = || server.requests().iter().filter_map(|request| request.range).map(|(a, b)| b - a).sum::<u64>();
    assert!(all(&open()).unwrap() == bytes);
    let fetched = ranges();
    assert!(fetched <= 2 * BLOCK && fetched > BLOCK, "{fetched}");
    // Another version has blocks of its own.
    let mut other = bytes;
    other[7] ^= 1;
    server.put("a", other.clone());
    assert!(all(&open()).unwrap() == other);
}

/// Does something to the files of blocks, in order.
fn damage(dir: &Path, work: impl Fn(&[std::path::PathBuf])) {
    let folders = std::fs::read_dir(dir.join("blocks")).unwrap().flatten().map(|entry| entry.path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
    let mut files: Vec<_> = files.map(|entry| entry.path()).collect();
    files.sort();
    work(&files);
}
