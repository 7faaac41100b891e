//! Prefetching of upcoming ranges, in order, within the memory budget.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use super::object::{Object, PIECE};
use crate::sync::Locked;

/// Queue of blocks in the order of their upcoming reads.
///
/// Each read of a block frees room, which starts the next fetches. No other limit on blocks in flight is needed.
#[derive(Debug, Default)]
pub(in crate::store) struct Ahead {
    queue: Mutex<VecDeque<Next>>,
    len: AtomicUsize,
}

#[derive(Debug)]
struct Next {
    object: Weak<Object>,
    blocks: Range<u64>,
    /// Reader of the range. The range is skipped if this handle has expired.
    wanted: Weak<()>,
}

/// Maximum number of queued ranges. Further ranges are not prefetched; they are fetched when they are read.
const MOST: usize = 1 << 17;

impl Ahead {
    /// Appends a range of blocks to the queue. If the range continues the last range of the queue for `object` and
    /// `wanted`, extends the last range instead.
    pub(in crate::store) fn push(&self, object: &Arc<Object>, blocks: Range<u64>, wanted: &Weak<()>) {
        let mut queue = self.queue.locked();
        if let Some(last) = queue.back_mut()
            && last.object.as_ptr() == Arc::as_ptr(object)
            && last.wanted.ptr_eq(wanted)
            && (last.blocks.start..=last.blocks.end).contains(&blocks.start)
        {
            last.blocks.end = last.blocks.end.max(blocks.end);
        } else if queue.len() < MOST {
            queue.push_back(Next { object: Arc::downgrade(object), blocks, wanted: wanted.clone() });
        }
        self.len.store(queue.len(), Relaxed);
    }

    /// Starts fetching queued blocks if `room` is at least one full request ([`PIECE`] blocks).
    #[inline]
    pub(in crate::store) fn go_on(&self, room: impl Fn() -> u64) {
        if self.len.load(Relaxed) > 0 && room() >= PIECE {
            self.begin(room);
        }
    }

    #[cold]
    fn begin(&self, room: impl Fn() -> u64) {
        let mut queue = self.queue.locked();
        loop {
            let most = room();
            if most < PIECE {
                break;
            }
            let Some(next) = queue.front_mut() else { break };
            let object = next.object.upgrade().filter(|_| next.wanted.strong_count() > 0);
            let Some(object) = object else {
                queue.pop_front();
                continue;
            };
            let end = next.blocks.end.min(next.blocks.start + most);
            // Align the end to `PIECE`, like the requests of sequential reads.
            let end = if end < next.blocks.end { end / PIECE * PIECE } else { end };
            object.begin(next.blocks.start..end);
            next.blocks.start = next.blocks.start.max(end);
            if next.blocks.is_empty() {
                queue.pop_front();
            }
        }
        self.len.store(queue.len(), Relaxed);
    }
}
