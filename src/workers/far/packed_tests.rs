//! Workers of threads in this process, whose blocks cross packed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::*;
use crate::dataset::map::Range;
use crate::dataset::{BoxIter, Stage};
use crate::element::Buffer;
use crate::error::Result;
use crate::report::Report;
use crate::{IterDatasetExt, Load, Loader, MapDatasetExt};

const BLOCK: u64 = 128 << 10;
const BUDGET: u64 = 4 << 20;

/// Elements of nothing to 64 KiB: some of small integers, some of large ones.
fn pipeline() -> BoxIter<Vec<i64>> {
    let sized = |x: i64| {
        let len = if x % 91 == 0 { 8000 } else { x as usize % 600 };
        let integer =
            |n: usize| if x % 5 == 0 { (x + n as i64).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) } else { x };
        (0..len).map(integer).collect::<Vec<i64>>()
    };
    Range::new(0, 2000).shuffle(7).filter(|x| x % 13 != 4).map(sized).to_iter().window_shuffle(9, 3).boxed()
}

/// What a driver does to the block of that number, and the time that it says it took.
#[derive(Clone, Copy)]
struct Road {
    block: fn(u64, Buffer) -> Buffer,
    took: fn(usize) -> Option<Duration>,
}

const SMOOTH: Road = Road { block: |_, block| block, took: |_| None };

/// Drives workers on a machine "there", until the pass has ended.
fn drive(driver: &Driver, road: Road) {
    let blocks = Arc::<AtomicU64>::default();
    threads::drive(driver, |number| {
        let (driver, blocks) = (driver.clone(), blocks.clone());
        Some(Box::new(move |told| {
            let worker = Evaluator::new("there".to_owned(), || Ok(pipeline()));
            driver.started(number, format!("thread {number}"), "there".to_owned());
            for message in told {
                let (answer, block) = worker.hear(&message).unwrap();
                let block = block.map(|block| (road.block)(blocks.fetch_add(1, Ordering::Relaxed), block));
                let took = block.as_ref().and_then(|block| (road.took)(block.len()));
                driver.answered(number, &answer, block, took);
            }
        }))
    });
}

/// Starts a pass of two workers over such a road.
fn start(compress: Compress, home: &str, road: Road) -> Loader<BoxIter<Vec<i64>>> {
    let (driver, exchange) = exchange_with(LinkOptions { compress, home: home.to_owned() });
    thread::spawn(move || drive(&driver, road));
    let stages = (&pipeline() as &dyn Stage).lines();
    let options =
        FarOptions { workers: (2, 2), threads: 2, ram_budget: BUDGET, block: BLOCK, stages, ..FarOptions::default() };
    pipeline().loader().backend(FarLaunch::new(exchange, options)).build().unwrap()
}

/// Reads all of it, which must be what it is in this process.
fn read(compress: Compress, home: &str, road: Road) -> Report {
    let mut loader = start(compress, home, road);
    let all: Vec<_> = loader.by_ref().collect::<Result<_>>().unwrap();
    assert!(all == pipeline().collect().unwrap());
    loader.report()
}

#[test]
fn packed_blocks_are_the_same_stream_in_the_same_budget() {
    let report = read(Compress::Always, "there", SMOOTH);
    let workers = report.workers.as_ref().unwrap();
    let link = &workers.links[0];
    assert_eq!((&*link.host, link.raw_bytes), ("there", workers.handed_over_bytes));
    assert!(link.packed_blocks > link.blocks / 2 && link.wire_bytes < link.raw_bytes * 2 / 3, "{link:?}");
    assert!(workers.slab_high_water_bytes > 0 && workers.slab_high_water_bytes <= BUDGET, "{workers:?}");
    let text = report.to_string().replace('\n', " ");
    assert!(text.contains("on the wire: always packed, as requested"), "{report}");
}

#[test]
fn they_cross_as_they_lie_on_this_machine_and_where_that_was_asked_for() {
    let slow = Road { took: |len| Some(Duration::from_secs_f64(len as f64 / 2e5)), ..SMOOTH };
    for (compress, home, why) in [
        (Compress::Auto, "there", "not packed: blocks are viewed in place"),
        (Compress::Never, "here", "never packed, as requested; the link gives 200 kB/s"),
    ] {
        let workers = read(compress, home, slow).workers.unwrap();
        let link = &workers.links[0];
        assert_eq!((link.wire_bytes, link.packed_blocks, &*link.why), (link.raw_bytes, 0, why));
    }
}

#[test]
fn a_slow_link_has_them_packed_and_a_fast_one_as_they_lie() {
    let link = |took| read(Compress::Auto, "here", Road { took, ..SMOOTH }).workers.unwrap().links.remove(0);
    let slow = link(|len| Some(Duration::from_secs_f64(len as f64 / 2e5)));
    assert!(slow.packed_blocks > slow.blocks / 2, "{slow:?}");
    assert!(slow.why.starts_with("the link gives 200 kB/s, so integers are narrowed"), "{slow:?}");
    // So fast that nothing pays, and some are tried.
    let fast = link(|len| Some(Duration::from_secs_f64(len as f64 / 1e12)));
    assert!(fast.packed_blocks <= fast.blocks / 8, "{fast:?}");
    assert!(fast.why.ends_with("and packing would take longer than it saves"), "{fast:?}");
    let unknown = link(|_| None);
    assert_eq!((unknown.packed_blocks, unknown.bytes_per_s), (0, None));
}

fn damaged(block: &Buffer) -> Buffer {
    let mut bytes = block.as_bytes().to_vec();
    // The first section says that it takes up more than it can.
    bytes[16..20].fill(0xff);
    Buffer::from_vec(bytes)
}

#[test]
fn a_worker_that_packs_wrongly_is_replaced() {
    let block = |number, block| if number == 5 { damaged(&block) } else { block };
    let report = read(Compress::Always, "here", Road { block, ..SMOOTH });
    assert_eq!(report.workers.unwrap().replaced, 1);
}

#[test]
fn workers_that_all_pack_wrongly_end_the_pass_with_what_is_wrong() {
    let block = |_, block: Buffer| if block.len() > 20 { damaged(&block) } else { block };
    let mut loader = start(Compress::Always, "here", Road { block, ..SMOOTH });
    let error = loader.find_map(Result::err).unwrap();
    assert!(error.to_string().contains("the block that it packed has a section of 0xffffffff bytes"), "{error}");
}

#[test]
fn a_parcel_that_says_more_than_it_may_is_refused() {
    let room = || {
        let (driver, exchange) = exchange_with(LinkOptions { compress: Compress::Always, home: String::new() });
        drop(driver);
        assert_eq!(exchange.set_aside(1000), 1000);
        let far = carrier::Far::new(exchange.clone(), 100_000, Box::new(|| {}));
        (crate::workers::pool::Carrier::room(&far, 5000, 0).unwrap(), exchange)
    };
    for (packed, used) in [(2000, 5000), (500, 5001)] {
        let (room, exchange) = room();
        let extent = crate::workers::pool::Room::extent(&room);
        let block = Buffer::from_vec(vec![0u8; packed]);
        exchange.put_block(extent.generation, block, crate::wire::parcel::Packing::Lz4);
        let used = if used == 5001 { extent.len() + 1 } else { used };
        let (_, error) = crate::workers::pool::Room::into_bytes(room, used).err().unwrap();
        assert!(error.to_string().contains("but the limit is 64 KiB, packed into 1000 B"), "{error}");
    }
}
