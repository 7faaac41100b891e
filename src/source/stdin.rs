//! Standard input: bytes that are read once, front to back.

use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Mutex;

use crate::element::Buffer;
use crate::error::{Error, Result};
use crate::place::STDIN;
use crate::sync::Locked;

/// Maximum number of bytes per read.
const PIECE: usize = 1 << 20;

static READ: Mutex<Piped> = Mutex::new(Piped { head: Vec::new(), read: 0, ended: false, turn: Turn::Head });

/// The state of an input that cannot be read again.
struct Piped {
    /// The first bytes, which can be read again before later bytes are read.
    head: Vec<u8>,
    /// Number of bytes that were read.
    read: u64,
    ended: bool,
    turn: Turn,
}

/// The bytes that may be read next.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    /// Any of the first bytes, and bytes after them.
    Head,
    /// Unread bytes.
    Rest,
    /// No bytes, because this process is a worker of another process.
    Nothing,
}

/// Returns true if a path is standard input, and standard input is not a regular file. Such input is read as a stream.
pub(crate) fn is_piped(path: &Path) -> bool {
    path == Path::new(STDIN) && !path.metadata().is_ok_and(|found| found.is_file())
}

/// Rejects standard input in this process from now on, because another process reads it.
pub(crate) fn refuse() {
    READ.locked().turn = Turn::Nothing;
}

/// Returns the first bytes, at most `bytes` of them.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if later bytes were already read.
pub(super) fn head(bytes: usize) -> Result<Buffer> {
    READ.locked().head(&mut io::stdin().lock(), bytes)
}

/// Returns bytes from `at` on; no bytes at the end.
///
/// # Errors
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if these bytes were already read.
pub(super) fn piece(at: u64) -> Result<Buffer> {
    READ.locked().piece(&mut io::stdin().lock(), at)
}

/// Returns an error about standard input.
#[cold]
pub(super) fn refused(text: &str) -> Error {
    Error::unsupported(format!("standard input {text}")).help("write it to a file, and read the file")
}

impl Piped {
    fn head(&mut self, input: &mut impl Read, bytes: usize) -> Result<Buffer> {
        self.check(Turn::Head)?;
        while self.head.len() < bytes && !self.ended {
            let more = self.more(input, bytes - self.head.len())?;
            self.head.extend(more);
        }
        Ok(Buffer::copy_from(&self.head[..bytes.min(self.head.len())]))
    }

    fn piece(&mut self, input: &mut impl Read, at: u64) -> Result<Buffer> {
        let is_next = at == self.read;
        self.check(if is_next && self.turn == Turn::Rest { Turn::Rest } else { Turn::Head })?;
        if is_next {
            // The first bytes cannot be read again from here on.
            (self.turn, self.head) = (Turn::Rest, Vec::new());
            return self.more(input, PIECE).map(Buffer::from_vec);
        }
        Ok(Buffer::copy_from(&self.head[at as usize..]))
    }

    fn check(&self, turn: Turn) -> Result<()> {
        match self.turn {
            Turn::Nothing => Err(refused("is read by the process that started this worker")),
            present if present == turn => Ok(()),
            _ => Err(refused("is read once, and was read already")),
        }
    }

    fn more(&mut self, input: &mut impl Read, most: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; if self.ended { 0 } else { most }];
        let read = loop {
            match input.read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read.map_err(|e| Error::io(e, STDIN))?,
            }
        };
        bytes.truncate(read);
        self.read += read as u64;
        self.ended |= read == 0;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piped() -> Piped {
        Piped { head: Vec::new(), read: 0, ended: false, turn: Turn::Head }
    }

    #[test]
    fn the_head_is_read_again_until_bytes_after_it_are_read() {
        let (mut piped, mut input) = (piped(), b"0123456789".as_slice());
        assert_eq!(piped.head(&mut input, 4).unwrap().as_bytes(), b"0123");
        assert_eq!(piped.head(&mut input, 2).unwrap().as_bytes(), b"01");
        for _ in 0..2 {
            assert_eq!(piped.piece(&mut input, 0).unwrap().as_bytes(), b"0123");
        }
        assert_eq!(piped.piece(&mut input, 4).unwrap().as_bytes(), b"456789");
        for at in [0, 4, 11] {
            let error = piped.piece(&mut input, at).unwrap_err();
            assert_eq!(error.message(), "standard input is read once, and was read already");
        }
        assert!(piped.head(&mut input, 1).is_err());
        for _ in 0..2 {
            assert_eq!(piped.piece(&mut input, 10).unwrap().len(), 0);
        }
    }

    #[test]
    fn the_end_is_after_the_head_too() {
        let (mut piped, mut input) = (piped(), b"01".as_slice());
        assert_eq!(piped.head(&mut input, 4).unwrap().as_bytes(), b"01");
        assert_eq!(piped.piece(&mut input, 0).unwrap().as_bytes(), b"01");
        assert_eq!(piped.piece(&mut input, 2).unwrap().len(), 0);
        assert!(piped.piece(&mut input, 0).is_err());
    }

    #[test]
    fn a_worker_reads_nothing() {
        let mut piped = Piped { turn: Turn::Nothing, ..piped() };
        assert!(piped.head(&mut io::empty(), 1).is_err() && piped.piece(&mut io::empty(), 0).is_err());
    }
}
