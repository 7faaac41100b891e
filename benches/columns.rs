//! Read and write rates of rows in Parquet and Arrow files. The limit is the decoder or encoder of the `parquet` or
//! `arrow` crate, which yields columns and no rows. The limit for batches is the decoder plus a hand-written loop that
//! copies each batch out of its columns. Also measures packing from columns of token ids, beside a packing kernel that
//! reads slices of one list.
//!
//! `cargo bench -p benches --bench columns --no-default-features --features arrow,parquet [-- NAME …]`. CPU time of one
//! thread, median of five rounds. The files are in the page cache.

use std::fs::File;
use std::hint::black_box;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int32Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::DataType;
use gristmill::dataset::map::{RandomAccess, Source};
use gristmill::pack::{
    BinPackOptions, ConcatPackOptions, Feature, GroupOptions, GroupPacker, Packing, Placed, RowSpec, WindowPackOptions,
};
use gristmill::source::{
    Arrow, ArrowCompression, ArrowWriter, ArrowWriterOptions, Parquet, ParquetCompression, ParquetWriter,
    ParquetWriterOptions,
};
use gristmill::{
    Array, BoxIter, BoxMap, Buffer, DType, DatasetIterator, Element, IterDataset, IterDatasetExt, MapDatasetExt,
    Result, Runtime, Value,
};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

#[path = "support/cpu_clock.rs"]
mod cpu_clock;
#[path = "support/lengths.rs"]
mod lengths;
#[path = "support/median.rs"]
mod median;
#[path = "support/wanted.rs"]
mod wanted;

use cpu_clock::on_core;
use median::seconds;
use wanted::wanted;

/// Returns the CPU seconds of `work` on this thread.
fn cpu(work: impl FnMut()) -> f64 {
    seconds(5, on_core, work)
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir().expect("a folder for temporary files");
    if wanted("parquet") {
        parquet(dir.path())?;
    }
    if wanted("arrow") {
        arrow(dir.path())?;
    }
    if wanted("activations") {
        activations()?;
    }
    if wanted("packing") {
        packing(dir.path())?;
    }
    Ok(())
}

/// Contents of a row.
#[derive(Clone, Copy)]
enum Row {
    /// A text of about 2 KiB and its 512 token ids.
    Document,
    /// Two numbers and a word.
    Small,
}

impl Row {
    fn name(self) -> &'static str {
        match self {
            Self::Document => "text of 2 KiB, 512 ids",
            Self::Small => "two numbers, a word",
        }
    }

    fn count(self) -> u64 {
        match self {
            Self::Document => 20_000,
            Self::Small => 500_000,
        }
    }

    fn at(self, i: u64) -> Element {
        let mut state = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        match self {
            Self::Document => {
                let words = ["grain ", "mill ", "water ", "wheel ", "stone ", "flour ", "sack ", "dust "];
                let text: String = (0..370).map(|_| words[(draw() % 8) as usize]).collect();
                let ids: Vec<i32> = (0..512).map(|_| (draw() % 50_000) as i32).collect();
                Element::new().with("text", text.as_str()).with("ids", Array::from_vec(ids))
            }
            Self::Small => {
                let numbers = Element::new().with("id", Array::scalar(i)).with("score", Array::scalar(draw() as f32));
                numbers.with("word", ["one", "two", "three"][(draw() % 3) as usize])
            }
        }
    }
}

fn create(dir: &Path, name: &str) -> (PathBuf, BufWriter<File>) {
    let path = dir.join(name);
    let file = File::create(&path).expect("a file");
    (path, BufWriter::with_capacity(1 << 20, file))
}

/// Reads all rows in order, in chunks as loaders request them.
fn in_order(source: &impl RandomAccess<Record = Element>) -> f64 {
    in_chunks(source, 1)
}

/// Reads all rows in steps of `stride`, modulo the number of rows, in chunks.
fn in_chunks(source: &impl RandomAccess<Record = Element>, stride: u64) -> f64 {
    let all: Vec<u64> = (0..source.len()).map(|i| (i * stride) % source.len()).collect();
    cpu(|| all.chunks(256).for_each(|chunk| drop(black_box(source.read_many(chunk)))))
}

/// Elements of a batch.
const BATCH: usize = 256;

/// Reads all rows in batches.
fn in_batches(ds: &BoxMap<Element>) -> f64 {
    let (ds, run) = (ds.clone().to_iter().batch(BATCH), Runtime::inline());
    cpu(|| {
        let (mut iter, mut cx) = (ds.iter(&run).expect("a pass"), run.cx());
        while let Some(batch) = iter.next(&mut cx).expect("a batch") {
            drop(black_box(batch));
        }
    })
}

/// Copies each batch out of the columns of a record batch into element values.
fn copied(decoded: &RecordBatch) {
    for start in (0..decoded.num_rows()).step_by(BATCH) {
        let rows = decoded.slice(start, BATCH.min(decoded.num_rows() - start));
        let batch: Vec<Value> = rows.columns().iter().map(column).collect();
        drop(black_box(batch));
    }
}

fn column(column: &ArrayRef) -> Value {
    let bytes = match column.data_type() {
        DataType::Utf8 => {
            let texts = column.as_string::<i32>().iter();
            return Value::List(texts.map(|text| text.map_or(Value::Null, Value::from)).collect());
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let (begin, end) = (lists.value_offsets()[0], lists.value_offsets()[lists.len()]);
            let numbers = lists.values().as_primitive::<Int32Type>();
            bytemuck::cast_slice(&numbers.values()[begin as usize..end as usize])
        }
        DataType::UInt64 => bytemuck::cast_slice(column.as_primitive::<UInt64Type>().values()),
        _ => bytemuck::cast_slice(column.as_primitive::<Float32Type>().values()),
    };
    Value::Bytes(Buffer::copy_from(bytes))
}

fn rate(rows: u64, seconds: f64) -> f64 {
    rows as f64 / seconds / 1e3
}

fn report(what: &str, rows: u64, limit: f64, ours: f64) {
    println!("{what:48} {:>9.0} {:>9.0} {:>6.0} %", rate(rows, limit), rate(rows, ours), 100.0 * limit / ours);
}

/// Reports batches in order beside the limit, and shuffled batches from a source that caches all decoded columns.
fn batches<S>(what: &str, rows: u64, limit: f64, source: S, kept: S)
where
    S: RandomAccess<Record = Element> + 'static,
{
    let (ordered, shuffled) = (Source::new(source).boxed(), Source::new(kept).boxed().shuffle(1).boxed());
    report(&format!("{what}, batches of {BATCH}"), rows, limit, in_batches(&ordered));
    println!("{:48} {:>19.0}", format!("{what}, batches, shuffled"), rate(rows, in_batches(&shuffled)));
}

fn parquet(dir: &Path) -> Result<()> {
    println!("{:48} {:>9} {:>9} {:>8}", "Parquet, in order, thousand rows/s", "decoder", "rows", "of it");
    for row in [Row::Document, Row::Small] {
        for (name, codec) in [("zstd", ParquetCompression::Zstd(3)), ("none", ParquetCompression::None)] {
            let (path, out) = create(dir, "a.parquet");
            let mut writer = ParquetWriter::new(out, ParquetWriterOptions::new().compression(codec))?;
            (0..row.count()).try_for_each(|i| writer.write(&row.at(i)))?;
            drop(writer.finish()?.into_inner().expect("a file"));
            let decoded = |each: fn(&RecordBatch)| {
                cpu(|| {
                    let file = File::open(&path).expect("the file");
                    let reader =
                        ParquetRecordBatchReaderBuilder::try_new(file).and_then(|b| b.with_batch_size(8192).build());
                    reader.expect("a reader").for_each(|batch| each(black_box(&batch.expect("a batch"))));
                })
            };
            // The cache is too small to keep columns between rounds.
            let open = || Parquet::options().cache_bytes(1).open(&path);
            let what = format!("{}, {name}", row.name());
            report(&what, row.count(), decoded(|_| ()), in_order(&open()?));
            let shuffled = in_chunks(&Parquet::open(&path)?, 611_953);
            println!("{:48} {:>19.0}", format!("{what}, shuffled"), rate(row.count(), shuffled));
            batches(&what, row.count(), decoded(copied), open()?, Parquet::open(&path)?);
        }
    }
    Ok(())
}

fn arrow(dir: &Path) -> Result<()> {
    println!("{:48} {:>9} {:>9} {:>8}", "Arrow, in order, thousand rows/s", "decoder", "rows", "of it");
    for row in [Row::Document, Row::Small] {
        for (name, codec) in [("zstd", ArrowCompression::Zstd(3)), ("none", ArrowCompression::None)] {
            let (path, out) = create(dir, "a.arrow");
            let mut writer = ArrowWriter::new(out, ArrowWriterOptions::new().compression(codec))?;
            (0..row.count()).try_for_each(|i| writer.write(&row.at(i)))?;
            drop(writer.finish()?.into_inner().expect("a file"));
            let decoded = |each: fn(&RecordBatch)| {
                cpu(|| {
                    let reader = FileReader::try_new(File::open(&path).expect("the file"), None);
                    reader.expect("a reader").for_each(|batch| each(black_box(&batch.expect("a batch"))));
                })
            };
            let open = || Arrow::options().cache_bytes(1).open(&path);
            let what = format!("{}, {name}", row.name());
            report(&what, row.count(), decoded(|_| ()), in_order(&open()?));
            batches(&what, row.count(), decoded(copied), open()?, Arrow::open(&path)?);
            if codec == ArrowCompression::None {
                let source = Arrow::open(&path)?;
                let order: Vec<u64> = (0..row.count()).map(|i| (i * 611_953) % row.count()).collect();
                let shuffled = cpu(|| order.iter().for_each(|&i| drop(black_box(source.read(i)))));
                println!(
                    "{:48} {:>19.0}",
                    format!("{}, mapped, shuffled", row.name()),
                    row.count() as f64 / shuffled / 1e3
                );
            }
        }
    }
    Ok(())
}

/// Writes activations as of a network: approximately normal `float32`.
fn activations() -> Result<()> {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u32 << 24) as f32
    };
    let numbers: Vec<f32> = (0..512 * 896).map(|_| (0..6).map(|_| uniform()).sum::<f32>() - 3.0).collect();
    let layer = Array::new(DType::F32, &[512, 896], Buffer::from_vec(numbers))?;
    let row = (0..14).fold(Element::new(), |row, at| row.with(format!("layer{at}"), layer.clone()));
    let bytes = row.nbytes();
    println!("activations, 14 layers of [512, 896] float32: MB/s, and bytes of 100");
    for (name, split, codec) in [
        ("parquet, none", false, ParquetCompression::None),
        ("parquet, byte_stream_split, none", true, ParquetCompression::None),
        ("parquet, zstd 1", false, ParquetCompression::Zstd(1)),
        ("parquet, byte_stream_split, zstd 1", true, ParquetCompression::Zstd(1)),
        ("parquet, byte_stream_split, lz4", true, ParquetCompression::Lz4),
    ] {
        let options = ParquetWriterOptions::new().byte_stream_split(split).compression(codec);
        let mut size = 0;
        let time = cpu(|| {
            let mut writer = ParquetWriter::new(Vec::new(), options.clone()).expect("a writer");
            (0..2).for_each(|_| writer.write(&row).expect("a row"));
            size = writer.finish().expect("a file").len();
        });
        println!("{name:48} {:>9.0} {:>9.1}", 2.0 * bytes as f64 / time / 1e6, 50.0 * size as f64 / bytes as f64);
    }
    for (name, codec) in [("arrow, none", ArrowCompression::None), ("arrow, zstd 1", ArrowCompression::Zstd(1))] {
        let options = ArrowWriterOptions::new().compression(codec);
        let mut size = 0;
        let time = cpu(|| {
            let mut writer = ArrowWriter::new(Vec::new(), options.clone()).expect("a writer");
            (0..2).for_each(|_| writer.write(&row).expect("a row"));
            size = writer.finish().expect("a file").len();
        });
        println!("{name:48} {:>9.0} {:>9.1}", 2.0 * bytes as f64 / time / 1e6, 50.0 * size as f64 / bytes as f64);
    }
    Ok(())
}

/// Tokens of a packed row.
const PACKED: usize = 1024;

/// Reports sequences/s of one thread, from columns of token ids to packed rows. Lengths are as in the bench `pack`.
fn packing(dir: &Path) -> Result<()> {
    let lens = lengths::log_normal(1 << 16, 220.0, 1.0, PACKED);
    let tokens: Vec<i32> = (0..lens.iter().sum::<usize>() as i32).collect();
    let sequences = || {
        let mut rest = tokens.as_slice();
        lens.iter().map(move |&len| rest.split_off(..len).expect("a sequence"))
    };
    let (arrow, out) = create(dir, "ids.arrow");
    let mut writer = ArrowWriter::new(out, ArrowWriterOptions::new())?;
    sequences().try_for_each(|ids| writer.write(&Element::new().with("tokens", Array::from_vec(ids.to_vec()))))?;
    drop(writer.finish()?.into_inner().expect("a file"));
    let (parquet, out) = create(dir, "ids.parquet");
    let mut writer = ParquetWriter::new(out, ParquetWriterOptions::new().compression(ParquetCompression::None))?;
    sequences().try_for_each(|ids| writer.write(&Element::new().with("tokens", Array::from_vec(ids.to_vec()))))?;
    drop(writer.finish()?.into_inner().expect("a file"));

    let mut packer = GroupPacker::new(&[Feature::new("tokens", PACKED)], GroupOptions::new(64))?;
    let kernel = cpu(|| {
        for ids in sequences() {
            if packer.push(&[bytemuck::cast_slice(ids)]).expect("a sequence") == Placed::Full {
                drop(black_box(packer.finish()));
                packer.push(&[bytemuck::cast_slice(ids)]).expect("an empty group");
            }
        }
    });
    println!("packing, thousand sequences/s; first-fit kernel on slices: {:.0}", rate(lens.len() as u64, kernel));
    println!("{:48} {:>9} {:>9} {:>9} {:>9}", "", "rows", "concat", "first fit", "window");
    let rows = || RowSpec::new([("tokens", PACKED)]);
    let speed = |ds: &BoxIter<Element>| {
        let run = Runtime::inline();
        let seconds = cpu(|| {
            let (mut iter, mut cx) = (ds.iter(&run).expect("a pass"), run.cx());
            while let Some(row) = iter.next(&mut cx).expect("a row") {
                drop(black_box(row));
            }
        });
        rate(lens.len() as u64, seconds)
    };
    let report = |what: &str, source: &BoxMap<Element>| {
        let stream = || source.clone().to_iter();
        let pipelines = [
            stream().boxed(),
            stream().concat_then_split_pack(ConcatPackOptions::new(rows())).boxed(),
            stream().first_fit_pack(BinPackOptions::new(rows(), 64)).boxed(),
            stream().window_pack(WindowPackOptions::new(rows())).boxed(),
        ];
        let [elements, concat, first_fit, window] = pipelines.each_ref().map(speed);
        println!("{what:48} {elements:>9.0} {concat:>9.0} {first_fit:>9.0} {window:>9.0}");
    };
    report("Arrow, mapped", &Source::new(Arrow::open(&arrow)?).boxed());
    report("Arrow, mapped, shuffled", &Source::new(Arrow::open(&arrow)?).boxed().shuffle(1).boxed());
    report("Parquet, not compressed", &Source::new(Parquet::options().cache_bytes(1).open(&parquet)?).boxed());
    report("Parquet, not compressed, kept", &Source::new(Parquet::open(&parquet)?).boxed());
    Ok(())
}
