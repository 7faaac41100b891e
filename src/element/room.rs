//! Vectors of bytes, whose memory is pooled.

use std::sync::{Arc, Mutex};

use super::buffer::Buffer;
use super::spare::{LEAST, Lent, Pool, Spare, is_large, rounded};
use crate::fork::PerProcess;

/// The pool of byte vectors, which are cleared and appended to.
static BYTES: Pool<u8> = PerProcess::new(|| Mutex::new(Spare::new()));

/// Returns an empty vector with room for `len` bytes; [`share`] it after writing them.
pub(crate) fn room(len: usize) -> Vec<u8> {
    // Releases the lock before the allocation, so that no other thread waits for the system.
    used(len).unwrap_or_else(|| Vec::with_capacity(if is_large(len) { rounded(len) } else { len }))
}

/// Takes an empty vector with room for `len` bytes from the pool, if available.
pub(crate) fn used(len: usize) -> Option<Vec<u8>> {
    let mut room = if is_large(len) { BYTES.lock().take(rounded(len)) } else { None }?;
    room.clear();
    Some(room)
}

/// Turns the bytes into a shared [`Buffer`], whose memory returns to the pool when the last view is dropped.
pub(crate) fn share(bytes: Vec<u8>) -> Buffer {
    if bytes.capacity() < LEAST {
        return Buffer::from_vec(bytes);
    }
    Buffer::from_owner(Arc::new(Lent::new(bytes, &BYTES)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_writes_to_what_is_viewed() {
        let len = (1 << 20) + 12_345;
        let shared = |byte| {
            let mut bytes = room(len);
            assert!(bytes.is_empty());
            bytes.resize(len, byte);
            share(bytes)
        };
        let first = shared(1);
        let view = first.slice(7..9).unwrap();
        drop(first);
        (2..9).for_each(|byte| assert_eq!(shared(byte).as_bytes(), vec![byte; len]));
        assert_eq!(view.as_bytes(), [1, 1]);
        assert_eq!(share(vec![5; 10]).as_bytes(), [5; 10]);
    }
}
