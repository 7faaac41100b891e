//! A custom source: a type that can read record `i` becomes a dataset with all combinators.
//!
//!     cargo run --release --example custom_source

use gristmill::dataset::map::{RandomAccess, Source, SourceFacts};
use gristmill::prelude::*;
use gristmill::{Array, Buffer, DType, Element, Result};

/// Images drawn on demand: record `i` is a `side × side` gradient with its number as the label.
struct Gradients {
    count: u64,
    side: usize,
}

impl RandomAccess for Gradients {
    type Record = Element;

    fn len(&self) -> u64 {
        self.count
    }

    /// Returns the name of the stage, and a description of the data. A checkpoint with another description is refused.
    fn facts(&self) -> SourceFacts {
        SourceFacts::new("gradients", format!("{} images of {}x{}", self.count, self.side, self.side))
    }

    fn read(&self, index: u64) -> Result<Element> {
        let side = self.side;
        let pixel = |at: usize| (at % side + at / side + index as usize) as u8;
        let pixels = Buffer::from_vec((0..side * side).map(pixel).collect::<Vec<u8>>());
        let image = Array::new(DType::U8, &[side, side], pixels).map_err(|e| e.record(index))?;
        Ok(Element::new().with("image", image).with("label", Array::scalar(index as i64 % 10)))
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }
}

fn main() -> Result<()> {
    let images = Source::new(Gradients { count: 1000, side: 28 });
    let mut loader = images.shuffle(7).to_iter().batch(64).loader().threads(2).build()?;
    for batch in loader.by_ref().take(3) {
        let batch = batch?;
        println!("image {:?}, labels {:?}", batch.array("image")?, batch.array("label")?.as_slice::<i64>()?);
    }
    println!("{}", loader.state()?.to_json());
    Ok(())
}
