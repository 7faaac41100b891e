//! Rules about what the source text may call, and where: requests are made by the layer that makes them again, and files appear whole.

use super::floors::{files, source, without_tests};

/// A place where a rule does not hold: a file or folder below `src/`, and the reason.
type Exception = (&'static str, &'static str);

/// Calls that make a file, which others may read half written.
const CREATING: [&str; 5] = ["File::create", "OpenOptions", "File::options", "fs::write", "create_new("];
const MAY_CREATE: [Exception; 11] = [
    ("temporary.rs", "the room of files that appear whole"),
    ("store/remote/disk.rs", "a file that is locked and holds nothing"),
    ("workers/sys/limits.rs", "files of the kernel"),
    ("report/record/write.rs", "a recording is read while it grows, and after its writer was killed"),
    ("live/trace/mod.rs", "a trace is written while the run goes on, to a pipe if its path is one"),
    ("cli/report.rs", "a page is written to the path of the user, which may be a pipe"),
    ("python/report.rs", "a page is written to the path of the user, which may be a pipe"),
    ("cli/man.rs", "pages that the same call makes again"),
    ("cli/demo.rs", "a corpus that the same call makes again"),
    ("source/array_record/writer.rs", "a file ends with `finish`, which the caller may never reach"),
    ("source/arrow_ipc/folder_writer.rs", "the folder counts once its `state.json` has appeared"),
];

/// Names of clients that make requests, and of what makes them.
const REQUESTING: [&str; 4] = ["reqwest::", "object_store::", "HttpClient", "TcpStream::connect"];
const MAY_REQUEST: [Exception; 2] =
    [("store/", "the room that makes requests"), ("live/endpoint.rs", "wakes the thread of its own listener")];

/// Calls that send a request as it is.
const SENDING: [&str; 1] = [".execute("];
const MAY_SEND: [Exception; 2] = [
    ("store/remote/service.rs", "the service between the clients, which make requests again, and the network"),
    ("store/remote/hub/mod.rs", "a loop that makes its requests again"),
];

/// Lines of a statement at most.
const STATEMENT: usize = 6;

/// The text of each file, by its path below `src/`, without tests and comments.
fn texts() -> Vec<(String, String)> {
    let root = source();
    let text = |file: &std::path::PathBuf| {
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        (name, without_tests(&std::fs::read_to_string(file).unwrap()))
    };
    files(&root).iter().map(text).collect()
}

/// Returns true if a text has a name that is not the end of another name.
fn has(text: &str, name: &str) -> bool {
    let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
    let begins = |at: usize| !name.starts_with(is_in_name) || !text[..at].ends_with(is_in_name);
    text.match_indices(name).any(|(at, _)| begins(at))
}

/// Checks that no file but the exceptions has one of these words, and that each exception is needed.
fn check(words: &[&str], exceptions: &[Exception], remedy: &str) {
    let texts = texts();
    let with: Vec<&str> =
        texts.iter().filter(|(_, text)| words.iter().any(|word| has(text, word))).map(|(name, _)| &**name).collect();
    for name in &with {
        let is_excepted = exceptions.iter().any(|(place, _)| name.starts_with(place));
        assert!(is_excepted, "src/{name} has one of {words:?}: {remedy}");
    }
    for (place, reason) in exceptions {
        assert!(
            with.iter().any(|name| name.starts_with(place)),
            "src/{place} is excepted ({reason}), and has none of {words:?}"
        );
    }
}

#[test]
fn files_are_made_by_the_room_whose_files_appear_whole() {
    check(&CREATING, &MAY_CREATE, "use `temporary::Temporary`, or `store::replace`");
}

#[test]
fn requests_are_made_by_stores_alone() {
    check(&REQUESTING, &MAY_REQUEST, "use `store::Object` or `store::Folder`");
    check(&SENDING, &MAY_SEND, "use `Bucket::patient`, or `Bucket::reader` within an attempt");
}

/// The reader of a bucket reports what fails at once: its calls stand within an attempt, which is made again.
#[test]
fn reading_is_tried_again() {
    let mut seen = 0;
    for (name, text) in texts() {
        let lines: Vec<&str> = text.lines().collect();
        for at in (0..lines.len()).filter(|&at| lines[at].contains("bucket.reader.")) {
            let statement = &lines[at..lines.len().min(at + STATEMENT)];
            let is_tried = statement.iter().any(|line| line.contains("attempt.within("));
            assert!(is_tried, "src/{name}:{}: put it within an attempt of `Attempts`", at + 1);
            seen += 1;
        }
    }
    assert!(seen > 2, "the rule looks for another name than the reader has");
}
