//! Formats that are decoded many records at a time, shuffled, by worker processes: the records are the same, and what each worker
//! has decoded is in the report.
#![cfg(all(feature = "workers", feature = "array_record", feature = "parquet", target_os = "linux"))]

use std::path::{Path, PathBuf};
use std::time::Duration;

use gristmill::dataset::map::Source;
use gristmill::source::{
    ArrayRecord, ArrayRecordWriter, Compression, Parquet, ParquetCompression, ParquetWriter, ParquetWriterOptions,
};
use gristmill::workers::{MpOptions, mp_prefetch};
use gristmill::{
    Array, BoxIter, Element, IterDataset, IterDatasetExt, Load, LoaderBuilder, MapDatasetExt, Result, Value,
};
use serde::{Deserialize, Serialize};

const RECORDS: u64 = 16_384;
/// Of a unit.
const TOGETHER: u64 = 64;
/// A third of what the records take, about.
const ROOM: usize = 512 << 10;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Format {
    ArrayRecord,
    Parquet,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Self::ArrayRecord => "array_record",
            Self::Parquet => "parquet",
        }
    }

    fn path(self, folder: &Path) -> PathBuf {
        folder.join(format!("a.{}", self.name()))
    }

    fn write(self, folder: &Path) -> Result<()> {
        let path = self.path(folder);
        let numbers = |i: u64| (0..8).map(|n| i * 8 + n).collect::<Vec<_>>();
        match self {
            Self::ArrayRecord => {
                let options = ArrayRecordWriter::options().group_size(TOGETHER).compression(Compression::Zstd(1));
                let mut writer = options.create(&path)?;
                (0..RECORDS).try_for_each(|i| {
                    let bytes: Vec<u8> = numbers(i).into_iter().flat_map(u64::to_le_bytes).collect();
                    writer.write(&bytes)
                })?;
                writer.finish().map(drop)
            }
            Self::Parquet => {
                let options = ParquetWriterOptions::new().row_group_rows(TOGETHER as usize);
                let options = options.compression(ParquetCompression::Zstd(1));
                let mut writer = ParquetWriter::new(std::fs::File::create(&path)?, options)?;
                (0..RECORDS).try_for_each(|i| writer.write(&Element::new().with("x", Array::from_vec(numbers(i)))))?;
                writer.finish().map(drop)
            }
        }
    }
}

type Config = (Format, PathBuf);

/// All records in random order.
fn shuffled((format, path): Config) -> Result<BoxIter<Element>> {
    Ok(match format {
        Format::ArrayRecord => {
            let records = Source::new(ArrayRecord::options().cache_bytes(ROOM).open(path)?).shuffle(1);
            records.map(|record| Element::new().with("x", Value::Bytes(record))).to_iter().boxed()
        }
        Format::Parquet => Source::new(Parquet::options().cache_bytes(ROOM).open(path)?).shuffle(1).to_iter().boxed(),
    })
}

/// Units that were decoded, the records in them, and those that were read out of them.
type Decoded = [u64; 3];

/// All elements, and what was decoded for them.
fn run(format: Format, builder: LoaderBuilder<impl IterDataset<Item = Element> + 'static>) -> (Vec<Element>, Decoded) {
    let mut loader = builder.build().unwrap();
    let elements = loader.by_ref().collect::<Result<_>>().unwrap();
    let notes = loader.report().notes;
    let count = |what: &str| {
        let name = format!("{} {what}", format.name());
        notes.iter().find(|(note, _)| *note == name).map_or(0, |(_, count)| *count)
    };
    (elements, ["units decoded", "records decoded", "records read out of them"].map(count))
}

#[test]
fn shuffled_units_are_the_same_from_workers_and_every_decoding_is_in_the_report() {
    let temp = tempfile::tempdir().unwrap();
    for format in [Format::ArrayRecord, Format::Parquet] {
        format.write(temp.path()).unwrap();
        let config = (format, format.path(temp.path()));
        let (expected, [inline, ..]) = run(format, shuffled(config.clone()).unwrap().loader());
        assert_eq!(expected.len() as u64, RECORDS);
        println!("{}: {inline} units decoded inline", format.name());
        for (workers, threads) in [(1, 1), (2, 1), (4, 1), (1, 4)] {
            let options = MpOptions::auto().workers(workers).threads_per_worker(threads).worker_heap(64 << 20);
            let options = options.ram_budget(600 << 20).deadline(Duration::from_secs(60));
            let (elements, [units, records, read]) =
                run(format, mp_prefetch(shuffled, config.clone(), options).unwrap());
            println!("{}: {units} units decoded by {workers} workers of {threads} threads", format.name());
            assert!(elements == expected, "{}, {workers} workers", format.name());
            // Each record was read by one worker, once, and all have said so, but for the last few that needed no decoding.
            let told = RECORDS - 64 * workers as u64..=RECORDS;
            assert!(told.contains(&read), "{}, {workers} workers: {read} read", format.name());
            assert_eq!(records, units * TOGETHER, "{}, {workers} workers", format.name());
            // Ranges know less than a pass does; and those that threads of one worker evaluate at a time have room together.
            let few = RECORDS / TOGETHER..=inline * 5 / 2;
            assert!(few.contains(&units), "{}, {workers} workers of {threads} threads: {units}", format.name());
        }
    }
}
