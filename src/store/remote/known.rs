//! Cached facts about objects, from listings and earlier openings.
//!
//! A listing contains the size of an object, so the first request can be for its end. The pinned version always comes
//! from a response about the object, because listings format ETags and times differently. If the listed ETag, size and
//! time match the listing of an earlier opening, the object is unchanged. No request is then needed.

use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use object_store::ObjectMeta;
use xxhash_rust::xxh3::xxh3_128;

use crate::fork::PerProcess;
use crate::store::bounded::Bounded;

/// Limit of all facts in bytes, enough for tens of thousands of objects.
const MOST: u64 = 16 << 20;
/// Maximum age of a listing when its objects are opened.
const LISTED: Duration = Duration::from_secs(60);

static KNOWN: PerProcess<Mutex<Bounded<u128, Known>>> = PerProcess::new(|| Mutex::new(Bounded::new(MOST)));

/// Facts about the object of a URL.
#[derive(Debug, Default)]
struct Known {
    /// Latest listing, until an opening uses it.
    listed: Option<(Mark, Instant)>,
    /// Latest opening that followed a listing.
    opened: Option<(Mark, Opened)>,
}

/// Version of an object, in the format of its listing.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mark {
    size: u64,
    e_tag: Option<String>,
    changed: i64,
}

/// Facts from a response about an object, and a hash of the requested URL: see
/// [`Told::place`](super::service::Told::place).
#[derive(Clone, Debug)]
pub(in crate::store) struct Opened {
    pub(in crate::store) meta: ObjectMeta,
    pub(in crate::store) place: u128,
}

/// Facts for the next opening of an object.
#[derive(Debug)]
pub(in crate::store) struct Listed {
    key: u128,
    mark: Mark,
    /// Earlier opening of the listed version, if there was any.
    pub(in crate::store) opened: Option<Opened>,
}

impl Listed {
    pub(in crate::store) fn size(&self) -> u64 {
        self.mark.size
    }

    /// Keeps the result of an opening for the next opening after a listing.
    pub(in crate::store) fn keep(self, opened: Opened) {
        let opened = self.mark.e_tag.is_some().then_some((self.mark, opened));
        Known { listed: None, opened }.put(self.key);
    }
}

impl Known {
    fn put(self, key: u128) {
        let of_mark = |mark: &Mark| mark.e_tag.as_ref().map_or(0, String::len);
        let of_meta = |meta: &ObjectMeta| meta.location.as_ref().len() + meta.e_tag.as_ref().map_or(0, String::len);
        let texts = self.listed.as_ref().map_or(0, |(mark, _)| of_mark(mark))
            + self.opened.as_ref().map_or(0, |(mark, opened)| of_mark(mark) + of_meta(&opened.meta));
        // Keys are stored both in the order and in the table.
        let bytes = size_of::<Self>() + 4 * size_of::<u128>() + texts;
        KNOWN.lock().put(key, self, bytes as u64);
    }
}

fn key(url: &Path) -> u128 {
    xxh3_128(url.as_os_str().as_encoded_bytes())
}

/// Records an object of a listing made at `now`.
pub(in crate::store) fn list(url: &Path, meta: &ObjectMeta, now: Instant) {
    let e_tag = meta.e_tag.clone().filter(|tag| !tag.is_empty());
    let mark = Mark { size: meta.size, e_tag, changed: meta.last_modified.timestamp_millis() };
    let opened = KNOWN.lock().get(key(url)).and_then(|known| known.opened.take());
    Known { listed: Some((mark, now)), opened }.put(key(url));
}

/// Takes the facts about an object opened at `now`, if a listing contained the object. Each listing is used once.
pub(in crate::store) fn take(url: &Path, now: Instant) -> Option<Listed> {
    let mut all = KNOWN.lock();
    let known = all.get(key(url))?;
    let (mark, _) = known.listed.take().filter(|(_, at)| now.saturating_duration_since(*at) <= LISTED)?;
    let opened = known.opened.as_ref().filter(|(of, _)| *of == mark).map(|(_, opened)| opened.clone());
    Some(Listed { key: key(url), mark, opened })
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn meta(tag: Option<&str>) -> ObjectMeta {
        let e_tag = tag.map(str::to_owned);
        ObjectMeta { location: "a".into(), last_modified: SystemTime::UNIX_EPOCH.into(), size: 7, e_tag, version: None }
    }

    fn opened() -> Opened {
        Opened { meta: meta(Some("as answered")), place: 5 }
    }

    #[test]
    fn a_version_is_known_again_by_the_mark_of_its_listing() {
        let (url, now) = (Path::new("s3://known/again"), Instant::now());
        assert!(take(url, now).is_none());
        for (tag, is_known) in [("one", false), ("one", true), ("two", false), ("two", true), ("one", false)] {
            list(url, &meta(Some(tag)), now);
            let listed = take(url, now).unwrap();
            assert_eq!((listed.size(), listed.opened.is_some()), (7, is_known), "{tag}");
            listed.keep(opened());
            assert!(take(url, now).is_none(), "a listing counts once");
        }
    }

    #[test]
    fn a_listing_without_tags_gives_the_size_alone() {
        let (url, now) = (Path::new("s3://known/untagged"), Instant::now());
        for _ in 0..2 {
            list(url, &meta(None), now);
            let listed = take(url, now).unwrap();
            assert!(listed.opened.is_none());
            listed.keep(opened());
        }
    }

    #[test]
    fn a_listing_counts_for_a_minute() {
        let (url, now) = (Path::new("s3://known/late"), Instant::now());
        for (later, counts) in [(LISTED, true), (LISTED + Duration::from_nanos(1), false)] {
            list(url, &meta(Some("one")), now);
            assert_eq!(take(url, now + later).is_some(), counts, "{later:?}");
        }
    }
}
