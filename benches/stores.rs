//! Reads of objects from a web server, beside two clients with equally many requests in flight and no cache: plain
//! sockets, and the `object_store` crate. They read the whole object in pieces of 4 MiB, and ranges of the size of a
//! record in random order.
//!
//! `cargo bench -p benches --bench stores --no-default-features --features http,array_record,workers [-- NAME …]`. A
//! NAME is a part of `0ms 10ms 50ms 10Gbit`. The server runs in this process. It delays each answer and limits its
//! rate, like a network. MB/s of wall time, best of three, in turns; and CPU time of this process, which excludes
//! workers.

#[path = "../tests/support/objects.rs"]
mod objects;
#[path = "support/process_cpu.rs"]
mod process_cpu;
#[path = "support/wanted.rs"]
mod wanted;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gristmill::dataset::map::{MapDatasetExt, RandomAccess, Range as Numbers, Source};
use gristmill::source::{ArrayRecord, ArrayRecordWriter, Compression};
use gristmill::store::StoreOptions;
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{Array, BoxIter, Buffer, DType, Element, IterDatasetExt, Load, LoaderBuilder, Result};
use object_store::{ClientOptions, ObjectStoreExt, http::HttpBuilder, path::Path};
use objects::Server;
use process_cpu::own_cpu_s;
use wanted::wanted;

const RECORD: usize = 1_000_000;
const RECORDS: usize = 1024;
const IN_FLIGHT: usize = 16;
/// Half of it may hold prefetched data. Two workers together have an equal amount: an eighth of their heaps.
const MEMORY: u64 = 512 << 20;
const HEAP: u64 = 4 * MEMORY;
/// Size of gristmill's requests for missing data.
const PIECE: u64 = 4 << 20;

/// Networks: name, milliseconds until an answer begins, and bytes per second.
const NETWORKS: [(&str, u64, Option<u64>); 5] = [
    ("0ms", 0, None),
    ("10ms", 10, None),
    ("50ms", 50, None),
    ("0ms, 10Gbit/s", 0, Some(1_250_000_000)),
    ("10ms, 10Gbit/s", 10, Some(1_250_000_000)),
];

fn main() -> Result<()> {
    // The plain client uses the process-wide crypto provider and has no built-in provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
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
    StoreOptions::default().requests(IN_FLIGHT).memory_bytes(MEMORY).apply();
    println!(
        "{:<30}{:>22}{:>22}{:>22}{:>22}",
        "MB/s, and CPU s/GB", "sockets", "object_store", "4 threads", "2 workers"
    );
    for (name, delay, limit) in NETWORKS.into_iter().filter(|(name, ..)| wanted(name)) {
        server.delay(Duration::from_millis(delay));
        server.limit(limit);
        for shuffled in [false, true] {
            let mut best = [Rate::default(); 4];
            for turn in 0..3 {
                let ranges = || if shuffled { records(size, turn) } else { pieces(size) };
                let seed = shuffled.then_some(turn);
                let urls = [0, 1, 2].map(|part| {
                    let name = format!("{delay}-{}-{shuffled}-{turn}-{part}", limit.unwrap_or(0));
                    server.link("a.array_record", &name)
                });
                let work: [Box<dyn FnOnce() -> Rate>; 4] = [
                    Box::new(|| Rate::of(size, || by_sockets(&url, ranges()))),
                    Box::new(|| Rate::of(size, || by_the_crate(&url, ranges()))),
                    Box::new(|| rate(pipeline((urls.clone(), seed)).expect("objects").loader().threads(4))),
                    Box::new(|| rate(mp_prefetch(pipeline, (urls.clone(), seed), workers()).expect("objects"))),
                ];
                for (best, work) in best.iter_mut().zip(work) {
                    best.better(work());
                }
            }
            let order = if shuffled { "shuffled" } else { "in order" };
            print!("{:<30}", format!("{name}, {order}"));
            best.iter().for_each(|rate| print!("{:>14.0} ({:>4.2})", rate.mb_per_s, rate.cpu_s_per_gb));
            let share = |ours: usize, other: usize| 100.0 * best[ours].mb_per_s / best[other].mb_per_s;
            println!(
                "   threads {:.0} % of sockets, {:.0} % of the crate; workers {:.0} %, {:.0} %",
                share(2, 0),
                share(2, 1),
                share(3, 0),
                share(3, 1)
            );
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Default)]
struct Rate {
    mb_per_s: f64,
    /// CPU seconds of this process, including the server and excluding workers.
    cpu_s_per_gb: f64,
}

impl Rate {
    fn of(bytes: u64, work: impl FnOnce()) -> Self {
        let (begun, before) = (Instant::now(), own_cpu_s());
        work();
        let (wall, cpu) = (begun.elapsed().as_secs_f64(), own_cpu_s() - before);
        Self { mb_per_s: bytes as f64 / 1e6 / wall, cpu_s_per_gb: cpu / (bytes as f64 / 1e9) }
    }

    fn better(&mut self, other: Self) {
        if other.mb_per_s > self.mb_per_s {
            *self = other;
        }
    }
}

/// Returns records of objects as elements, for threads or workers.
fn pipeline((urls, seed): ([String; 3], Option<u32>)) -> Result<BoxIter<Element>> {
    let source = Source::new(ArrayRecord::open(urls)?);
    assert_eq!(source.inner().len(), 3 * RECORDS as u64);
    let element = |bytes: Buffer| Ok(Element::new().with("bytes", Array::new(DType::U8, &[bytes.len()], bytes)?));
    Ok(match seed {
        Some(seed) => source.shuffle(seed).try_map(element).to_iter().boxed(),
        None => source.try_map(element).to_iter().boxed(),
    })
}

/// Tuning is off, because a turn takes only a second.
fn workers() -> MpOptions {
    MpOptions::auto().workers(2).ram_budget(3 * HEAP).worker_heap(HEAP).tune(false)
}

/// Returns the rate of the second third of the records: the memory is full, and about equal amounts are in flight at
/// both ends.
fn rate(loader: LoaderBuilder<BoxIter<Element>>) -> Rate {
    let mut loader = loader.build().expect("a loader");
    let mut read = || {
        let records = loader.by_ref().take(RECORDS);
        let read: usize = records.map(|record| record.expect("a record").nbytes()).sum();
        assert_eq!(read, RECORD * RECORDS);
    };
    read();
    let rate = Rate::of((RECORD * RECORDS) as u64, read);
    drop(loader);
    // Requests in flight complete in any case. Waits for them, so that they do not slow down other measurements.
    std::thread::sleep(Duration::from_millis(500));
    rate
}

/// Returns the ranges of the whole object, front to back.
fn pieces(size: u64) -> Vec<Range<u64>> {
    (0..size).step_by(PIECE as usize).map(|first| first..size.min(first + PIECE)).collect()
}

/// Returns the ranges of all records, in random order.
fn records(size: u64, seed: u32) -> Vec<Range<u64>> {
    let record = size / RECORDS as u64;
    let order = Numbers::new(0, RECORDS as i64).shuffle(seed).collect().expect("numbers");
    order.into_iter().map(|i| i as u64 * record..(i as u64 + 1) * record).collect()
}

/// Reads the ranges with [`IN_FLIGHT`] tasks of a runtime with a thread per core.
fn by_the_crate(url: &str, ranges: Vec<Range<u64>>) {
    let (root, path) = url.rsplit_once('/').expect("a path");
    let options = ClientOptions::new().with_allow_http(true).with_timeout_disabled();
    let store = HttpBuilder::new().with_url(root).with_client_options(options).build().expect("a client");
    let (store, next) = (Arc::new(store), Arc::new(Mutex::new(ranges.into_iter())));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (store, next, path) = (store.clone(), next.clone(), Path::from(path));
            runtime.spawn(async move {
                loop {
                    let Some(range) = next.lock().expect("no other task panics").next() else { return };
                    let len = range.end - range.start;
                    let bytes = store.get_range(&path, range).await.expect("a range");
                    assert_eq!(bytes.len() as u64, len);
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.expect("no panic");
        }
    });
}

/// Reads the ranges with [`IN_FLIGHT`] threads, each with its own connection and a reused buffer.
fn by_sockets(url: &str, ranges: Vec<Range<u64>>) {
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
