//! Servers that claim what is not so, send clients elsewhere, and take their time; and what others may do on the same machine.

use std::time::Duration;

use super::objects::{Server, Tells, Trouble};
use super::*;
use crate::dataset::map::RandomAccess;
use crate::source::{IndexCache, Lines};
use crate::store::Folder;

fn first(url: &str) -> String {
    Lines::options().cache(IndexCache::Off).open(url).unwrap().read(0).unwrap()
}

#[test]
fn objects_that_differ_in_the_query_alone_are_told_apart() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let url = |name: &str, text: &str| server.put(&format!("get.txt?f={name}"), text);
    let urls = [url("a", "A000\n"), url("b", "B000\n")];
    let texts = || urls.each_ref().map(|url| String::from_utf8(all(&open_kept(url, dir.path())).unwrap()).unwrap());
    for tells in [Tells::TagAndTime, Tells::Time, Tells::Nothing] {
        server.tell(tells);
        for _ in 0..2 {
            assert_eq!(texts(), ["A000\n", "B000\n"], "{tells:?}");
            assert_eq!(urls.each_ref().map(|url| first(url)), ["A000", "B000"], "{tells:?}");
        }
    }
}

fn open_kept(url: &str, folder: &Path) -> Arc<Object> {
    open_with(url, options().cache_dir(folder)).unwrap()
}

#[test]
fn what_nothing_tells_apart_is_kept_for_nobody() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    server.tell(Tells::Nothing);
    let shared = Arc::new(Shared::new(options().cache_dir(dir.path())).unwrap());
    let open =
        |shared: &Arc<Shared>| Object::open_by(Path::new(&server.url("a")), shared.clone(), Wanted::Version).unwrap();
    for text in [b"one", b"two"] {
        server.put("a", text.to_vec());
        assert_eq!(all(&open(&shared)).unwrap(), text);
        assert_eq!(all(&open_kept(&server.url("a"), dir.path())).unwrap(), text);
    }
    damage(dir.path(), |files| assert_eq!(files, [] as [std::path::PathBuf; 0]));
    // Nor is where its lines begin.
    let lines = |text: &str| {
        server.put("b.txt", text.repeat(1 << 20));
        let cache = IndexCache::Folder(dir.path().join("lines"));
        Lines::options().cache(cache).open(server.url("b.txt")).unwrap().len()
    };
    assert_eq!((lines("abcdefgh\n\n"), lines("abcd\nefgh\n")), (1 << 20, 2 << 20));
    assert!(!dir.path().join("lines").exists());
}

#[test]
fn sizes_and_names_beyond_all_objects_are_refused() {
    let server = Server::start();
    server.put("a", bytes(0));
    for claimed in [u64::MAX, i64::MAX as u64] {
        server.claim("a", claimed);
        let error = open_with(&server.url("a"), options()).unwrap_err();
        assert!(
            error.message().ends_with(&format!("reports {claimed} bytes, more than any object can have")),
            "{error}"
        );
    }
    for scheme in [server.url(""), "s3://bucket/".to_owned()] {
        let error = Lines::open(format!("{scheme}{}", "\u{e9}".repeat(100_000))).unwrap_err();
        assert!(error.message().contains("bytes, limit 16384"), "{error}");
        assert!(error.message().len() < 300, "{}", error.message());
    }
}

#[test]
fn a_redirect_takes_nothing_along_and_nothing_signed_follows_it() {
    let (server, other) = (Server::start(), Server::start());
    other.put("b", bytes(1));
    let url = server.redirect("a", &other.url("b")) + "?X-Amz-Signature=hidden";
    assert!(all(&open(&url)).unwrap() == bytes(1));
    let requests = other.requests();
    assert!(!requests.is_empty() && !format!("{requests:?}").contains("hidden"), "{requests:?}");
    let names = requests.iter().flat_map(|request| &request.headers).map(|line| line.split(':').next().unwrap());
    for name in names.map(str::to_ascii_lowercase) {
        let known = ["accept", "user-agent", "range", "if-match", "host", "content-length"];
        assert!(known.contains(&&*name), "{name}");
    }
    server.redirect("a", "file:///etc/passwd");
    assert!(open_with(&url, options()).is_err());
}

#[test]
fn a_length_that_is_claimed_takes_no_memory() {
    let server = Server::start();
    let bytes = bytes(3);
    for claimed in [1 << 40, 1 << 62] {
        server.put("a", bytes.clone());
        server.claim("a", claimed);
        let object = open(&server.url("a"));
        assert_eq!(object.len(), claimed);
        let error = object.read(0..claimed).unwrap_err();
        assert!(error.message().contains("gave up after 4 attempts"), "{error}");
        assert!(object.read(0..BLOCK).unwrap().as_bytes() == &bytes[..BLOCK as usize]);
    }
}

#[test]
fn the_time_that_is_allowed_covers_bodies_that_drip() {
    let server = Server::start();
    let options = options().timeout(Duration::from_secs(2)).stall(Duration::from_secs(60)).attempts(100);
    let object = open_with(&server.put("a", bytes(0)), options).unwrap();
    server.trouble(vec![Trouble::Drip(Duration::from_secs(1)); 9]);
    let error = all(&object).unwrap_err();
    assert!(error.message().contains("limit 2.0 s for all attempts: the rest comes too slowly"), "{error}");
}

#[test]
fn what_describes_others_is_not_read_however_long_it_is() {
    let server = Server::start();
    server.put("out/manifest.json", "{}");
    server.claim("out/manifest.json", 3 << 29);
    let error = Folder::open(server.url("out/")).unwrap().read("manifest.json").unwrap_err();
    assert_eq!(error.message(), "the answer is longer than the limit of 256 MiB");
    let dir = tempfile::tempdir().unwrap();
    std::fs::File::create(dir.path().join("manifest.json")).unwrap().set_len(1 << 40).unwrap();
    let error = Folder::open(dir.path()).unwrap().read("manifest.json").unwrap_err();
    assert!(error.message().contains("limit 256 MiB"), "{error}");
}

#[test]
fn what_is_wrong_with_a_url_is_said_without_its_query() {
    for url in [
        "az://bucket/a?sig=hidden//hidden",
        "az://bucket/a?sig=hidden/../b",
        "http://h/{0..9999999}?sig=hidden",
        "http://h/%ff?sig=hidden",
    ] {
        let error = Lines::open(url).unwrap_err();
        assert!(!format!("{error} {error:?} {:?}", error.help_text()).contains("hidden"), "{error}");
    }
}

#[test]
fn a_user_in_a_url_is_refused_and_not_shown() {
    for url in
        ["s3://KEY:hidden@bucket/a.jsonl", "HTTPS://user:hid/hidden@h/a.jsonl", "http://user:hidden%40@h/a.jsonl"]
    {
        let error = Lines::open(url).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hid"), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    }
}
