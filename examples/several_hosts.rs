//! Four, then two, then three hosts train on packed batches. Together they read the rows of an uninterrupted single
//! host.
//!
//!     cargo run --release --example several_hosts

use gristmill::dataset::map::Range;
use gristmill::pack::{RowSpec, WindowPackOptions};
use gristmill::part::{Part, RowDigest};
use gristmill::prelude::*;
use gristmill::{Array, Checkpoint, Element, Result};

/// Rows of a batch over all hosts.
const BATCH: usize = 24;

/// The pipeline, equal on every host: it does not depend on the host that reads it.
fn pipeline() -> impl IterDataset<Item = Element> {
    let document = |x: i64| Element::new().with("tokens", Array::from_vec(vec![x as i32; 1 + (x % 50) as usize]));
    let documents = Range::new(0, 20_000).shuffle(1).filter(|x| x % 3 != 0).map(document).to_iter();
    documents.window_pack(WindowPackOptions::new(RowSpec::new([("tokens", 128)])).window(64)).batch(BATCH)
}

/// Resumes host `index` of `count` from a state of any host. Returns its new state, and a digest of its rows.
fn host(index: usize, count: usize, from: Option<&Checkpoint>, steps: usize) -> Result<(Checkpoint, RowDigest)> {
    let mut builder = pipeline().loader().threads(2).part(Part::of(index, count));
    if let Some(state) = from {
        builder = builder.resume(state.clone());
    }
    let (mut loader, mut digest) = (builder.build()?, RowDigest::default());
    for _ in 0..steps {
        let Some(batch) = loader.next().transpose()? else { break };
        assert_eq!(batch.num_rows()?, BATCH / count);
        if let Some(rows) = loader.rows() {
            digest.add_batch(loader.delivered() - 1, rows, &batch);
        }
    }
    Ok((loader.state()?, digest))
}

fn main() -> Result<()> {
    let (mut state, mut trained) = (None, RowDigest::default());
    for (count, steps) in [(4, 30), (2, 20), (3, 50)] {
        let hosts: Result<Vec<_>> = (0..count).map(|index| host(index, count, state.as_ref(), steps)).collect();
        let hosts = hosts?;
        hosts.iter().for_each(|(_, digest)| trained.add(*digest));
        println!(
            "{count} hosts: {steps} steps, the state is the same on all: {}",
            hosts.iter().all(same_as(&hosts[0].0))
        );
        state = Some(hosts[0].0.clone());
    }
    println!("rows of all hosts  {trained}");
    println!("rows of one host   {}", host(0, 1, None, 100)?.1);
    Ok(())
}

fn same_as(state: &Checkpoint) -> impl Fn(&(Checkpoint, RowDigest)) -> bool + '_ {
    |(other, _)| other.to_json() == state.to_json()
}
