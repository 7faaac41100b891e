//! A Parquet file whose decoded row groups take eight times the cache used to read it.

use std::fs::File;
use std::path::{Path, PathBuf};

use gristmill::dataset::Remainder;
use gristmill::dataset::map::Source;
use gristmill::source::{Parquet, ParquetWriter, ParquetWriterOptions};
use gristmill::{Array, BoxIter, Element, Error, IterDatasetExt, MapDatasetExt, Result};

/// Row groups of 1 MiB each, with rows of an id and 255 numbers.
const GROUPS: usize = 64;
const ROWS: usize = 1024;
const NUMBERS: usize = 255;
const CACHE_BYTES: usize = 8 << 20;
const BATCH: usize = 32;

/// Returns the file, written once for all runs and workers.
fn file() -> Result<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tuning.parquet");
    if path.exists() {
        return Ok(path);
    }
    let new = path.with_extension("new");
    let file = File::create(&new).map_err(|e| Error::io(e, &new))?;
    let mut writer = ParquetWriter::new(file, ParquetWriterOptions::new().row_group_rows(ROWS))?;
    let mut random = 1u64;
    for id in 0..GROUPS * ROWS {
        let number = |_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 40) as f32
        };
        let numbers: Vec<f32> = (0..NUMBERS).map(number).collect();
        writer.write(&Element::new().with("id", Array::scalar(id as i64)).with("numbers", Array::from_vec(numbers)))?;
    }
    writer.finish()?;
    std::fs::rename(&new, &path).map_err(|e| Error::io(e, &path))?;
    Ok(path)
}

/// Returns endless batches of its rows, in random order.
pub(crate) fn shuffled() -> Result<BoxIter<Element>> {
    let source = Source::new(Parquet::options().cache_bytes(CACHE_BYTES).open(file()?)?);
    Ok(source.shuffle(42).repeat(None).to_iter().batch_with(BATCH, Remainder::Drop).boxed())
}
