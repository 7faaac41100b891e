//! The endpoint of metrics: `GET /metrics`, answered by one thread.
//!
//! A scrape is a few hundred bytes, a few times a minute, so a library of HTTP would be more to trust than what is here. Clients may be anybody:
//! there are at most so many connections, each with so many bytes and so much time, and none waits for another.

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

/// Connections at a time; beyond, the oldest goes.
const MOST_OPEN: usize = 16;
/// Bytes of a request, and time that a connection has for all.
const MOST_BYTES: usize = 8 << 10;
const MOST_TIME: Duration = Duration::from_secs(2);
/// Time between two looks at connections that are open.
const LOOK: Duration = Duration::from_millis(5);
/// Figures are made anew when they are older: however many ask, the pass is asked no more often.
const FRESH: Duration = Duration::from_millis(100);

/// An endpoint that listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Endpoint {
    address: SocketAddr,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    /// Listens at `address` for those who ask for figures of `live`.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for what is no address, and one that cannot be listened at, such as one that is taken.
    pub(crate) fn start(address: &str, live: Arc<Live>) -> Result<Self> {
        let Listening { address: asked, everybody } = Listening::parse(address)?;
        let taken = |e: io::Error| {
            let text = format!("metrics cannot be offered at {asked}: {e}");
            Error::config(text).help("another port, or 0 for one that is free")
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
            .map_err(|e| Error::new(ErrorKind::Io, format!("cannot start the thread that answers for metrics: {e}")))?;
        Ok(Self { address, over, thread: Some(thread) })
    }

    /// The address at which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        // The thread waits for somebody to come.
        let ip = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
            ip => ip,
        };
        let called = TcpStream::connect_timeout(&(ip, self.address.port()).into(), MOST_TIME);
        // One that cannot be called ends with the next who comes.
        if let (Ok(_), Some(thread)) = (called, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

/// The figures, as they were made last.
struct Page {
    live: Arc<Live>,
    /// Whether other users of this machine may have them.
    everybody: bool,
    text: String,
    made: Option<Instant>,
}

impl Page {
    /// The text; nothing once the pass is gone.
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
        // Where nobody is to be answered, it sleeps until somebody comes.
        let accepted = listener.set_nonblocking(!open.is_empty()).and_then(|()| listener.accept());
        match accepted {
            Ok((stream, _)) if stream.set_nonblocking(true).is_ok() => {
                if open.len() == MOST_OPEN {
                    open.remove(0);
                }
                open.push(Connection::new(stream));
            }
            Ok(_) => {}
            // Nobody has come: until the next look at open connections.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            // Such as too many open files.
            Err(_) => std::thread::sleep(10 * LOOK),
        }
        open.retain_mut(|connection| connection.goes_on(page));
    }
}

/// A client.
struct Connection {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    /// What is still to be sent, once it is known.
    answer: Option<Vec<u8>>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        Self { stream, since: Instant::now(), request: Vec::new(), answer: None }
    }

    /// Does what can be done now; whether there is more to do.
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

    /// Whether the request is there; an error where it never will be.
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

    /// Sends what there is room for; then sees to it that the client has all of it before the connection ends.
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
        // What is closed with bytes unread may take the answer with it.
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

/// The head of a request that is whole, without the empty line behind it.
fn head(request: &[u8]) -> Option<&[u8]> {
    let end = request.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    request.get(..end)
}

/// Whether a request asks for this machine, by an address or as `localhost`: a page of the web that has its name lead here asks by that name.
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

/// The answer to a request for another machine.
fn misdirected() -> Vec<u8> {
    let text = format!("the figures are at localhost; for other names listen at {EVERYBODY}HOST:PORT\n");
    response("421 Misdirected Request", "text/plain; charset=utf-8", "", &text)
}

/// The answer to a request, with its head.
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
            (_, Some("/metrics")) => told("405 Method Not Allowed", "Allow: GET\r\n", "GET is what there is\n"),
            _ => told("404 Not Found", "", "the figures are at /metrics\n"),
        },
        _ => told("400 Bad Request", "", "that is no request of HTTP/1.1\n"),
    }
}

/// The answer to another user.
fn refusal() -> Vec<u8> {
    let text =
        format!("another user runs this: its figures are yours where it is told to listen at {EVERYBODY}HOST:PORT\n");
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
