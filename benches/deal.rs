//! Several hosts: balance of packed rows among ranks, and the cost of a deal (the assignment of rows to ranks). Also
//! the delay until a host continues with another part.
//!
//! `cargo bench -p benches --bench deal [-- NAME …]`
//! - `straggle` packs documents of log-normal lengths best-fit into 64 open rows and deals eight global batches. It
//!   prints the cost of the slowest rank divided by the mean: for whole steps, and if ranks synchronise after each
//!   micro-step of one row. Costs are of causal attention, width 4096. The results do not depend on the machine.
//! - `time` is CPU time of a deal of 64 × 8 rows, and of computing row costs from segment ids: medians of nine rounds.
//! - `going on` is wall time at batch 100,000 to the first batch of another part: from a state (`build` and `next`),
//!   and in a running pass (`repart` and `next`), also medians of nine. It runs three pipelines: batches of 512 rows by
//!   index; batches of 64 packed rows of 256 cells, in windows of 1024 documents; and batches of 64 elements of 8 lanes
//!   (streams read in turn), dealt by lanes.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use gristmill::dataset::iter::lanes;
use gristmill::dataset::map::Range;
use gristmill::keys::{KeyFolder, KeySource, Keyed, Keys, LaneFile, MarkedLanes};
use gristmill::pack::{BinPackOptions, Packing, RowSpec, WindowPackOptions};
use gristmill::part::{Cost, Deal, Part, RankLoad, RankRows, deal_rows};
use gristmill::{
    Array, BoxIter, Checkpoint, Element, Error, Executor, IterDatasetExt, Load, LoaderBuilder, MapDatasetExt, Result,
};

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/lengths.rs"]
mod lengths;
#[path = "support/median.rs"]
mod median;
#[path = "support/wanted.rs"]
mod wanted;

const RANKS: usize = 64;
const BATCHES: usize = 8;
const COST: Cost = Cost::attention(4096, None, true);
/// Rows that are packed at a time: a whole global batch would take half a gigabyte.
const AT_ONCE: usize = 8;

/// A distribution of document lengths, and the length of the packed rows.
struct Corpus {
    name: &'static str,
    mean: f64,
    sigma: f64,
    row: usize,
}

const WEB: Corpus = Corpus { name: "web, 4 k", mean: 600.0, sigma: 1.2, row: 4 << 10 };
const BOOKS: Corpus = Corpus { name: "code and books, 32 k", mean: 4000.0, sigma: 1.8, row: 32 << 10 };
const LONG: Corpus = Corpus { name: "long, 128 k", mean: 16000.0, sigma: 2.0, row: 128 << 10 };

impl Corpus {
    /// Returns packed rows in batches of [`AT_ONCE`].
    fn batches(&self) -> Result<impl Iterator<Item = Result<Element>>> {
        let lens = lengths::log_normal(1 << 16, self.mean, self.sigma, self.row);
        let document = move |at: i64| Element::new().with("t", Array::from_vec(vec![0u8; lens[at as usize]]));
        let documents = Range::new(0, 1 << 16).map(document).to_iter();
        let packed = documents.best_fit_pack(BinPackOptions::new(RowSpec::new([("t", self.row)]), 64)).batch(AT_ONCE);
        packed.loader().build()
    }

    /// Returns the costs of the first `rows` packed rows.
    fn costs(&self, rows: usize) -> Result<Vec<u64>> {
        let mut costs = Vec::new();
        for batch in self.batches()?.take(rows / AT_ONCE) {
            costs.extend(COST.of_rows(&batch?)?.0);
        }
        assert_eq!(costs.len(), rows, "too few documents");
        Ok(costs)
    }
}

fn straggle() -> Result<()> {
    println!("{:<32} {:>10} {:>10} {:>16} {:>10}", "", "as packed", "balanced", "micro, as packed", "balanced");
    for (corpus, each) in [(WEB, 8), (BOOKS, 8), (LONG, 8), (LONG, 2)] {
        let (mut even, mut balanced) = (RankLoad::default(), RankLoad::default());
        for costs in corpus.costs(BATCHES * RANKS * each)?.chunks(RANKS * each) {
            even += RankRows::even(costs.len(), RANKS, each)?.load(costs);
            balanced += deal_rows(costs, RANKS, each)?.load(costs);
        }
        println!(
            "{:<32} {:>10.3} {:>10.3} {:>16.3} {:>10.3}",
            format!("{}, {RANKS} × {each}", corpus.name),
            even.straggle(),
            balanced.straggle(),
            even.straggle_in_micro(),
            balanced.straggle_in_micro()
        );
    }
    Ok(())
}

fn time() -> Result<()> {
    const DEALS: u32 = 1000;
    let costs = BOOKS.costs(RANKS * 8)?;
    for micro in [1, 8] {
        let deals = || (0..DEALS).for_each(|_| drop(black_box(deal_rows(black_box(&costs), RANKS, micro))));
        let us = 1e6 * median::seconds(9, cpu_clock::on_core, deals) / f64::from(DEALS);
        println!("a deal of {RANKS} × 8 rows, micro-steps: {micro}: {us:.1} µs");
    }
    for corpus in [WEB, BOOKS] {
        let Some(batch) = corpus.batches()?.next().transpose()? else { continue };
        let read = || (0..DEALS / 10).for_each(|_| drop(black_box(COST.of_rows(black_box(&batch)))));
        let cells = (AT_ONCE * corpus.row) as f64 * f64::from(DEALS / 10);
        println!(
            "costs read from segment ids, {}: {:.2} ns a cell",
            corpus.name,
            1e9 * median::seconds(9, cpu_clock::on_core, read) / cells
        );
    }
    Ok(())
}

/// Number of the batch at which hosts continue.
const FAR: u64 = 100_000;
const ROUNDS: usize = 9;

/// Batches of 512 rows, which are assigned by index alone.
fn by_index() -> BoxIter<Element> {
    let row = |at: i64| Element::new().with("t", Array::from_vec(vec![at as i32; 1024]));
    Range::new(0, 1 << 40).shuffle(1).map(row).to_iter().batch(512).boxed()
}

/// Batches of 64 packed rows.
fn packed() -> BoxIter<Element> {
    let lens = lengths::log_normal(1 << 16, 55.0, 1.0, 256);
    let document =
        move |at: i64| Element::new().with("t", Array::from_vec(vec![at as i32; lens[at as usize % lens.len()]]));
    let documents = Range::new(0, 1 << 40).shuffle(1).map(document).to_iter();
    documents.window_pack(WindowPackOptions::new(RowSpec::new([("t", 256)])).window(1024)).batch(64).boxed()
}

/// Returns the state after [`FAR`] batches of 512 indices.
fn far_by_index() -> Result<Checkpoint> {
    let mut state = by_index().loader().build()?.state()?;
    state.state["next_index"] = (FAR * 512).into();
    Ok(Checkpoint { delivered: FAR, ..state })
}

/// Returns the state after [`FAR`] packed batches. Evaluates all of them.
fn far_packed() -> Result<Checkpoint> {
    let mut loader = packed().loader().build()?;
    for _ in 0..FAR {
        loader.next().transpose()?;
    }
    loader.state()
}

/// Returns the milliseconds of `work`: the median of the rounds after a warm-up.
fn milliseconds(mut work: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let start = Instant::now();
        work(round)?;
        times.push(1e3 * start.elapsed().as_secs_f64());
    }
    let mut times = times.split_off(1);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// Batches of 64 elements from 8 lanes.
fn by_lanes() -> BoxIter<Element> {
    let row = |at: i64| Element::new().with("t", Array::scalar(at));
    let lane = |lane: i64| Range::new(lane << 20, (lane + 1) << 20).to_iter().boxed().map(row);
    lanes((0..8).map(lane).collect::<Vec<_>>(), 8).batch(64).boxed()
}

/// A key source that writes the lane index of a pipeline on demand.
#[derive(Debug)]
struct Indexed(KeyFolder);

impl KeySource for Indexed {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        self.0.find(keyed)
    }

    fn find_lanes(&self, lanes: &Arc<dyn MarkedLanes>) -> Result<Option<Arc<LaneFile>>> {
        self.0.record_lanes(&**lanes, |_| ())?;
        self.0.find_lanes(lanes)
    }
}

/// Returns the state after [`FAR`] batches of lanes. Reads all of them.
fn far_by_lanes(folder: &Path) -> Result<Checkpoint> {
    let mut loader = dealt_by_lanes(folder).part(Part::of(0, 1)).build()?;
    for _ in 0..FAR {
        loader.next().transpose()?;
    }
    loader.state()
}

fn dealt_by_lanes(folder: &Path) -> LoaderBuilder<BoxIter<Element>> {
    by_lanes().loader().keys(Indexed(KeyFolder::new(folder))).deal(Deal::Lanes)
}

fn going_on() -> Result<()> {
    type Start<'a> = Box<dyn Fn() -> LoaderBuilder<BoxIter<Element>> + 'a>;
    let temp = tempfile::tempdir().map_err(|error| Error::io(error, "the folder of an index of lanes"))?;
    let pipelines: [(&str, Start<'_>, Checkpoint); 3] = [
        ("index plan", Box::new(|| by_index().loader()), far_by_index()?),
        ("window_pack", Box::new(|| packed().loader()), far_packed()?),
        ("lanes", Box::new(|| dealt_by_lanes(temp.path())), far_by_lanes(temp.path())?),
    ];
    for (name, pipeline, far) in pipelines {
        for (how, executor) in [("inline", Executor::Inline), ("1 thread", Executor::Threads(1))] {
            let host = || pipeline().executor(executor).part(Part::of(3, 64)).resume(far.clone()).build();
            let restore = milliseconds(|_| host()?.next().transpose().map(drop))?;
            let mut loader = host()?;
            let repart = milliseconds(|round| {
                loader.repart(if round % 2 == 0 { Part::of(2, 32) } else { Part::of(3, 64) })?;
                loader.next().transpose().map(drop)
            })?;
            println!("{name}, {how}: restored in {restore:.2} ms, another part in {repart:.2} ms");
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    if wanted::wanted("straggle") {
        straggle()?;
    }
    if wanted::wanted("time") {
        time()?;
    }
    if wanted::wanted("going on") {
        going_on()?;
    }
    Ok(())
}
