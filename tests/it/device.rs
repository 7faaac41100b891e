//! Batches on their way from files and worker processes to devices.
#![cfg(feature = "pjrt")]

use gristmill::device;
// The stub names `Plugin` by the path that it has in the crate, `crate::device`.
use gristmill::device::{ClientOption, DevicePut, Placement, Plugin, PutOptions};

#[path = "../../src/device/tests/stub.rs"]
mod stub;

use stub::Stub;

/// A client of the stub, which reads host memory only half a millisecond after it was told to.
fn client(devices: i64) -> device::Client {
    let options = [("delay_us", ClientOption::Int(500)), ("devices", ClientOption::Int(devices))];
    stub::plugin(Stub::Today).client_with(&options).unwrap()
}

#[test]
fn what_pip_installed_is_found_where_it_is_active() {
    for plugin in device::discover(device::site_packages()) {
        assert!(plugin.path.is_absolute() && !plugin.name.is_empty(), "{plugin:?}");
    }
}

#[cfg(all(feature = "workers", target_os = "linux"))]
mod from_workers {
    use gristmill::dataset::Remainder;
    use gristmill::dataset::map::Range;
    use gristmill::report::Cause;
    use gristmill::workers::{MpOptions, mp_prefetch};
    use gristmill::{Array, Element, IterDataset, MapDatasetExt, Result};

    use super::*;

    const ROWS: usize = 8;

    /// Batches of two columns; rows of `bytes` that all are the element's number.
    fn pipeline(bytes: usize) -> Result<impl IterDataset<Item = Element>> {
        let element =
            move |x: i64| Element::new().with("x", Array::from_vec(vec![x as u8; bytes])).with("n", Array::scalar(x));
        Ok(Range::new(0, 400).map(element).to_iter().batch_with(ROWS, Remainder::Drop))
    }

    /// A worker's slab is read in place, and no page of it is written to again before that: else batches would be wrong.
    #[test]
    fn a_slab_is_sent_from_where_the_worker_wrote() {
        for devices in [1, 4] {
            let client = client(devices);
            let options = MpOptions::auto().workers(1).worker_heap(64 << 20).ram_budget(200 << 20);
            let loader = mp_prefetch(pipeline, 16 << 10, options).unwrap().build().unwrap();
            let placement = Placement::rows(&client.devices()).unwrap();
            let mut put = DevicePut::new(loader, placement, PutOptions::default()).unwrap();
            let sent: Vec<_> = put.by_ref().map(Result::unwrap).collect();
            assert_eq!(sent.len(), 400 / ROWS);
            let stats = put.stats();
            // Of 8 numbers a quarter, 16 bytes, starts where no device could read it.
            let copied = if devices == 1 { 0 } else { 50 * 8 * ROWS as u64 };
            assert_eq!(
                (stats.bytes_copied, stats.bytes_in_place + copied),
                (copied, 50 * 8 * ROWS as u64 + (400 << 14))
            );
            let report = put.report();
            // What it took to send them was waited for, too.
            let (told, waited) =
                (report.waits.why.iter().map(|why| why.share).sum::<f64>(), report.waits.consumer_wait_share);
            assert!((told - waited).abs() <= 0.01 * waited.max(0.05), "{told} of {waited}: {report}");
            assert!(report.waits.why.iter().any(|why| why.cause == Cause::Transfer && why.seconds > 0.0), "{report}");
            assert_eq!(report.workers.unwrap().copies, 0);
            drop(put);
            for batch in &sent {
                let mut row = batch.index() * ROWS as u64;
                for shard in batch.array("x").unwrap().shards() {
                    for bytes in shard.to_array().unwrap().bytes().chunks(16 << 10) {
                        assert!(bytes.iter().all(|&byte| byte == row as u8), "row {row}");
                        row += 1;
                    }
                }
            }
        }
    }
}

/// What `python/docs/rust/index.md` shows.
#[rustfmt::skip]
#[allow(dead_code, reason = "it needs a real plugin; that it compiles is the test")]
fn example(
    pipeline: impl gristmill::IterDataset<Item = gristmill::Batch> + 'static,
    weights: device::DeviceBuffer,
) -> gristmill::Result<gristmill::Checkpoint> {
    use gristmill::Load;
    use gristmill::device::Plugin;
    const STEP: &str = "module {}";
    // Shown:
    let plugin = Plugin::load("pjrt_c_api_cpu_plugin.so")?;       // or one that `discover(site_packages())` finds
    let client = plugin.client()?;
    let step = client.compile(STEP)?;                             // StableHLO, as MLIR's text
    let place = Placement::on(&client.device(0)?);                // or `rows` split over devices, or `copies` on all

    let mut batches = DevicePut::new(pipeline.loader().threads(4).build()?, place, PutOptions::default().depth(2))?;
    for batch in batches.by_ref() {
        let batch = batch?;                                        // on its way, or there: programs wait for it themselves
        let _results = step.run(&[&weights, batch.array("tokens")?.buffer()])?;
    }
    let state = batches.state()?;                                  // what this loop has seen, not what was sent ahead
    // Until here.
    Ok(state)
}

#[test]
fn the_page_shows_what_compiles() {
    let shown = include_str!("device.rs").split("    // Shown:\n").nth(1).unwrap();
    let shown = shown.split("    // Until here.").next().unwrap();
    let shown: String = shown.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    assert!(include_str!("../../python/docs/rust/index.md").contains(&shown));
}

/// Minor page faults of this thread so far.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(7).unwrap().parse().unwrap()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn freed_memory_is_kept_where_that_was_asked_for() {
    let fill = || drop(std::hint::black_box(vec![1u8; 8 << 20]));
    assert!(gristmill::device::keep_freed_memory());
    fill();
    let before = page_faults();
    (0..20).for_each(|_| fill());
    // Of 20 times 2048 pages.
    assert!(page_faults() - before < 2048, "{}", page_faults() - before);
}
