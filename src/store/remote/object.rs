//! Objects opened for reading, each pinned to a version.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStoreExt};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::blocks::{BLOCK, Key};
use super::bucket::Address;
use super::claimed::Room;
use super::counts::{COUNTS, count};
use super::disk::Disk;
use super::fetch;
use super::known::{self, Listed, Opened};
use super::retry::{Attempts, Failure, Fault, changed, given_up, patiently};
use super::runtime;
use super::service::{Told, listening};
use super::shared::{self, Shared};
use crate::cx::waited_for_store;
use crate::element::Buffer;
use crate::error::{ErrorKind, Result};

/// Version of an object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(in crate::store) at: Address,
    pub(in crate::store) meta: ObjectMeta,
    /// Hash of the URL and of all version marks.
    pub(in crate::store) key: u128,
    /// Whether the server reports a version mark in addition to the size.
    is_versioned: bool,
    pub(in crate::store) shared: Arc<Shared>,
    /// Number of the last block read.
    last: AtomicU64,
    /// Number of steps forward between nearby blocks, since the last jump.
    streak: AtomicU64,
}

/// Part of an object that its opening needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Wanted {
    /// Only the size and the version.
    Version,
    /// The last [`END`] bytes.
    End,
}

/// Number of bytes at the end of an object that are read together.
pub(crate) const END: u64 = BLOCK;

/// Maximum number of adjacent missing blocks fetched by a request.
pub(in crate::store) const PIECE: u64 = 32;
/// Number of blocks fetched ahead of a sequential read: 16 full requests.
const AHEAD: u64 = 512;
/// Maximum distance between blocks of a sequential read. Threads that take turns read blocks out of order.
const NEAR: u64 = 64;
/// Minimum time that counts as a wait for a block.
const MOMENT: Duration = Duration::from_micros(10);
/// Number of nearby reads after which reads count as sequential.
const STREAK: u64 = 4;

impl Object {
    /// Opens an object. Requests its size and version, unless a listing matches an earlier opening.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>> {
        Self::open_by(path, Shared::current()?, Wanted::Version)
    }

    /// Opens an object whose end is read first. If a listing gave the size, a single request fetches the version and
    /// the end.
    pub(crate) fn open_end(path: &Path) -> Result<Arc<Self>> {
        Self::open_by(path, Shared::current()?, Wanted::End)
    }

    /// Opens an object with the given shared memory and requests.
    pub(in crate::store) fn open_by(path: &Path, shared: Arc<Shared>, wanted: Wanted) -> Result<Arc<Self>> {
        let at = Address::parse(path)?;
        let listed = known::take(path, Instant::now());
        if let Some(Opened { meta, place }) = listed.as_ref().and_then(|listed| listed.opened.clone()) {
            return Ok(Self::new(at, meta, place, shared));
        }
        let size = listed.as_ref().map(Listed::size).filter(|&size| size > 0 && wanted == Wanted::End);
        let opened = runtime::wait(async move {
            let by_end = if let Some(size) = size { fetch::open_end(&at, &shared, size).await } else { None };
            match by_end {
                Some(opened) => Ok(opened),
                None => head(&at, &shared).await.map(|(meta, place)| (Self::new(at, meta, place, shared), place)),
            }
        })?;
        let (object, place) = opened.map_err(|failure| failure.error().path(path))?;
        if let Some(listed) = listed {
            listed.keep(Opened { meta: object.meta.clone(), place });
        }
        Ok(object)
    }

    /// Returns true if the object exists and may be read. Some servers hide missing objects by denying access, so a
    /// denied request also returns false.
    pub(crate) fn is_there(path: &Path) -> Result<bool> {
        use object_store::Error as E;
        let at = Address::parse(path)?;
        let (client, key) = (at.bucket.patient.clone(), at.key.clone());
        match patiently(async move { client.head(&key).await })? {
            Ok(_) => Ok(true),
            Err(E::NotFound { .. } | E::PermissionDenied { .. } | E::Unauthenticated { .. }) => Ok(false),
            Err(error) => Err(given_up(&error).path(at.path())),
        }
    }

    pub(in crate::store) fn new(at: Address, meta: ObjectMeta, place: u128, shared: Arc<Shared>) -> Arc<Self> {
        let is_versioned = meta.e_tag.is_some() || meta.version.is_some() || meta.last_modified.timestamp_millis() != 0;
        let key = key(place, &meta, is_versioned);
        let (last, streak) = (AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { at, meta, key, is_versioned, shared, last, streak })
    }

    /// Returns the cache of blocks for other runs and processes. Returns `None` without a cache, or if the object has
    /// no version mark.
    pub(in crate::store) fn disk(&self) -> Option<&Arc<Disk>> {
        self.shared.disk.as_ref().filter(|_| self.is_versioned)
    }

    /// Returns a hash of the URL and the version, as a key for facts about the object. Returns `None` if the object has
    /// no version mark.
    pub(crate) fn known_as(&self) -> Option<u64> {
        self.is_versioned.then_some(self.key as u64)
    }

    pub(crate) fn len(&self) -> u64 {
        self.meta.size
    }

    /// Returns a hash of the version.
    pub(crate) fn hash(&self) -> u64 {
        xxh3_64(version(&self.meta).as_bytes())
    }

    /// Reads a range, which must be within the object. Returns a view if the range is inside a block and covers at
    /// least half a block. Otherwise returns a copy.
    pub(crate) fn read(self: &Arc<Self>, range: Range<u64>) -> Result<Buffer> {
        let len = range.end - range.start;
        let mut pieces = self.pieces(range);
        let first = pieces.next().unwrap_or(Ok(Buffer::EMPTY))?;
        if first.len() as u64 == len {
            return Ok(if len >= BLOCK / 2 { first } else { Buffer::copy_from(first.as_bytes()) });
        }
        let mut whole = Room::new(len).map_err(|e| e.path(self.at.path()))?;
        for piece in std::iter::once(Ok(first)).chain(pieces) {
            whole.fill(piece?.as_bytes()).map_err(|e| e.path(self.at.path()))?;
        }
        Ok(whole.share())
    }

    /// Returns a range in pieces, without a copy. Each piece ends at the end of its block or of the range.
    pub(crate) fn pieces(self: &Arc<Self>, range: Range<u64>) -> impl Iterator<Item = Result<Buffer>> {
        let blocks = range.start / BLOCK..range.end.div_ceil(BLOCK);
        let goes_on = !range.is_empty() && self.is_in_order(blocks.start);
        let end = if goes_on { self.blocks() } else { blocks.end };
        blocks.map(move |block| {
            let (bytes, first) = (self.block(block, block..end)?, block * BLOCK);
            let inside = range.start.saturating_sub(first)..(range.end - first).min(BLOCK);
            Ok(bytes.slice(inside.start as usize..inside.end as usize).unwrap_or(Buffer::EMPTY))
        })
    }

    /// Returns the bytes from `at` to the end of their block, for a sequential read of the whole object. Fetches the
    /// next blocks meanwhile. Makes the previous block the first to evict.
    pub(crate) fn read_on(self: &Arc<Self>, at: u64) -> Result<Buffer> {
        let block = at / BLOCK;
        let bytes = self.block(block, block..self.blocks())?;
        if let Some(passed) = block.checked_sub(1) {
            self.shared.blocks.release(self.key_of(passed));
        }
        Ok(bytes.slice((at % BLOCK) as usize..bytes.len()).unwrap_or(Buffer::EMPTY))
    }

    /// Starts fetching ranges that will be read soon, within the available memory.
    pub(crate) fn fetch(self: &Arc<Self>, ranges: &[Range<u64>]) {
        if !self.shared.origin.is_here() {
            return;
        }
        let mut room = self.shared.blocks.room();
        let mut blocks: Vec<u64> = Vec::new();
        for range in ranges.iter().filter(|range| !range.is_empty() && range.end <= self.len()) {
            let wanted = range.start / BLOCK..range.end.div_ceil(BLOCK);
            room = room.saturating_sub(wanted.end - wanted.start);
            if room == 0 {
                break;
            }
            blocks.extend(wanted);
        }
        blocks.sort_unstable();
        blocks.dedup();
        self.begin(blocks.into_iter());
    }

    /// Announces the read of a range, after all ranges announced before. The range is fetched once memory is available,
    /// unless `wanted` has expired by then.
    pub(crate) fn will_read(self: &Arc<Self>, range: Range<u64>, wanted: &Weak<()>) {
        if !range.is_empty() && range.end <= self.len() && self.shared.origin.is_here() {
            self.shared.ahead.push(self, range.start / BLOCK..range.end.div_ceil(BLOCK), wanted);
        }
    }

    /// Starts fetching [announced](Self::will_read) ranges, within the available memory.
    pub(crate) fn go_on(&self) {
        if !self.shared.origin.is_here() {
            return;
        }
        self.shared.ahead.go_on(|| self.shared.blocks.room());
    }

    /// Returns true if recent reads look sequential, so that the next blocks will probably be read.
    fn is_in_order(&self, block: u64) -> bool {
        if shared::is_one_of_many() {
            return false;
        }
        let last = self.last.swap(block, Relaxed);
        if block.abs_diff(last) > NEAR {
            self.streak.store(0, Relaxed);
            return false;
        }
        // Repeated reads of a block are no evidence.
        let streak = if block > last { self.streak.fetch_add(1, Relaxed) } else { self.streak.load(Relaxed) };
        streak >= STREAK
    }

    fn blocks(&self) -> u64 {
        self.len().div_ceil(BLOCK)
    }

    pub(in crate::store) fn key_of(&self, block: u64) -> Key {
        (self.key, block)
    }

    /// Returns the byte range of a block.
    pub(in crate::store) fn range_of(&self, block: u64) -> Range<u64> {
        block * BLOCK..self.len().min((block + 1) * BLOCK)
    }

    /// Returns a block. Starts fetching some blocks of `follow`, and announced ranges that now have room.
    fn block(self: &Arc<Self>, block: u64, follow: Range<u64>) -> Result<Buffer> {
        let bytes = self.take(block, follow)?;
        self.go_on();
        Ok(bytes)
    }

    fn take(self: &Arc<Self>, block: u64, follow: Range<u64>) -> Result<Buffer> {
        self.shared.origin.check("an open object of a store").map_err(|e| e.path(self.at.path()))?;
        count(&COUNTS.read, 1);
        // At the first block of a request, also start the next requests.
        let is_alone = follow.end == block + 1 || !block.is_multiple_of(PIECE);
        if let Some(bytes) = is_alone.then(|| self.shared.blocks.get(self.key_of(block))).flatten() {
            return Ok(bytes);
        }
        // Start whole requests at once, not single blocks.
        let ahead = AHEAD.min(self.shared.blocks.room()).max(1);
        let end = (block + ahead).next_multiple_of(PIECE).min(follow.end);
        loop {
            self.begin(block..end);
            let (key, start) = (self.key_of(block), Instant::now());
            let found = self.shared.blocks.wait(key);
            let time = start.elapsed();
            if time > MOMENT {
                let bytes = found.as_ref().ok().and_then(Option::as_ref).map_or(0, Buffer::len);
                waited_for_store(time, self.shared.blocks.take_repeats(key), bytes as u64);
            }
            if let Some(bytes) = found.map_err(|failure| failure.error().path(self.at.path()))? {
                return Ok(bytes);
            }
        }
    }

    /// Starts fetching all blocks that are neither cached nor in flight. The blocks must be sorted.
    pub(in crate::store) fn begin(self: &Arc<Self>, blocks: impl Iterator<Item = u64>) {
        let mut run: Option<Range<u64>> = None;
        for block in blocks.filter(|&block| self.shared.blocks.claim(self.key_of(block))) {
            match &mut run {
                Some(run) if run.end == block && run.end - run.start < PIECE => run.end += 1,
                _ => {
                    if let Some(full) = run.replace(block..block + 1) {
                        fetch::begin(self.clone(), full);
                    }
                }
            }
        }
        if let Some(last) = run {
            fetch::begin(self.clone(), last);
        }
    }

    /// Checks that a response is about the pinned version.
    pub(in crate::store) fn check(&self, meta: &ObjectMeta) -> Result<(), Failure> {
        if meta.size != self.meta.size {
            return Err(changed(&format!("it has {} bytes now, and had {}", meta.size, self.meta.size)));
        }
        if version(meta) == version(&self.meta) { Ok(()) } else { Err(changed("the server has another version of it")) }
    }

    /// Returns options that make the server reject another version. Weak ETags are omitted, because they never match.
    pub(in crate::store) fn pinned(&self, range: Range<u64>) -> GetOptions {
        let if_match = self.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
        GetOptions { if_match, range: Some(GetRange::Bounded(range)), ..GetOptions::default() }
    }
}

/// Returns the version mark: the ETag, or else the time of the last change.
fn version(meta: &ObjectMeta) -> String {
    meta.e_tag.clone().unwrap_or_else(|| format!("changed at {}", meta.last_modified.timestamp_millis()))
}

/// Returns the key of an object's blocks, from its location and all version marks. Without a version mark, each opening
/// has separate blocks, because the contents of the URL may have changed.
fn key(place: u128, meta: &ObjectMeta, is_versioned: bool) -> u128 {
    static OPENED: AtomicU64 = AtomicU64::new(0);
    let mut hasher = Xxh3::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(&place.to_le_bytes());
    add(&meta.size.to_le_bytes());
    for tag in [&meta.e_tag, &meta.version] {
        add(tag.as_deref().unwrap_or_default().as_bytes());
    }
    add(&meta.last_modified.timestamp_millis().to_le_bytes());
    if !is_versioned {
        add(&OPENED.fetch_add(1, Relaxed).to_le_bytes());
    }
    hasher.digest128()
}

/// Maximum size of an object in bytes, low enough that computed positions do not overflow.
const LARGEST: u64 = 1 << 62;

/// Requests the size and the version. Also returns a hash of the requested URL.
async fn head(at: &Address, shared: &Shared) -> Result<(ObjectMeta, u128), Failure> {
    let mut attempts = Attempts::new(&shared.options);
    // A signed URL is valid for a single method, and some servers only support GET. A refusal explains its reason in
    // the body, which responses to HEAD do not have.
    let mut options = GetOptions { head: true, ..GetOptions::default() };
    loop {
        let (answer, told) = {
            let _permit = shared.requests.acquire().await;
            let attempt = attempts.begin(Instant::now());
            let request = at.bucket.reader.get_opts(&at.key, options.clone());
            let answer = listening(at.exact.clone(), attempt.within(request)).await;
            attempts.end(&attempt, Instant::now());
            answer
        };
        let fault = match answer {
            Ok(Ok(answer)) if answer.meta.size > LARGEST => {
                let text = format!("the server reports {} bytes, more than any object can have", answer.meta.size);
                return Err(Failure::new(ErrorKind::Data, text));
            }
            Ok(Ok(answer)) => return Ok((answer.meta, told.place)),
            Ok(Err(error)) if options.head && may_tell_more(at, &error, &told) => {
                options = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
                continue;
            }
            Ok(Err(error)) => Fault::of(&error, &told),
            Err(stopped) => Fault::again(format!("no answer in {stopped:?}")),
        };
        attempts.next(fault).await?;
    }
}

/// Returns true if a GET request may succeed after a refused HEAD request, or may return a reason.
fn may_tell_more(at: &Address, error: &object_store::Error, told: &Told) -> bool {
    if super::hub::refusal(error).is_some() {
        return false;
    }
    let _ = error;
    let is_refused = told.status.is_some_and(|status| status < 429 && (status != 404 || !at.is_web()));
    is_refused && !told.refused.has_code()
}
