//! HTTP endpoint for metrics: a single thread answers `GET /metrics`.
//!
//! A scrape is a few hundred bytes, a few times a minute. An HTTP library would be more code to trust than this module.
//! Any client may connect, so connections, bytes per request and time per connection are limited. No client waits for
//! another.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::Live;
use super::address::{EVERYBODY, Listening};
use super::neighbour::is_same_user;
use crate::error::{Error, ErrorKind, Result};
use crate::report::{CONTENT_TYPE, Depth};

/// Maximum number of connections; a further connection closes the oldest.
const MOST_OPEN: usize = 16;
/// Maximum size of a request in bytes; `MOST_TIME` limits the time of a whole connection.
const MOST_BYTES: usize = 8 << 10;
const MOST_TIME: Duration = Duration::from_secs(2);
/// Time between two polls of open connections.
const LOOK: Duration = Duration::from_millis(5);
/// Age after which the figures are computed again. Limits the reports on the pass, regardless of the number of
/// requests.
const FRESH: Duration = Duration::from_millis(100);

/// An endpoint that listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens at `address` and serves the figures of `live`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if `address` is not an address or cannot be bound, for example because it is taken;
    /// [`ErrorKind::Io`] if the thread cannot start.
    pub(crate) fn start(address: &str, live: Arc<Live>) -> Result<Self> {
        let Listening { address: asked, everybody } = Listening::parse(address)?;
        let taken = |e: io::Error| {
            let text = format!("metrics cannot be offered at {asked}: {e}");
            Error::config(text).help("choose another port, or 0 for any free port")
        };
        let listener = TcpListener::bind(asked).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let over = Arc::new(AtomicBool::new(false));
        let serve = {
            let over = over.clone();
            move || serve(&listener, &mut Page { live, everybody, text: String::new(), made: None }, &over)
        };
        let thread = std::thread::Builder::new().name("gristmill-metrics".into()).spawn(serve);
        let thread = thread
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot start the thread that serves metrics: {e}")))?;
        Ok(Self { address, over, thread: Some(thread) })
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // The thread blocks in `accept` until a client connects.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let called = TcpStream::connect_timeout(&(ip, self.address.port()).into(), MOST_TIME);
        // If this connection fails, the thread ends after the next client connects.
        if let (Ok(_), Some(thread)) = (called, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// Text of the figures, with its age.
struct Page {
    live: Arc<Live>,
    /// True if other users of this machine may read the figures.
    everybody: bool,
    text: String,
    made: Option<Instant>,
}

impl Page {
    /// Returns the text, or `None` if the pass is gone.
    fn text(&mut self) -> Option<&str> {
        if self.made.is_none_or(|made| made.elapsed() >= FRESH) {
            self.text = self.live.report(Depth::Figures)?.to_openmetrics();
            self.made = Some(Instant::now());
        }
        Some(&self.text)
    }
}

fn serve(listener: &TcpListener, page: &mut Page, over: &AtomicBool) {
    let mut open: Vec<Connection> = Vec::new();
    while !over.load(Ordering::Acquire) {
        // Blocks until a client connects if no connection is open.
        let accepted = listener.set_nonblocking(!open.is_empty()).and_then(|()| listener.accept());
        match accepted {
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                if open.len() == MOST_OPEN {
                    open.remove(0);
                }
                open.push(Connection { stream, since: Instant::now(), request: Vec::new(), answer: None });
            }
            Ok(_) => {}
            // No new client: waits until the next poll of the open connections.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            // For example, too many open files.
            Err(_) => std::thread::sleep(10 * LOOK),
        }
        open.retain_mut(|connection| connection.goes_on(page));
    }
}

/// A connection to a client.
struct Connection {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    /// Bytes that remain to be sent; `None` until the request is complete.
    answer: Option<Vec<u8>>,
}

impl Connection {
    /// Makes as much progress as possible without blocking. Returns true if the connection stays open.
    fn goes_on(&mut self, page: &mut Page) -> bool {
        if self.since.elapsed() >= MOST_TIME {
            return false;
        }
        if self.answer.is_none() {
            match self.read() {
                Ok(true) if !page.everybody && !is_same_user(&self.stream) => self.answer = Some(refusal()),
                Ok(true) if !page.everybody && !is_for_this_machine(&self.request) => self.answer = Some(misdirected()),
                Ok(true) => self.answer = Some(answer(&self.request, page)),
                Ok(false) => return true,
                Err(()) => return false,
            }
        }
        self.write()
    }

    /// Returns true if the request is complete or too long; returns an error if the request cannot be completed.
    fn read(&mut self) -> std::result::Result<bool, ()> {
        let mut some = [0; 1024];
        loop {
            match self.stream.read(&mut some) {
                Ok(0) => return Err(()),
                Ok(n) => self.request.extend_from_slice(&some[..n]),
                Err(e) if is_busy(&e) => return Ok(false),
                Err(_) => return Err(()),
            }
            if self.request.len() > MOST_BYTES || head(&self.request).is_some() {
                return Ok(true);
            }
        }
    }

    /// Sends as much as the socket accepts, then waits until the client has received everything and closes. Returns
    /// true if the connection stays open.
    fn write(&mut self) -> bool {
        let Some(answer) = &mut self.answer else { return true };
        while !answer.is_empty() {
            match self.stream.write(answer) {
                Ok(0) => return false,
                Ok(n) => drop(answer.drain(..n)),
                Err(e) if is_busy(&e) => return true,
                Err(_) => return false,
            }
            if answer.is_empty() && self.stream.shutdown(std::net::Shutdown::Write).is_err() {
                return false;
            }
        }
        // Closing a socket with unread bytes may discard the answer.
        let mut rest = [0; 1024];
        match self.stream.read(&mut rest) {
            Ok(0) => false,
            Ok(_) => true,
            Err(e) => is_busy(&e),
        }
    }
}

fn is_busy(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Returns the head of a complete request, without the empty line after it.
fn head(request: &[u8]) -> Option<&[u8]> {
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    request.get(..end)
}

/// Returns true if the request names this machine by an IP address or as `localhost`. A page on the web whose name
/// resolves to this machine sends that name instead.
fn is_for_this_machine(request: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head(request).unwrap_or_default());
    let host = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    let mut hosts = host.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host.trim());
    hosts.all(|host| {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        let address = name.trim_start_matches('[').trim_end_matches(']');
        name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
    })
}

/// Returns the answer to a request for another machine.
fn misdirected() -> Vec<u8> {
    let text = format!("the metrics are at localhost; for other names, listen at {EVERYBODY}HOST:PORT\n");
    response("421 Misdirected Request", "text/plain; charset=utf-8", "", &text)
}

/// Returns the answer to a request, with its head.
fn answer(request: &[u8], page: &mut Page) -> Vec<u8> {
    let told = |status: &str, extra: &str, text: &str| response(status, "text/plain; charset=utf-8", extra, text);
    let Some(head) = head(request) else {
        return told("431 Request Header Fields Too Large", "", "the request is too long\n");
    };
    let line = head.split(|&byte| byte == b'\r').next().and_then(|line| std::str::from_utf8(line).ok());
    let words: Vec<&str> = line.unwrap_or_default().split(' ').collect();
    match words[..] {
        [method, target, version] if version.starts_with("HTTP/1.") => match (method, target.split('?').next()) {
            ("GET", Some("/metrics")) => match page.text() {
                Some(text) => response("200 OK", CONTENT_TYPE, "", text),
                None => told("503 Service Unavailable", "", "the pass is over\n"),
            },
            (_, Some("/metrics")) => told("405 Method Not Allowed", "Allow: GET\r\n", "only GET is supported\n"),
            _ => told("404 Not Found", "", "the metrics are at /metrics\n"),
        },
        _ => told("400 Bad Request", "", "not an HTTP/1.1 request\n"),
    }
}

/// Returns the answer to another user.
fn refusal() -> Vec<u8> {
    let text =
        format!("this run belongs to another user, who can share its metrics by listening at {EVERYBODY}HOST:PORT\n");
    response("403 Forbidden", "text/plain; charset=utf-8", "", &text)
}

fn response(status: &str, content: &str, extra: &str, text: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {}\r\n{extra}Cache-Control: no-store\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests;
