//! Messages between two processes, over an unnamed pair of connected sockets.
//!
//! A message on the wire is its length in four bytes, followed by its `postcard` encoding. Arrived bytes are buffered
//! until the message is complete. A claimed length alone therefore allocates no memory.
//!
//! The `ipc-channel` crate (0.23.1) is not used. A child connects to its one-shot server by a name in the file system, to
//! which other processes can connect, too. The server waits forever if the child dies before it connects
//! (<https://github.com/servo/ipc-channel/issues/201>). Its receiver has a timeout, but no wait for a message or the death
//! of a process, which is a single `poll` here.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::sys::process::wait_any;
use crate::sync::Locked;

/// Maximum length of a message in bytes: far above any real message, far below the length that a corrupt process could
/// claim.
const MOST: usize = 64 << 20;
/// Bytes per read.
const PIECE: usize = 64 << 10;
/// Time that a process may take to exit after it closed its end.
const GRACE: Duration = Duration::from_secs(1);

/// One end of a connection. Any thread of the process may send; one thread receives at a time.
pub(crate) struct Channel {
    socket: UnixStream,
    /// Held while a message is written.
    out: Mutex<()>,
    inbox: Mutex<Inbox>,
}

/// Received bytes that were not decoded yet.
#[derive(Default)]
struct Inbox {
    bytes: Vec<u8>,
    /// Bytes at the front that were decoded.
    read: usize,
    /// A descriptor that arrived with a message.
    file: Option<OwnedFd>,
}

/// Reason why no more messages can be received.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken {
    /// The other end is closed.
    #[error("the connection is closed")]
    Closed,
    /// The other process has ended.
    #[error("the process has ended")]
    Ended,
    /// The deadline has passed.
    #[error("nothing came in time")]
    Late,
    /// The received bytes are not a message.
    #[error("{0}")]
    Nonsense(String),
    /// The system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Channel {
    /// Returns the two ends of a new connection; the second end is for another process.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        Ok((Self::over(ours.into()), theirs.into()))
    }

    /// Returns the end over the inherited `socket`.
    pub(crate) fn over(socket: OwnedFd) -> Self {
        Self { socket: socket.into(), out: Mutex::new(()), inbox: Mutex::default() }
    }

    /// Sends a message after any sends of other threads. Blocks while the other end has a full buffer of unread bytes.
    ///
    /// # Errors
    /// If the other end is closed, or the timeout of [`limit_sends`](Self::limit_sends) has passed.
    pub(crate) fn send<T: Serialize>(&self, message: &T) -> io::Result<()> {
        self.send_with(message, None)
    }

    /// Sends a message with a descriptor; the other end [takes](Self::take_file) a copy of the descriptor.
    pub(crate) fn send_with<T: Serialize>(&self, message: &T, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let bytes = postcard::to_extend(message, vec![0; 4]).map_err(io::Error::other)?;
        let len = u32::try_from(bytes.len() - 4).ok().filter(|&len| len as usize <= MOST);
        let len = len.ok_or_else(|| io::Error::other(format!("a message of {} bytes is too long", bytes.len())))?;
        let mut bytes = bytes;
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        let _turn = self.out.locked();
        write_all(self.socket.as_fd(), &bytes, file)
    }

    /// Sets a timeout for every later write; `None` removes the timeout.
    pub(crate) fn limit_sends(&self, time: Option<Duration>) -> io::Result<()> {
        self.socket.set_write_timeout(time)
    }

    /// Closes the connection in both directions for every holder of either end, and wakes waiting threads.
    pub(crate) fn close(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// [`Broken::Closed`], [`Broken::Nonsense`] or [`Broken::Io`].
    pub(crate) fn recv<T: DeserializeOwned>(&self) -> Result<T, Broken> {
        let mut inbox = self.inbox();
        loop {
            if let Some(message) = inbox.next()? {
                return Ok(message);
            }
            match inbox.fill(&self.socket, RecvFlags::CMSG_CLOEXEC) {
                Ok(0) => return Err(Broken::Closed),
                Ok(_) => {}
                // The other end was closed before it had read all.
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Err(Broken::Closed),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Waits for the next message of the process with the pidfd `process`. Messages sent before the process ended come
    /// first.
    ///
    /// # Errors
    /// [`Broken`]; no later message can be received after an error.
    pub(crate) fn recv_from<T: DeserializeOwned>(
        &self,
        process: BorrowedFd<'_>,
        deadline: Option<Instant>,
    ) -> Result<T, Broken> {
        let mut inbox = self.inbox();
        loop {
            if let Some(message) = inbox.next()? {
                return Ok(message);
            }
            let seen = wait_any([self.socket.as_fd(), process], deadline)?.ok_or(Broken::Late)?;
            // The last message is already in the socket if the end of the process was seen.
            match inbox.fill(&self.socket, RecvFlags::DONTWAIT) {
                Ok(0) => return Err(closed(process)),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock && seen == 0 => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(Broken::Ended),
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Err(closed(process)),
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Takes the descriptor that came with an earlier message; returns `None` the second time.
    pub(crate) fn take_file(&self) -> Option<OwnedFd> {
        self.inbox().file.take()
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.locked()
    }
}

/// Returns the error for a closed end: the process is about to exit, or has lost its socket.
fn closed(process: BorrowedFd<'_>) -> Broken {
    match wait_any([process], Some(Instant::now() + GRACE)) {
        Ok(Some(_)) => Broken::Ended,
        Ok(None) => Broken::Closed,
        Err(e) => Broken::Io(e),
    }
}

impl Inbox {
    /// Returns the next message, or `None` if it is incomplete.
    fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Broken> {
        let arrived = &self.bytes[self.read..];
        let Some((head, rest)) = arrived.split_first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_le_bytes(*head) as usize;
        if len > MOST {
            return Err(Broken::Nonsense(format!("a message of {len} bytes")));
        }
        let Some(bytes) = rest.get(..len) else { return Ok(None) };
        let message = match postcard::take_from_bytes(bytes) {
            Ok((message, [])) => message,
            Ok((_, rest)) => return Err(Broken::Nonsense(format!("{} bytes after a message", rest.len()))),
            Err(e) => return Err(Broken::Nonsense(e.to_string())),
        };
        self.read += 4 + len;
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.bytes.shrink_to(PIECE);
            self.read = 0;
        }
        Ok(Some(message))
    }

    /// Reads the available bytes, at most [`PIECE`]; returns 0 if the other end is closed.
    fn fill(&mut self, socket: &UnixStream, flags: RecvFlags) -> io::Result<usize> {
        self.bytes.drain(..std::mem::take(&mut self.read));
        let start = self.bytes.len();
        self.bytes.resize(start + PIECE, 0);
        let result = self.receive(socket, flags, start);
        self.bytes.truncate(start + result.as_ref().copied().unwrap_or(0));
        result
    }

    fn receive(&mut self, socket: &UnixStream, flags: RecvFlags, start: usize) -> io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        loop {
            // Only a worker accepts descriptors. The kernel closes any descriptor that a worker sends.
            let mut along = match flags.contains(RecvFlags::CMSG_CLOEXEC) {
                true => RecvAncillaryBuffer::new(&mut space),
                false => RecvAncillaryBuffer::default(),
            };
            let mut room = [IoSliceMut::new(&mut self.bytes[start..])];
            match rustix::net::recvmsg(socket, &mut room, &mut along, flags) {
                Ok(got) => {
                    for message in along.drain() {
                        if let RecvAncillaryMessage::ScmRights(files) = message {
                            self.file = files.last().or(self.file.take());
                        }
                    }
                    return Ok(got.bytes);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}

/// Writes all of `bytes`, with a copy of `file` along with the first. A closed socket is an error and never raises a
/// signal.
pub(crate) fn write_all(socket: BorrowedFd<'_>, mut bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut files = file.as_ref().map(std::slice::from_ref);
    while !bytes.is_empty() {
        let mut along = SendAncillaryBuffer::new(&mut space);
        if let Some(files) = files {
            along.push(SendAncillaryMessage::ScmRights(files));
        }
        match rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut along, SendFlags::NOSIGNAL) {
            Ok(sent) => (bytes, files) = (&bytes[sent..], None),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

debug_as!(Channel, |self, f| f.debug_tuple("Channel").field(&self.socket).finish());

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use super::*;
    use crate::workers::sys::process::pidfd;

    fn both() -> (Channel, Channel) {
        let (ours, theirs) = Channel::pair().unwrap();
        (ours, Channel::over(theirs))
    }

    #[test]
    fn messages_of_any_size_arrive_whole_and_in_order() {
        let (ours, theirs) = both();
        let messages: Vec<String> = [0, 1, 1000, 70_000, 3_000_000, 5].map(|len| "é".repeat(len)).into();
        std::thread::scope(|scope| {
            scope.spawn(|| messages.iter().for_each(|message| ours.send(message).unwrap()));
            messages.iter().for_each(|message| assert!(theirs.recv::<String>().unwrap() == *message));
        });
        drop(ours);
        assert!(matches!(theirs.recv::<String>(), Err(Broken::Closed)));
        assert_eq!(theirs.send(&1u8).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn an_end_that_is_closed_with_words_unread_is_closed() {
        let (ours, theirs) = both();
        theirs.send(&1u8).unwrap();
        drop(ours);
        assert!(matches!(theirs.recv::<u8>(), Err(Broken::Closed)));
    }

    #[test]
    fn a_descriptor_comes_with_its_message() {
        let (ours, theirs) = both();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"inside").unwrap();
        file.rewind().unwrap();
        ours.send(&1u8).unwrap();
        ours.send_with(&2u8, Some(file.as_fd())).unwrap();
        assert_eq!((theirs.recv::<u8>().unwrap(), theirs.recv::<u8>().unwrap()), (1, 2));
        let mut text = String::new();
        std::fs::File::from(theirs.take_file().unwrap()).read_to_string(&mut text).unwrap();
        assert!(text == "inside" && theirs.take_file().is_none());
    }

    #[test]
    fn what_is_no_message_is_an_error_and_takes_no_memory() {
        let myself = pidfd(std::process::id()).unwrap();
        for (bytes, words) in [
            (vec![0xff; 4], "a message of 4294967295 bytes"),
            (vec![2, 0, 0, 0, 7, 7], "1 bytes after a message"),
            (vec![0, 0, 0, 0], "end of buffer"),
        ] {
            let (ours, theirs) = both();
            write_all(ours.socket.as_fd(), &bytes, None).unwrap();
            let error = theirs.recv_from::<u8>(myself.as_fd(), None).unwrap_err();
            assert!(matches!(&error, Broken::Nonsense(what) if what.to_lowercase().contains(words)), "{error}");
        }
        // A long length is claimed, but the bytes never arrive.
        let (ours, theirs) = both();
        write_all(ours.socket.as_fd(), &[0, 0, 0, 3, 1], None).unwrap();
        let soon = Instant::now() + Duration::from_millis(20);
        assert!(matches!(theirs.recv_from::<u8>(myself.as_fd(), Some(soon)), Err(Broken::Late)));
        assert!(theirs.inbox().bytes.capacity() <= 4 * PIECE);
    }

    #[test]
    fn a_send_that_nobody_reads_ends_in_time() {
        let (ours, _theirs) = both();
        ours.limit_sends(Some(Duration::from_millis(20))).unwrap();
        let error = ours.send(&vec![0u8; 8 << 20]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }
}
