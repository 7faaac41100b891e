//! The server of live views: a single thread that sends a frame per second and sleeps if there are no viewers.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Frame;
use super::meeting::{self, Place};
use crate::cx::{Cursor, Interval, Update};
use crate::error::{Error, ErrorKind, Result};
use crate::live::Live;
use crate::report::Depth;

/// Maximum number of viewers.
const MOST_VIEWERS: usize = 8;
/// Number of intervals shown to a new viewer: a minute.
const SHOWN: usize = 600;
/// Time between frames; `LOOK` is the time between two polls of the viewers.
const EVERY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);
/// Time after which a viewer that reads nothing is dropped.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum length of a displayed command line, in characters.
const MOST_LETTERS: usize = 200;

/// A server that listens until it is dropped.
#[derive(Debug)]
pub(crate) struct TopServer {
    pub(crate) place: Place,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TopServer {
    /// Starts a server that shows `live` to viewers of the same user.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if there is no safe folder for the socket, or if the thread cannot start.
    pub(crate) fn start(live: Arc<Live>) -> Result<Self> {
        let (listener, place) = meeting::listen()?;
        let over = Arc::new(AtomicBool::new(false));
        let (shown, viewers, start) = (VecDeque::new(), Vec::new(), Instant::now());
        let mut server = Server { live, cursor: Cursor::default(), shown, viewers, start };
        let is_over = over.clone();
        let thread = std::thread::Builder::new().name("gristmill-top".into());
        let thread = thread.spawn(move || server.run(&listener, &is_over));
        let thread =
            thread.map_err(|e| Error::new(ErrorKind::Io, format!("cannot start the thread of the live view: {e}")))?;
        Ok(Self { place, over, thread: Some(thread) })
    }
}

impl Drop for TopServer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // The thread blocks in `accept` until a viewer connects.
        let called = UnixStream::connect(&self.place.path);
        let _ = std::fs::remove_file(&self.place.path);
        if let (Ok(_), Some(thread)) = (called, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

struct Server {
    live: Arc<Live>,
    cursor: Cursor,
    /// Last intervals, kept for new viewers.
    shown: VecDeque<Interval>,
    viewers: Vec<Viewer>,
    start: Instant,
}

/// A connected viewer.
struct Viewer {
    stream: UnixStream,
    /// Bytes not yet sent; `since` is the time at which the viewer last accepted any.
    unsent: Vec<u8>,
    since: Instant,
    /// Number of latest intervals that the viewer has not been shown.
    behind: usize,
}

impl Server {
    fn run(&mut self, listener: &UnixListener, over: &AtomicBool) {
        let mut next = Instant::now();
        while !over.load(Ordering::Acquire) {
            // Blocks until a viewer connects if there are no viewers.
            let accepted = listener.set_nonblocking(!self.viewers.is_empty()).and_then(|()| listener.accept());
            match accepted {
                Ok((stream, _)) => {
                    if meeting::is_own(&stream) && stream.set_nonblocking(true).is_ok() {
                        if self.viewers.len() == MOST_VIEWERS {
                            // The oldest viewer may have stopped reading.
                            self.viewers.remove(0);
                        }
                        let (unsent, since) = (Vec::new(), Instant::now());
                        self.viewers.push(Viewer { stream, unsent, since, behind: SHOWN });
                        next = Instant::now();
                    }
                }
                // No new viewer: waits until the next poll of the connected viewers.
                Err(_) => std::thread::sleep(LOOK),
            }
            if !self.viewers.is_empty() && Instant::now() >= next {
                next = Instant::now() + EVERY;
                if self.show().is_none() {
                    return;
                }
            }
            self.viewers.retain_mut(Viewer::takes);
        }
    }

    /// Makes a frame for every viewer that has received its previous frame. Returns `None` if the pass is gone.
    fn show(&mut self) -> Option<()> {
        let report = self.live.report(Depth::Named)?;
        let Update { anew, intervals, .. } = self.live.updates(&mut self.cursor, false);
        if anew {
            self.shown.clear();
        }
        let count = intervals.len();
        self.shown.extend(intervals);
        self.shown.drain(..self.shown.len().saturating_sub(SHOWN));
        let (pid, command) = (std::process::id(), command());
        let waiting_s = self.live.waiting().map(|time| time.as_secs_f64());
        let (at_s, buffer) = (self.start.elapsed().as_secs_f64(), report.buffer());
        let mut frame = Frame { pid, command, at_s, waiting_s, buffer, report, intervals: Vec::new() };
        for viewer in &mut self.viewers {
            viewer.behind = (viewer.behind + count).min(self.shown.len());
            if viewer.unsent.is_empty() {
                let behind = std::mem::take(&mut viewer.behind);
                frame.intervals = self.shown.iter().skip(self.shown.len() - behind).cloned().collect();
                viewer.unsent = serde_json::to_vec(&frame).unwrap_or_default();
                viewer.unsent.push(b'\n');
            }
        }
        Some(())
    }
}

impl Viewer {
    /// Sends as much as the socket accepts. Returns true if the viewer stays connected.
    fn takes(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return false,
                Ok(n) => {
                    self.unsent.drain(..n);
                    self.since = Instant::now();
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return self.since.elapsed() < PATIENCE,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// Returns the command line of this process, cut at `MOST_LETTERS` characters.
fn command() -> String {
    let words: Vec<_> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let line = words.join(" ");
    if let Some((end, _)) = line.char_indices().nth(MOST_LETTERS) { format!("{}…", &line[..end]) } else { line }
}
