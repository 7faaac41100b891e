//! Ranges that will be read, in order: as much of them is fetched as there is memory for.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

use super::object::{Object, PIECE};
use crate::sync::Locked;

/// Blocks of objects in the order in which they will be read.
///
/// Whoever reads a block makes room, and what comes next is begun; so no one need know how much may be on its way.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    queue: Mutex<VecDeque<Next>>,
    len: AtomicUsize,
}

#[derive(Debug)]
struct Next {
    object: Weak<Object>,
    blocks: Range<u64>,
    /// Dead where it will not be read after all.
    wanted: Weak<()>,
}

/// Ranges that are kept at most: what is told beyond that is read when it is read.
const MOST: usize = 1 << 17;

impl Ahead {
    /// Something that will be read behind all that was told before.
    pub(super) fn push(&self, object: &Arc<Object>, blocks: Range<u64>, wanted: &Weak<()>) {
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

    /// Begins what comes next, if anything does and there is `room` for as much as one request fetches.
    #[inline]
    pub(super) fn go_on(&self, room: impl Fn() -> u64) {
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
            // Requests end where those of others would.
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
