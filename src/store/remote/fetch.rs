//! Fetches of blocks: one request per run of blocks, resumed after an interruption.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use futures_util::StreamExt;
use object_store::{GetOptions, GetRange, GetResult};
use tokio::task::spawn_blocking;

use super::blocks::BLOCK;
use super::bucket::Address;
use super::counts::{COUNTS, count};
use super::object::{END, Object};
use super::retry::{Attempt, Attempts, Failure, Fault};
use super::runtime;
use super::service::{Told, listening};
use super::shared::Shared;
use crate::element::{Buffer, room};
use crate::error::ErrorKind;

/// Starts fetching claimed blocks. Each block either lands or fails.
pub(in crate::store) fn begin(object: Arc<Object>, blocks: Range<u64>) {
    let run = Run::new(object, blocks);
    // A dropped run fails its blocks, for example if the threads could not be started.
    let _ = runtime::spawn(run.fetch());
}

/// Opens an object by requesting its last [`END`] bytes, if a listing gave its `size` in bytes. Returns the object and
/// a hash of the requested URL. Returns `None` if the request fails or the size differs.
pub(in crate::store) async fn open_end(at: &Address, shared: &Arc<Shared>, size: u64) -> Option<(Arc<Object>, u128)> {
    let blocks = size.saturating_sub(END) / BLOCK..size.div_ceil(BLOCK);
    let _body = shared.bodies.acquire_many((blocks.end - blocks.start) as u32).await;
    let _permit = shared.requests.acquire().await;
    let attempt = Attempts::new(&shared.options).begin(Instant::now());
    let range = Some(GetRange::Bounded(blocks.start * BLOCK..size));
    let options = GetOptions { range, ..GetOptions::default() };
    let (answer, told) = listening(at.exact.clone(), attempt.within(at.bucket.reader.get_opts(&at.key, options))).await;
    let answer = answer.ok()?.ok().filter(|answer| answer.meta.size == size)?;
    let object = Object::new(at.clone(), answer.meta.clone(), told.place, shared.clone());
    let claimed: Vec<u64> = blocks.clone().filter(|&block| shared.blocks.claim(object.key_of(block))).collect();
    // The missing blocks are adjacent, because there are at most two blocks.
    let missing = claimed.first().map_or(0..0, |&first| first..first + claimed.len() as u64);
    let mut run = Run::new(object.clone(), missing.clone());
    if missing != blocks || run.receive(answer, &attempt, &told).await.is_err() {
        // Fetch other missing blocks, or the rest of an interrupted body.
        let _ = runtime::spawn(run.go_on());
    }
    Some((object, told.place))
}

/// Run of blocks in flight.
struct Run {
    object: Arc<Object>,
    /// Blocks that have not arrived yet.
    blocks: Range<u64>,
    /// Received bytes of the first block.
    begun: Vec<u8>,
    /// Length of the first block, in bytes.
    len: usize,
    failure: Option<Failure>,
}

impl Drop for Run {
    fn drop(&mut self) {
        let interrupted = || Failure::new(ErrorKind::Io, "reading was interrupted");
        let failure = self.failure.take().unwrap_or_else(interrupted);
        self.blocks.clone().for_each(|block| self.object.shared.blocks.fail(self.object.key_of(block), &failure));
    }
}

impl Run {
    fn new(object: Arc<Object>, blocks: Range<u64>) -> Self {
        let mut run = Self { object, blocks, begun: Vec::new(), len: 0, failure: None };
        run.begin_block();
        run
    }

    /// Allocates the buffer of the next block.
    fn begin_block(&mut self) {
        let range = self.object.range_of(self.blocks.start);
        self.len = if self.blocks.is_empty() { 0 } else { (range.end - range.start) as usize };
        self.begun = room::room(self.len);
    }

    /// Returns the byte range that is still missing.
    fn missing(&self) -> Range<u64> {
        let end = self.object.range_of(self.blocks.end - 1).end;
        self.blocks.start * BLOCK + self.begun.len() as u64..end
    }

    async fn fetch(mut self) {
        self.take_from_disk().await;
        self.go_on().await;
    }

    /// Fetches the missing blocks, with retries.
    async fn go_on(mut self) {
        if self.blocks.is_empty() {
            return;
        }
        let mut attempts = Attempts::new(&self.object.shared.options);
        let mut begun = self.missing().start;
        while let Err(fault) = self.attempt(&mut attempts).await {
            let missing = self.missing();
            if missing.start > begun {
                attempts.progressed();
                begun = missing.start;
            }
            count(&COUNTS.repeated, 1);
            self.object.shared.blocks.repeat(self.blocks.clone().map(|block| self.object.key_of(block)));
            if let Err(failure) = attempts.next(fault).await {
                let message = format!("bytes {} to {}: {}", missing.start, missing.end, failure.message);
                self.failure = Some(Failure { message, ..failure });
                return;
            }
        }
    }

    /// Lands the first blocks from the disk cache. Splits the run at the next cached block, and leaves the rest to
    /// another run.
    async fn take_from_disk(&mut self) {
        let Some(disk) = self.object.disk().cloned() else { return };
        while !self.blocks.is_empty() {
            let (disk, key) = (disk.clone(), self.object.key_of(self.blocks.start));
            let len = self.len as u64;
            let Ok(Some(bytes)) = spawn_blocking(move || disk.read(key, len)).await else { break };
            count(&COUNTS.from_disk, 1);
            self.land(bytes);
        }
        let behind = self.blocks.clone().skip(1);
        if let Some(kept) = behind.into_iter().find(|&block| disk.has(self.object.key_of(block))) {
            let end = std::mem::replace(&mut self.blocks.end, kept);
            begin(self.object.clone(), kept..end);
        }
    }

    /// Sends a single request for all missing blocks. Received blocks are kept if the request fails.
    async fn attempt(&mut self, attempts: &mut Attempts) -> Result<(), Fault> {
        let object = self.object.clone();
        let _body = object.shared.bodies.acquire_many((self.blocks.end - self.blocks.start) as u32).await;
        let _permit = object.shared.requests.acquire().await;
        // Start the clock after the permits: the server did not cause that wait.
        let attempt = attempts.begin(Instant::now());
        let done = self.ask(&object, &attempt).await;
        attempts.end(&attempt, Instant::now());
        done
    }

    async fn ask(&mut self, object: &Object, attempt: &Attempt) -> Result<(), Fault> {
        let request = object.at.bucket.reader.get_opts(&object.at.key, object.pinned(self.missing()));
        let (answer, told) = listening(object.at.exact.clone(), attempt.within(request)).await;
        let answer = answer.map_err(|stopped| Fault::again(format!("no answer in {stopped:?}")))?;
        let answer = answer.map_err(|error| Fault::of(&error, &told))?;
        object.check(&answer.meta).map_err(Fault::Final)?;
        self.receive(answer, attempt, &told).await
    }

    /// Receives the body of a response to a request for all missing blocks.
    async fn receive(&mut self, answer: GetResult, attempt: &Attempt, told: &Told) -> Result<(), Fault> {
        let mut body = answer.into_stream();
        loop {
            match attempt.within(body.next()).await {
                Ok(Some(Ok(bytes))) => self.take(&bytes)?,
                Ok(Some(Err(error))) => return Err(Fault::of(&error, told)),
                Ok(None) if self.blocks.is_empty() => return Ok(()),
                Ok(None) => return Err(Fault::again("the answer ends too early")),
                Err(_) if attempt.is_over(Instant::now()) => return Err(Fault::again("the rest comes too slowly")),
                Err(stopped) => return Err(Fault::again(format!("nothing came for {stopped:?}"))),
            }
        }
    }

    /// Appends bytes to the current block. Lands each complete block.
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            if self.blocks.is_empty() {
                return Err(Fault::again("the answer is longer than requested"));
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.len - self.begun.len()));
            self.begun.extend_from_slice(now);
            bytes = later;
            if self.begun.len() == self.len {
                let bytes = room::share(std::mem::take(&mut self.begun));
                count(&COUNTS.fetched, 1);
                count(&COUNTS.bytes, bytes.len() as u64);
                self.keep(&bytes);
                self.land(bytes);
            }
        }
        Ok(())
    }

    /// Writes the first block to the disk cache, unless too many writes are pending.
    fn keep(&self, bytes: &Buffer) {
        let Some(disk) = self.object.disk().cloned() else { return };
        let Ok(permit) = disk.writes.clone().try_acquire_owned() else { return };
        let (key, bytes) = (self.object.key_of(self.blocks.start), bytes.clone());
        drop(spawn_blocking(move || {
            disk.write(key, bytes.as_bytes());
            drop(permit);
        }));
    }

    /// Lands the first block and starts the next.
    fn land(&mut self, bytes: Buffer) {
        let (object, block) = (self.object.clone(), self.blocks.start);
        self.blocks.start += 1;
        self.begin_block();
        object.shared.blocks.land(object.key_of(block), bytes);
    }
}
