//! Tests with a stub plugin that fails on request, and with real plugins if there are any.

mod consumer;
mod events;
mod faults;
#[cfg(unix)]
mod fork;
mod plugins;
mod put;
mod race;
mod stub;

use std::time::Duration;

use self::stub::Stub;
use super::*;
use crate::dataset::map::Range;
use crate::{Array, Batch, DType, Element, IterDataset, IterDatasetExt, Load, Loader, MapDatasetExt};

/// A timeout that is never reached.
const LONG: Duration = Duration::from_secs(60);

/// Creates a client of the stub with these options.
fn client(options: &[(&str, i64)]) -> Client {
    let options: Vec<_> = options.iter().map(|(name, value)| (*name, ClientOption::Int(*value))).collect();
    stub::plugin(Stub::Today).client_with(&options).unwrap()
}

/// Creates a client that reports the platform `cpu`.
fn cpu_client() -> Client {
    stub::plugin(Stub::Today).client_with(&[("platform", ClientOption::Str("cpu"))]).unwrap()
}

fn device_0(client: &Client) -> Placement {
    Placement::on(&client.device(0).unwrap())
}

/// Creates a client of each real plugin in `GRISTMILL_PJRT_PLUGIN`.
fn real_clients() -> Vec<Client> {
    let Some(paths) = std::env::var_os("GRISTMILL_PJRT_PLUGIN") else {
        eprintln!("SKIPPED for real plugins: GRISTMILL_PJRT_PLUGIN names none");
        return Vec::new();
    };
    std::env::split_paths(&paths).map(|path| Plugin::load(path).unwrap().client().unwrap()).collect()
}

/// Makes batches of `rows` rows of 64 numbers. All numbers of batch `i` are `i`.
fn batches(count: i64, rows: usize) -> impl IterDataset<Item = Batch, Iter: Send> + 'static {
    Range::new(0, count).map(move |i| Element::new().with("x", filled(i, rows))).to_iter().boxed()
}

fn filled(i: i64, rows: usize) -> Array {
    let mut array = Array::builder(DType::I32, &[rows, 64]).unwrap();
    array.as_mut_slice::<i32>().fill(i as i32);
    array.freeze()
}

fn loader<D: IterDataset<Item = Batch> + 'static>(dataset: D) -> Loader<D> {
    dataset.loader().build().unwrap()
}

/// Returns the number in all places of `batch`; `None` if the numbers differ.
fn number(batch: &DeviceBatch) -> Option<i64> {
    let mut numbers = batch.array("x").unwrap().shards().iter().flat_map(|shard| {
        let array = shard.to_array().unwrap();
        array.as_slice::<i32>().unwrap().to_vec()
    });
    let first = numbers.next()?;
    numbers.all(|number| number == first).then_some(first.into())
}
