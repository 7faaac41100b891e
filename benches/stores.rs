//! Objects of a web server, beside a plain client that has as many requests in flight: for all of the object in pieces of 4 MiB,
//! and for as many ranges of the size of a record in random order.
//!
//! `cargo bench --bench stores --no-default-features --features http,array_record`. The server runs in this process and
//! waits before each answer, as a network would. MB/s of wall time, best of three, in turns.

#[path = "../tests/support/objects.rs"]
mod objects;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gristmill::dataset::iter::IterDataset;
use gristmill::dataset::map::{MapDataset, RandomAccess, Range as Numbers, Source};
use gristmill::source::{ArrayRecord, ArrayRecordWriter, Compression};
use gristmill::store::StoreOptions;
use gristmill::{Executor, Result};
use objects::Server;

const RECORD: usize = 1_000_000;
const RECORDS: u64 = 1024;
const IN_FLIGHT: usize = 16;
/// What our reader asks for at once where all is missing.
const PIECE: u64 = 4 << 20;

fn main() -> Result<()> {
    let mut writer = ArrayRecordWriter::options().compression(Compression::None).write_to(Vec::new())?;
    let mut record: Vec<u8> = (0..RECORD).map(|i| (i * 31 % 251) as u8).collect();
    for i in 0..RECORDS {
        record[0] = i as u8;
        writer.write(&record)?;
    }
    let bytes = writer.finish()?;
    let size = bytes.len() as u64;
    let server = Server::start();
    let url = server.put("a.array_record", bytes);
    for delay in [Duration::ZERO, Duration::from_millis(10), Duration::from_millis(50)] {
        server.delay(delay);
        let (mut plain, mut ours, mut plain_shuffled, mut shuffled) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
        for turn in 0..3 {
            plain = plain.max(rate(size, || plainly(&url, pieces(size))));
            plain_shuffled = plain_shuffled.max(rate(size, || plainly(&url, records(size, turn as u32))));
            let source = open(&url, 2 * turn);
            ours = ours.max(rate(size, || read(source, None)));
            let source = open(&url, 2 * turn + 1);
            shuffled = shuffled.max(rate(size, || read(source, Some(turn as u32))));
        }
        println!(
            "{:>3} ms a request: plain {plain:>6.0} MB/s, in order {ours:>6.0} MB/s ({:.0} %); \
             plain, record by record {plain_shuffled:>6.0} MB/s, shuffled {shuffled:>6.0} MB/s ({:.0} %)",
            delay.as_millis(),
            100.0 * ours / plain,
            100.0 * shuffled / plain_shuffled
        );
    }
    Ok(())
}

fn rate(bytes: u64, work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    bytes as f64 / 1e6 / begun.elapsed().as_secs_f64()
}

/// The object, opened: what is read of it then is records alone.
fn open(url: &str, turn: u64) -> Source<ArrayRecord> {
    // Other options are another memory: nothing is left of the turn before.
    StoreOptions::default().requests(IN_FLIGHT).memory_bytes((512 << 20) + (turn << 20)).apply();
    let source = Source::new(ArrayRecord::open(url).expect("the object of this bench"));
    assert_eq!(source.inner().len(), RECORDS);
    source
}

/// All records by a loader of four threads.
fn read(source: Source<ArrayRecord>, seed: Option<u32>) {
    let stream = match seed {
        Some(seed) => source.shuffle(seed).to_iter().boxed(),
        None => source.to_iter().boxed(),
    };
    let loader = stream.loader().executor(Executor::Threads(4)).build().expect("a loader");
    let read: usize = loader.map(|record| record.expect("a record").len()).sum();
    assert_eq!(read, RECORD * RECORDS as usize);
}

/// The whole object, front to back.
fn pieces(size: u64) -> Vec<Range<u64>> {
    (0..size).step_by(PIECE as usize).map(|first| first..size.min(first + PIECE)).collect()
}

/// As many ranges of the size of a record, in random order.
fn records(size: u64, seed: u32) -> Vec<Range<u64>> {
    let order = Numbers::new(0, RECORDS as i64).shuffle(seed).collect().expect("numbers");
    order.into_iter().map(|i| i as u64 * (size / RECORDS)..(i as u64 + 1) * (size / RECORDS)).collect()
}

/// As many threads as requests in flight, each with a connection of its own and a buffer that is used again.
fn plainly(url: &str, ranges: Vec<Range<u64>>) {
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    let next = Mutex::new(ranges.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| {
                let mut stream = TcpStream::connect(host).expect("the server of this bench");
                let mut body = vec![0; PIECE as usize];
                loop {
                    let Some(range) = next.lock().expect("no other thread panics").next() else { return };
                    get(&mut stream, host, path, range.start, &mut body[..(range.end - range.start) as usize]);
                }
            });
        }
    });
}

fn get(stream: &mut TcpStream, host: &str, path: &str, first: u64, body: &mut [u8]) {
    let last = first + body.len() as u64 - 1;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nRange: bytes={first}-{last}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    stream.read_exact(body).expect("a body");
}
