//! A source and stages of its own, packing, two worker processes, a resume, and an error with its place.
//!
//!     cargo run --release --example own_parts

use gristmill::dataset::map::SourceFacts;
use gristmill::prelude::*;
use gristmill::workers::{self, MpOptions};
use gristmill::{Array, Checkpoint, Element, Error, Result};

const EOS: i32 = 2;

/// Sentences of 5 to 44 tokens. Sentence 7,777 is damaged, if `damaged` is set.
struct Sentences {
    count: u64,
    damaged: bool,
}

impl RandomAccess for Sentences {
    type Record = Vec<i32>;

    fn len(&self) -> u64 {
        self.count
    }

    fn read(&self, index: u64) -> Result<Vec<i32>> {
        if self.damaged && index == 7_777 {
            return Err(Error::data("the sentence has no end").record(index));
        }
        Ok((0..5 + index % 40).map(|at| 3 + (index * 31 + at) as i32 % 1000).collect())
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts::new("sentences", format!("{} sentences", self.count))
    }
}

/// The pipeline, which each worker process builds for itself from the arguments.
fn pipeline((count, damaged): (u64, bool)) -> Result<impl IterDataset<Item = Element>> {
    let sentences = Sentences { count, damaged }.dataset().shuffle(42);
    // Elementwise: runs on every thread and in every worker.
    let closed = sentences.map(|tokens| [tokens, vec![EOS]].concat());
    // Stateful: drops a sentence that is no longer than its predecessor.
    let longer = closed.to_iter().scan(0, |previous, tokens| {
        let is_longer = tokens.len() > std::mem::replace(previous, tokens.len());
        Ok(is_longer.then_some(tokens))
    });
    let elements = longer.flat_map(|kept| kept.map(|tokens| Element::new().with("tokens", Array::from_vec(tokens))));
    Ok(elements.window_pack(256).batch(8))
}

fn loader(damaged: bool) -> Result<gristmill::LoaderBuilder<impl IterDataset<Item = Element>>> {
    workers::mp_prefetch(pipeline, (20_000, damaged), MpOptions::default().workers(2))
}

fn main() -> Result<()> {
    let mut whole = loader(false)?.build()?;
    let first: Vec<Element> = whole.by_ref().take(10).collect::<Result<_>>()?;
    println!("{} batches, tokens {:?}", first.len(), first[0].array("tokens")?);

    // A state is a short text, and restores into any number of workers.
    let state = whole.state()?.to_json();
    let resumed = loader(false)?.resume(Checkpoint::from_json(&state)?).build()?;
    let (rest, after) = (whole.collect::<Result<Vec<_>>>()?, resumed.collect::<Result<Vec<_>>>()?);
    println!("{} batches after the resume, equal to those of the first run: {}", after.len(), rest == after);

    let error = loader(true)?.build()?.find_map(Result::err).expect("a damaged sentence");
    println!("{error}");
    Ok(())
}
