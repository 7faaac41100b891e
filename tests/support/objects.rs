//! A web server with objects, ranges and ETags, which does what it is told to do wrong.

mod buckets;

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use buckets::{Asked, Parts};

/// What happens to the next request for bytes instead of a right answer.
#[derive(Clone, Debug)]
#[allow(dead_code, reason = "each test has its own troubles")]
pub(crate) enum Trouble {
    /// A status, and a header line.
    Status(u16, &'static str),
    /// The connection ends after so many bytes of the body.
    Cut(usize),
    /// Nothing more comes after so many bytes of the body.
    Stall(usize),
    /// Bytes of another range than what was asked for.
    WrongRange,
    /// All of the object, as if no range was asked for.
    NoRange,
    /// A byte at a time, and a pause behind each.
    Drip(Duration),
}

/// A request that came: method, path with query, range, `If-Match`, all header lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) range: Option<(u64, u64)>,
    pub(crate) if_match: Option<String>,
    pub(crate) headers: Vec<String>,
}

/// When every object was changed last: what tells one from another is its ETag.
const CHANGED: &str = "Last-Modified: Fri, 02 Jan 2026 03:04:05 GMT";

/// What is told of an object beside its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(dead_code, reason = "each test has its own servers")]
pub(crate) enum Tells {
    #[default]
    TagAndTime,
    Time,
    Nothing,
}

/// Bytes and ETag.
type Object = (Arc<[u8]>, String);

#[derive(Default)]
struct State {
    objects: Mutex<BTreeMap<String, Object>>,
    parts: Mutex<Parts>,
    troubles: Mutex<VecDeque<Trouble>>,
    requests: Mutex<Vec<Request>>,
    delay: Mutex<Duration>,
    /// Bytes per second of all answers together, and when the next of them may be sent.
    limit: Mutex<(Option<u64>, Option<Instant>)>,
    /// Requests that are to wait for each other, by their method.
    together: Mutex<BTreeMap<&'static str, usize>>,
    /// Requests that are not answered yet, and the most there have been.
    in_flight: Mutex<(usize, usize)>,
    changed: Condvar,
    /// Where those are sent that ask for these objects.
    redirects: Mutex<BTreeMap<String, String>>,
    /// Objects that are refused: the status, a header line, and the body.
    refused: Mutex<BTreeMap<String, (u16, &'static str, &'static str)>>,
    /// Sizes of objects that are not theirs.
    claims: Mutex<BTreeMap<String, u64>>,
    /// What is told of an object.
    tells: Mutex<Tells>,
    /// Objects that another replaces, once they were put so many times more.
    replaced: Mutex<BTreeMap<String, (usize, &'static str)>>,
    /// What time it is for the server, if it says so.
    date: Mutex<Option<&'static str>>,
}

/// Runs until the process ends.
#[derive(Clone)]
pub(crate) struct Server {
    root: String,
    state: Arc<State>,
}

#[allow(dead_code, reason = "each test asks for what it needs")]
impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let server = Self { root, state: Arc::default() };
        let state = server.state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = state.clone();
                // A client may go away at any time.
                std::thread::spawn(move || drop(serve(&stream, &state)));
            }
        });
        server
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("{}/{name}", self.root)
    }

    /// Puts an object there; its ETag is of its bytes.
    pub(crate) fn put(&self, name: &str, bytes: impl Into<Vec<u8>>) -> String {
        let bytes: Vec<u8> = bytes.into();
        let tag = tag_of(&bytes);
        self.state.objects.lock().unwrap().insert(format!("/{name}"), (bytes.into(), tag));
        self.url(name)
    }

    /// The same object by another name.
    pub(crate) fn link(&self, name: &str, other: &str) -> String {
        let mut objects = self.state.objects.lock().unwrap();
        let object = objects[&format!("/{name}")].clone();
        objects.insert(format!("/{other}"), object);
        self.url(other)
    }

    /// From now on, who asks for an object is sent elsewhere.
    pub(crate) fn redirect(&self, name: &str, to: &str) -> String {
        self.state.redirects.lock().unwrap().insert(format!("/{name}"), to.to_owned());
        self.url(name)
    }

    /// From now on, an object is refused, whatever is asked about it.
    pub(crate) fn refuse(&self, name: &str, status: u16, header: &'static str, body: &'static str) -> String {
        self.state.refused.lock().unwrap().insert(format!("/{name}"), (status, header, body));
        self.url(name)
    }

    /// From now on, an object is said to have so many bytes.
    pub(crate) fn claim(&self, name: &str, bytes: u64) {
        self.state.claims.lock().unwrap().insert(format!("/{name}"), bytes);
    }

    /// What tells one version of an object from another, from now on.
    pub(crate) fn tell(&self, tells: Tells) {
        *self.state.tells.lock().unwrap() = tells;
    }

    /// What time it is from now on; objects were changed last on the second of January 2026, at 03:04:05.
    pub(crate) fn date(&self, date: &'static str) {
        *self.state.date.lock().unwrap() = Some(date);
    }

    /// When an object has been put so many times, another puts this in its place.
    pub(crate) fn replace_at(&self, name: &str, puts: usize, text: &'static str) {
        self.state.replaced.lock().unwrap().insert(format!("/{name}"), (puts, text));
    }

    /// The names of objects that begin so.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        let objects = self.state.objects.lock().unwrap();
        objects.keys().map(|name| name[1..].to_owned()).filter(|name| name.starts_with(prefix)).collect()
    }

    /// Removes an object.
    pub(crate) fn remove(&self, name: &str) {
        self.state.objects.lock().unwrap().remove(&format!("/{name}"));
    }

    /// The bytes of an object, if it is there.
    pub(crate) fn object(&self, name: &str) -> Option<Arc<[u8]>> {
        Some(self.state.objects.lock().unwrap().get(&format!("/{name}"))?.0.clone())
    }

    /// Parts that were sent of objects that are not whole.
    pub(crate) fn unfinished(&self) -> usize {
        self.state.parts.lock().unwrap().len()
    }

    /// What happens to the next requests for bytes.
    pub(crate) fn trouble(&self, troubles: impl IntoIterator<Item = Trouble>) {
        self.state.troubles.lock().unwrap().extend(troubles);
    }

    /// Nothing goes wrong any more.
    pub(crate) fn calm(&self) {
        self.state.troubles.lock().unwrap().clear();
    }

    /// How long each answer takes to begin.
    pub(crate) fn delay(&self, delay: Duration) {
        *self.state.delay.lock().unwrap() = delay;
    }

    /// How many bytes per second are sent, on all connections together.
    pub(crate) fn limit(&self, limit: Option<u64>) {
        *self.state.limit.lock().unwrap() = (limit, None);
    }

    /// The next so many requests for bytes are answered once all of them have come, which they must in half a minute.
    pub(crate) fn together(&self, count: usize) {
        self.together_of("GET", count);
    }

    /// The same of requests of this method.
    pub(crate) fn together_of(&self, method: &'static str, count: usize) {
        self.state.together.lock().unwrap().insert(method, count);
    }

    /// How many of those have not come.
    pub(crate) fn missing(&self) -> usize {
        self.state.together.lock().unwrap().values().sum()
    }

    /// The most requests that have been in flight at a time.
    pub(crate) fn most_in_flight(&self) -> usize {
        self.state.in_flight.lock().unwrap().1
    }

    /// Troubles that did not happen yet.
    pub(crate) fn troubles_left(&self) -> usize {
        self.state.troubles.lock().unwrap().len()
    }

    /// The requests since the last time this was asked.
    pub(crate) fn requests(&self) -> Vec<Request> {
        std::mem::take(&mut *self.state.requests.lock().unwrap())
    }
}

/// The ETag of an object of these bytes.
fn tag_of(bytes: &[u8]) -> String {
    format!("\"{:x}\"", bytes.iter().fold(bytes.len() as u64, |hash, &b| hash.wrapping_mul(31) ^ u64::from(b)))
}

/// The header lines of an ETag, and of the number that Google has instead.
fn tagged(tag: &str) -> String {
    format!("ETag: {tag}\r\nx-goog-generation: {}", generation(tag))
}

fn generation(tag: &str) -> u64 {
    u64::from_str_radix(tag.trim_matches('"'), 16).unwrap()
}

impl Request {
    /// The value of a header.
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.iter().filter_map(|line| line.split_once(": "));
        lines.find_map(|(of, value)| of.eq_ignore_ascii_case(name).then_some(value))
    }

    /// Whether an object that is there, or none, is what a put depends on.
    fn agrees(&self, object: Option<&Object>) -> bool {
        let is_new =
            self.header("if-none-match") == Some("*") || self.header("x-goog-if-generation-match") == Some("0");
        let tag = self.if_match.as_deref();
        let number = self.header("x-goog-if-generation-match").filter(|number| *number != "0");
        let is = |(_, of): &Object| {
            tag.is_none_or(|tag| tag == of) && number.is_none_or(|number| number == generation(of).to_string())
        };
        match object {
            Some(object) => !is_new && is(object),
            None => tag.is_none() && number.is_none(),
        }
    }
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, state: &State) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = BufReader::new(stream);
    while let Some((request, body)) = read_request(&mut input)? {
        state.requests.lock().unwrap().push(request.clone());
        {
            let (now, most) = &mut *state.in_flight.lock().unwrap();
            *now += 1;
            *most = (*most).max(*now);
        }
        let delay = *state.delay.lock().unwrap();
        // A server that takes its time.
        std::thread::sleep(delay);
        wait_for_others(state, &request.method);
        // The client may send the next one before it is known here that this one has arrived.
        state.in_flight.lock().unwrap().0 -= 1;
        if !answer(stream, &mut input, state, &request, &body)? {
            return stream.shutdown(std::net::Shutdown::Both);
        }
    }
    Ok(())
}

fn wait_for_others(state: &State, method: &str) {
    let Ok(mut missing) = state.together.lock() else { return };
    let Some(count) = missing.get_mut(method) else { return };
    *count = count.saturating_sub(1);
    state.changed.notify_all();
    let all = state.changed.wait_timeout_while(missing, Duration::from_secs(30), |missing| missing[method] > 0);
    // Nor are those any more that come later.
    assert!(!all.unwrap().1.timed_out(), "the others did not come");
}

fn read_request(input: &mut impl BufRead) -> std::io::Result<Option<(Request, Vec<u8>)>> {
    let mut line = String::new();
    if input.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut range, mut if_match, mut length, mut headers) = (None, None, 0, Vec::new());
    loop {
        let mut header = String::new();
        input.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        headers.push(header.trim_end().to_owned());
        match name.to_ascii_lowercase().as_str() {
            "range" => {
                let bounds = value.strip_prefix("bytes=").and_then(|bounds| bounds.split_once('-'));
                range = bounds.and_then(|(first, last)| Some((first.parse().ok()?, last.parse::<u64>().ok()? + 1)));
            }
            "if-match" => if_match = Some(value.to_owned()),
            "content-length" => length = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    Ok(Some((Request { method, path, range, if_match, headers }, body)))
}

/// Whether the connection may be used again.
fn answer(
    mut out: &TcpStream,
    input: &mut impl Read,
    state: &State,
    request: &Request,
    body: &[u8],
) -> std::io::Result<bool> {
    let asked = Asked::of(&request.path);
    if let Some(to) = state.redirects.lock().unwrap().get(&asked.name) {
        return status(out, 307, &format!("Location: {to}"));
    }
    if let Some((code, header, body)) = state.refused.lock().unwrap().get(&asked.name) {
        return status_with(out, *code, header, if request.method == "HEAD" { "" } else { body });
    }
    let of_bucket = {
        let (mut objects, mut parts) = (state.objects.lock().unwrap(), state.parts.lock().unwrap());
        let answer = asked.answer(request, body, &mut objects, &mut parts);
        if request.method == "PUT"
            && let Some((puts, text)) = state.replaced.lock().unwrap().get_mut(&asked.name)
        {
            *puts = puts.wrapping_sub(1);
            if *puts == 0 {
                objects.insert(asked.name.clone(), (text.as_bytes().into(), tag_of(text.as_bytes())));
            }
        }
        answer
    };
    if let Some((code, header, body)) = of_bucket {
        return status_with(out, code, &header, &body);
    }
    let found = {
        let objects = state.objects.lock().unwrap();
        objects.get(&request.path).or_else(|| objects.get(&asked.name)).cloned()
    };
    let Some((bytes, tag)) = found else { return status(out, 404, "x: y") };
    let is_get = request.method == "GET";
    let trouble = if is_get { state.troubles.lock().unwrap().pop_front() } else { None };
    if let Some(Trouble::Status(code, header)) = trouble {
        return status(out, code, header);
    }
    if request.if_match.as_ref().is_some_and(|wanted| *wanted != tag) {
        return status(out, 412, "x: y");
    }
    let size = state.claims.lock().unwrap().get(&asked.name).copied().unwrap_or(bytes.len() as u64);
    let asked = request.range.filter(|_| !matches!(trouble, Some(Trouble::NoRange)));
    let (mut first, mut last) = asked.map_or((0, size), |(first, last)| (first, last.min(size)));
    if first >= last && asked.is_some() {
        return status(out, 416, "x: y");
    }
    if let Some(Trouble::WrongRange) = trouble {
        (first, last) = (first + 1, last + 1);
    }
    let here = (last as usize).min(bytes.len());
    let body = bytes.get(first as usize..here).unwrap_or_default();
    let code = if asked.is_some() { "206 Partial Content" } else { "200 OK" };
    let mut head = format!("HTTP/1.1 {code}\r\nAccept-Ranges: bytes\r\nContent-Length: {}\r\n", last - first);
    head += &match *state.tells.lock().unwrap() {
        Tells::TagAndTime => format!("{}\r\n{CHANGED}\r\n", tagged(&tag)),
        Tells::Time => format!("{CHANGED}\r\n"),
        Tells::Nothing => String::new(),
    };
    if asked.is_some() {
        head += &format!("Content-Range: bytes {first}-{}/{size}\r\n", last - 1);
    }
    if let Some(date) = *state.date.lock().unwrap() {
        head += &format!("Date: {date}\r\n");
    }
    out.write_all((head + "\r\n").as_bytes())?;
    if !is_get {
        return Ok(true);
    }
    match trouble {
        Some(Trouble::Cut(sent)) => {
            out.write_all(&body[..sent.min(body.len())])?;
            Ok(false)
        }
        Some(Trouble::Stall(sent)) => {
            out.write_all(&body[..sent.min(body.len())])?;
            // Until the client has had enough of it.
            input.read_exact(&mut [0])?;
            Ok(false)
        }
        Some(Trouble::Drip(pause)) => {
            for byte in body {
                out.write_all(&[*byte])?;
                // A server that sends a byte at a time.
                std::thread::sleep(pause);
            }
            Ok(true)
        }
        _ => {
            for part in body.chunks(256 << 10) {
                wait_for_turn(state, part.len());
                out.write_all(part)?;
            }
            Ok(body.len() as u64 == last - first)
        }
    }
}

/// Waits until so many bytes may be sent: those of all connections follow each other.
fn wait_for_turn(state: &State, bytes: usize) {
    let now = Instant::now();
    let mut limit = state.limit.lock().unwrap();
    let (Some(per_s), next) = *limit else { return };
    let turn = next.map_or(now, |next| next.max(now));
    limit.1 = Some(turn + Duration::from_secs_f64(bytes as f64 / per_s as f64));
    drop(limit);
    // A link with a bandwidth.
    std::thread::sleep(turn - now);
}

fn status(out: &TcpStream, code: u16, header: &str) -> std::io::Result<bool> {
    status_with(out, code, header, "")
}

fn status_with(mut out: &TcpStream, code: u16, header: &str, body: &str) -> std::io::Result<bool> {
    let header = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    let head = format!("HTTP/1.1 {code} \r\n{header}Content-Length: {}\r\n\r\n{body}", body.len());
    out.write_all(head.as_bytes())?;
    Ok(true)
}
