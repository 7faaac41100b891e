//! Balanced deals of packed rows among ranks: how long the slowest rank takes, and what a deal costs.
//!
//! `cargo bench --bench deal [-- NAME …]`. `straggle` packs documents of log-normal lengths best-fit into 64 open rows and deals
//! eight global batches: cost of the slowest rank by that in the mean, for whole steps, and where ranks wait for each other
//! in each micro-step of one row. Costs are those of causal attention, width 4096. It is the same on every machine. `time` is CPU time of one deal
//! of 64 × 8 rows, and of the costs of rows that are read from segment ids: medians of nine rounds.

use std::hint::black_box;

use gristmill::dataset::map::Range;
use gristmill::pack::{BinPackOptions, Packing, RowSpec};
use gristmill::part::{Cost, RankLoad, RankRows, deal_rows};
use gristmill::{Array, Element, IterDataset, Load, MapDataset, Result};

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

/// Documents of one kind, and the rows that they are packed into.
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
    /// Packed rows, so many at a time.
    fn batches(&self) -> Result<impl Iterator<Item = Result<Element>>> {
        let lens = lengths::log_normal(1 << 16, self.mean, self.sigma, self.row);
        let document = move |at: i64| Element::new().with("t", Array::from_vec(vec![0u8; lens[at as usize]]));
        let documents = Range::new(0, 1 << 16).map(document).to_iter();
        let packed = documents.best_fit_pack(BinPackOptions::new(RowSpec::new([("t", self.row)]), 64)).batch(AT_ONCE);
        packed.loader().build()
    }

    /// Costs of the first `rows` packed rows.
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

fn main() -> Result<()> {
    if wanted::wanted("straggle") {
        straggle()?;
    }
    if wanted::wanted("time") {
        time()?;
    }
    Ok(())
}
