//! A training loop around a loader: shuffled, mapped on threads, batched, with a report at the end.
//!
//!     cargo run --release --example training_loop

use std::time::{Duration, Instant};

use gristmill::Result;
use gristmill::dataset::map::Range;
use gristmill::prelude::*;

/// Simulates a training step: reads the batch, then keeps a core busy for the duration of an accelerator's step.
fn train_step((_, ys): &(Vec<i64>, Vec<f32>), loss: &mut f32) {
    *loss = 0.9 * *loss + 0.1 * ys.iter().map(|y| y * y).sum::<f32>() / ys.len() as f32;
    let start = Instant::now();
    while start.elapsed() < Duration::from_micros(300) {
        std::hint::spin_loop();
    }
}

fn main() -> Result<()> {
    let dataset =
        Range::new(0, 20_000).seed(42).shuffle(None).map(|x| (x, (x as f32 * 0.001).sin())).to_iter().batch(32);

    let mut loader = dataset.loader().threads(2).build()?;
    let mut loss = 1.0;
    for batch in loader.by_ref() {
        train_step(&batch?, &mut loss);
    }
    println!("{} steps, loss {loss:.4}", loader.delivered());
    println!("{}", loader.report());
    Ok(())
}
