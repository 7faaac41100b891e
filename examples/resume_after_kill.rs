//! A run that is killed in the middle of a step and resumed yields exactly the stream of an uninterrupted run.
//!
//!     cargo run --release --example resume_after_kill

use std::path::Path;
use std::process::Command;

use gristmill::dataset::map::Range;
use gristmill::element::OrderHash;
use gristmill::prelude::*;
use gristmill::{Checkpoint, Error, Result};
use serde::{Deserialize, Serialize};

/// State that a trainer saves beside its weights: the loader's position, and here the digest of all batches so far.
#[derive(Serialize, Deserialize)]
struct Saved {
    loader: Checkpoint,
    hash: OrderHash,
}

fn train(folder: &Path, die_at: Option<u64>) -> Result<OrderHash> {
    let pipeline = Range::new(0, 10_000).shuffle(1).map(|x| x * x).to_iter().window_shuffle(100, 2).batch(16);
    let file = folder.join("saved.json");
    let mut builder = pipeline.loader().threads(2);
    let mut hash = OrderHash::default();
    if let Ok(text) = std::fs::read_to_string(&file) {
        let saved: Saved = serde_json::from_str(&text).map_err(|e| Error::state(e.to_string()))?;
        builder = builder.resume(saved.loader);
        hash = saved.hash;
    }
    let mut loader = builder.build()?;
    while let Some(batch) = loader.next().transpose()? {
        hash.update(&batch);
        if loader.delivered().is_multiple_of(50) {
            let saved = Saved { loader: loader.state()?, hash };
            std::fs::write(&file, serde_json::to_string(&saved).expect("plain data"))
                .map_err(|e| Error::io(e, &file))?;
        }
        if die_at == Some(loader.delivered()) {
            std::process::abort();
        }
    }
    Ok(hash)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    if let (Some(folder), Some(step)) = (args.next(), args.next()) {
        return train(Path::new(&folder), step.parse().ok()).map(drop);
    }
    let folder = std::env::temp_dir().join(format!("gristmill-resume-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(e, &folder))?;
    let whole = train(&folder, None)?;
    std::fs::remove_file(folder.join("saved.json")).ok();

    let me = std::env::current_exe().map_err(|e| Error::io(e, "the running program"))?;
    let killed = Command::new(me).arg(&folder).arg("333").status().map_err(|e| Error::io(e, "a second process"))?;
    println!("the first run ended with {killed}, after step 333; its last save was after step 300");
    let resumed = train(&folder, None)?;
    println!("order hash of a whole run      {whole}\norder hash of killed + resumed {resumed}");
    std::fs::remove_dir_all(&folder).ok();
    if whole == resumed { Ok(()) } else { Err(Error::data("the two streams differ")) }
}
