//! Trains a bigram model on a PJRT device from Rust: text to packed batches to device buffers to a compiled step.
//!
//!     cargo run --release --features pjrt --example pjrt_train -- FOLDER 40
//!
//! Corpus and state are in FOLDER; a second run continues from the state. The plugin is the first in the environment
//! variable GRISTMILL_PJRT_PLUGIN or in the packages of the active virtual environment.

use std::fs;
use std::path::PathBuf;

use gristmill::dataset::Remainder;
use gristmill::demo::{corpus, tokenizer};
use gristmill::device::{DevicePut, Placement, Plugin, PutOptions, discover, keep_freed_memory, site_packages};
use gristmill::prelude::*;
use gristmill::{Array, Buffer, Checkpoint, DType, Error, Result};
use serde::{Deserialize, Serialize};

const EMBED: [usize; 2] = [4096, 32];
const UNEMBED: [usize; 2] = [32, 4096];

#[derive(Serialize, Deserialize)]
struct Saved {
    batches: Option<Checkpoint>,
    embed: Vec<f32>,
    unembed: Vec<f32>,
}

/// Returns small numbers around 0, equal at every start.
fn initial(seed: usize) -> Vec<f32> {
    (0..EMBED[0] * EMBED[1]).map(|i| ((i + seed) as f32 * 78.233).sin() * 43758.547 % 1.0 * 0.5).collect()
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().unwrap_or_else(|| "gristmill-pjrt".into()));
    let steps = args.next().and_then(|steps| steps.parse().ok()).unwrap_or(40);
    let Some(plugin) = discover(site_packages()).into_iter().next() else {
        println!("no PJRT plugin here: pip install lammps-jax-pjrt-cpu, or name one in GRISTMILL_PJRT_PLUGIN");
        return Ok(());
    };
    let (text, file) = (folder.join("corpus.jsonl"), folder.join("state.json"));
    if !text.exists() {
        let write = || corpus::write_jsonl(&mut fs::File::create(&text)?, 500_000, 1);
        fs::create_dir_all(&folder).and_then(|()| write()).map_err(|e| Error::io(e, &text))?;
    }
    let saved = match fs::read_to_string(&file) {
        Ok(json) => serde_json::from_str(&json).map_err(|e| Error::state(e.to_string()).path(&file))?,
        Err(_) => Saved { batches: None, embed: initial(0), unembed: initial(7) },
    };

    let source = gristmill::jsonl(&text, ["text"])?;
    let rows = WindowPackOptions::new(64).over_long(OverLong::Split);
    let tokens = source.shuffle(42).tokenise(tokenizer()?, "text")?;
    let pipeline = tokens.to_iter().window_pack(rows).batch_with(8, Remainder::Drop);
    let loader = pipeline.loader().threads(2);
    let loader = if let Some(at) = saved.batches { loader.resume(at) } else { loader };

    let device = Plugin::load(&plugin.path)?.client()?.device(0)?;
    if device.client().platform() == "cpu" {
        keep_freed_memory();
    }
    let step = device.client().compile(include_str!("pjrt_train/step.mlir"))?;
    let weights = |shape: &[usize], values| device.put(&Array::new(DType::F32, shape, Buffer::from_vec(values))?);
    let mut embed = weights(&EMBED, saved.embed)?;
    let mut unembed = weights(&UNEMBED, saved.unembed)?;
    let mut batches = DevicePut::new(loader.build()?, Placement::on(&device), PutOptions::default())?;
    for batch in batches.by_ref().take(steps) {
        let batch = batch?;
        let (tokens, segments) = (batch.array("tokens")?.buffer(), batch.array("tokens_segment_ids")?.buffer());
        let mut results = step.run(&[&embed, &unembed, tokens, segments])?.into_iter();
        (embed, unembed) = (results.next().expect("3 results"), results.next().expect("3 results"));
        let loss = results.next().expect("3 results").to_array()?.as_slice::<f32>()?[0];
        println!("step {:>3}: loss {loss:.4}", batch.index() + 1);
    }
    let values = |array: Array| array.as_slice::<f32>().map(<[f32]>::to_vec);
    let (embed, unembed) = (values(embed.to_array()?)?, values(unembed.to_array()?)?);
    let saved = Saved { batches: Some(batches.state()?), embed, unembed };
    fs::write(&file, serde_json::to_string(&saved).expect("plain data")).map_err(|e| Error::io(e, &file))
}
