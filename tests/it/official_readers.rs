//! What is written here is read by those who made the formats: by their Python packages, where they can be imported.
//!
//! The interpreter is `GRISTMILL_PYTHON`, else `python3`. A package that is not there is a test that is skipped.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(feature = "safetensors")]
use gristmill::source::SafetensorsWriter;
use gristmill::source::{MegatronWriter, NpyWriter};
use gristmill::{Array, DType, Element};

/// Runs a script in `folder` that must end well, unless a module that it needs is not there.
fn python(folder: &Path, modules: &[&str], script: &str) {
    let imports: String = modules.iter().map(|module| format!("    import {module}\n")).collect();
    let script = format!(
        "import sys\ntry:\n{imports}except ImportError as error:\n    sys.exit(f'skipped: {{error}}')\n{script}"
    );
    let interpreter = std::env::var_os("GRISTMILL_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(interpreter);
    command.arg("-").current_dir(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        println!("skipped: no Python; set GRISTMILL_PYTHON");
        return;
    };
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    match text.trim_end().lines().last() {
        Some(line) if line.starts_with("skipped: ") => println!("{line}"),
        _ => assert!(output.status.success(), "{text}"),
    }
}

fn create(folder: &Path, name: &str) -> std::fs::File {
    std::fs::File::create(folder.join(name)).unwrap()
}

#[test]
fn numpy_loads_npy_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut rows = NpyWriter::options().write_back_to(create(dir.path(), "rows.npy"));
    for row in 0..3i16 {
        let array = Array::from_vec(vec![row, -row, 7, 8]);
        rows.write(&Element::new().with("x", Array::new(DType::I16, &[2, 2], array.buffer().clone()).unwrap()))
            .unwrap();
    }
    rows.finish().unwrap();
    let mut known = NpyWriter::options().rows(2).write_to(create(dir.path(), "bools.npy")).unwrap();
    [true, false].into_iter().for_each(|row| known.write(&Element::new().with("x", Array::bool(row))).unwrap());
    known.finish().unwrap();
    NpyWriter::options().write_back_to(create(dir.path(), "none.npy")).finish().unwrap();
    let script = "
rows = numpy.load('rows.npy')
assert rows.dtype == 'int16' and rows.tolist() == [[[r, -r], [7, 8]] for r in range(3)], rows
assert numpy.load('rows.npy', mmap_mode='r').shape == (3, 2, 2)
assert numpy.load('bools.npy').tolist() == [True, False]
assert numpy.load('none.npy').shape == (0,)
";
    python(dir.path(), &["numpy"], script);
}

#[cfg(feature = "safetensors")]
#[test]
fn safetensors_loads_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let element = |n: f32| {
        let half = Array::from_vec(vec![half::f16::from_f32(n)]);
        Element::new().with("a", Array::from_vec(vec![n, n + 0.5])).with("ids", Array::scalar(n as i64)).with("h", half)
    };
    let mut one = SafetensorsWriter::options().write_to(create(dir.path(), "one.safetensors"));
    one.write(&element(1.0)).unwrap();
    one.finish().unwrap();
    let mut rows = SafetensorsWriter::options().rows(true).write_to(create(dir.path(), "rows.safetensors"));
    (0..3u8).for_each(|n| rows.write(&element(n.into())).unwrap());
    rows.finish().unwrap();
    let script = "
from safetensors.numpy import load_file, save
one, rows = load_file('one.safetensors'), load_file('rows.safetensors')
assert one['a'].tolist() == [1, 1.5] and one['ids'].tolist() == 1 and one['h'].tolist() == [1]
assert rows['a'].tolist() == [[n, n + 0.5] for n in range(3)] and rows['ids'].dtype == 'int64'
assert rows['h'].shape == (3, 1) and rows['h'].dtype == 'float16'
assert save(rows) == open('rows.safetensors', 'rb').read()
";
    python(dir.path(), &["numpy", "safetensors.numpy"], script);
}

/// What the format's own writer never makes: chunks that begin at blocks each, and a file without a record.
#[cfg(feature = "array_record")]
#[test]
fn array_record_reads_padded_and_empty_files() {
    use gristmill::source::{ArrayRecordWriter, Compression};
    let dir = tempfile::tempdir().unwrap();
    let options = || ArrayRecordWriter::options().pad_to_block_boundary(true);
    for (name, options) in [
        ("plain", options().compression(Compression::None)),
        ("zstd", options().group_size(7).compression(Compression::Zstd(3))),
    ] {
        let mut writer = options.create(dir.path().join(name)).unwrap();
        (0..50usize).for_each(|i| writer.write(&vec![i as u8; i * i * 100]).unwrap());
        writer.finish().unwrap();
    }
    for (name, options) in [("none", ArrayRecordWriter::options()), ("none-padded", options())] {
        options.create(dir.path().join(name)).unwrap().finish().unwrap();
    }
    let script = "
from array_record.python.array_record_module import ArrayRecordReader
records = [bytes([i]) * (i * i * 100) for i in range(50)]
for name in ['plain', 'zstd']:
    reader = ArrayRecordReader(name)
    assert reader.ok() and reader.num_records() == 50 and reader.read_all() == records, name
    assert reader.read([49, 0, 7]) == [records[49], records[0], records[7]], name
for name in ['none', 'none-padded']:
    reader = ArrayRecordReader(name)
    assert reader.ok() and reader.num_records() == 0 and list(reader.read_all()) == [], name
";
    python(dir.path(), &["array_record.python.array_record_module"], script);
}

/// What each of the usual ways gives of a file: all of it, not its first section.
#[cfg(feature = "compress")]
fn sections_are_read(compression: &str, ending: &str, module: &str, reads: &str) {
    use gristmill::sink::{Sink, SinkFormat};
    let dir = tempfile::tempdir().unwrap();
    let options = Sink::options(SinkFormat::Jsonl).compression(compression.parse().unwrap()).threads(2);
    let mut sink = options.open(dir.path()).unwrap();
    // Of 18 MB: more than two sections of the largest size that is asked for here.
    for n in 0..9000i64 {
        let text = format!("{n} ").repeat(2000 / (n.to_string().len() + 1));
        sink.write(Element::new().with("n", Array::scalar(n)).with("text", text.as_str())).unwrap();
    }
    sink.finish().unwrap();
    let script = format!(
        "
import json
name = 'shard-00000.jsonl.{ending}'
for text in [{reads}]:
    assert [json.loads(line)['n'] for line in text.splitlines()] == list(range(9000)), len(text)
"
    );
    python(dir.path(), &[module], &script);
}

#[cfg(feature = "compress")]
#[test]
fn gzip_reads_all_members() {
    sections_are_read("gzip:1", "gz", "gzip", "gzip.open(name).read(), gzip.decompress(open(name, 'rb').read())");
}

#[cfg(feature = "compress")]
#[test]
fn zstandard_reads_all_frames() {
    let reads = "zstandard.open(name).read(), zstandard.ZstdDecompressor().stream_reader(open(name, 'rb')).read()";
    sections_are_read("zstd:3", "zst", "zstandard", reads);
}

#[cfg(feature = "compress")]
#[test]
fn lz4_reads_all_blocks() {
    let reads = "lz4.frame.open(name).read(), lz4.frame.decompress(open(name, 'rb').read())";
    sections_are_read("lz4", "lz4", "lz4.frame", reads);
}

#[cfg(all(feature = "compress", feature = "tf_record"))]
#[test]
fn tensorflow_reads_examples_in_its_records() {
    use gristmill::source::{TfRecordWriter, TfRecordWriterOptions, encode_example};
    let dir = tempfile::tempdir().unwrap();
    for (name, options) in [
        ("plain", TfRecordWriterOptions::default()),
        ("gzip", TfRecordWriterOptions::default().gzip(6)),
        ("none", TfRecordWriterOptions::default()),
    ] {
        let mut writer = TfRecordWriter::new(create(dir.path(), name), options).unwrap();
        for i in 0..if name == "none" { 0 } else { 30i64 } {
            let element = Element::new()
                .with("ids", Array::from_vec((0..i).map(|id| id - 3).collect()))
                .with("x", Array::from_vec(vec![i as f32, -0.5]))
                .with("text", format!("row {i}").as_str());
            writer.write(&encode_example(&element).unwrap()).unwrap();
        }
        writer.finish().unwrap();
    }
    let script = "
features = {
    'ids': tf.io.VarLenFeature(tf.int64),
    'x': tf.io.FixedLenFeature([2], tf.float32),
    'text': tf.io.FixedLenFeature([], tf.string),
}
for name, compression in [('plain', ''), ('gzip', 'GZIP')]:
    read = [tf.io.parse_single_example(r, features) for r in tf.data.TFRecordDataset(name, compression_type=compression)]
    assert [tf.sparse.to_dense(e['ids']).numpy().tolist() for e in read] == [[j - 3 for j in range(i)] for i in range(30)]
    assert [e['x'].numpy().tolist() for e in read] == [[i, -0.5] for i in range(30)], name
    assert [e['text'].numpy() for e in read] == [b'row %d' % i for i in range(30)], name
assert list(tf.data.TFRecordDataset('none')) == []
";
    python(dir.path(), &["tensorflow as tf"], script);
}

/// In a file of several members, of which it must read the last, too.
#[cfg(all(feature = "compress", feature = "tf_record"))]
#[test]
fn tensorflow_reads_sequence_examples_in_all_members() {
    use gristmill::Value;
    use gristmill::sink::{Compression, Sink, SinkFormat};
    let dir = tempfile::tempdir().unwrap();
    let options = Sink::options(SinkFormat::TfRecord).compression(Compression::Gzip(1)).threads(2);
    let mut sink = options.sequences(["frames", "words"]).open(dir.path()).unwrap();
    for n in 0..1500i64 {
        let frame = |step: i64| Array::from_vec(vec![(n + step) as f32; 1000]).into();
        let element = Element::new()
            .with("id", Array::scalar(n))
            .with("frames", Value::List((0..n % 4).map(frame).collect()))
            .with("words", Value::List((0..n % 3).map(|step| format!("word {step}").as_str().into()).collect()));
        sink.write(element).unwrap();
    }
    sink.finish().unwrap();
    let script = "
context = {'id': tf.io.FixedLenFeature([], tf.int64)}
sequences = {
    'frames': tf.io.FixedLenSequenceFeature([1000], tf.float32),
    'words': tf.io.FixedLenSequenceFeature([], tf.string),
}
count = 0
for n, record in enumerate(tf.data.TFRecordDataset('shard-00000.tfrecord.gz', compression_type='GZIP')):
    context_of, steps = tf.io.parse_single_sequence_example(record, context, sequences)
    assert context_of['id'].numpy() == n
    assert steps['frames'].numpy().tolist() == [[n + step] * 1000 for step in range(n % 4)], n
    assert steps['words'].numpy().tolist() == [b'word %d' % step for step in range(n % 3)], n
    count += 1
assert count == 1500, count
";
    python(dir.path(), &["tensorflow as tf"], script);
}

#[test]
fn megatron_loads_its_datasets() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["a.bin", "a.idx"].map(|name| create(dir.path(), name));
    let [data, index] = files;
    let mut writer = MegatronWriter::options().dtype(DType::U16).several_sequences(true).write_to(data, index).unwrap();
    for length in [3i32, 0, 5, 1] {
        let ids = Array::from_vec((0..length).map(|id| id + 60_000).collect());
        writer.write(&Element::new().with("tokens", ids).with("mode", Array::scalar(length as i8))).unwrap();
        if length != 5 {
            writer.end_document();
        }
    }
    writer.finish().unwrap();
    let script = "
from megatron.core.datasets.indexed_dataset import IndexedDataset
read = IndexedDataset('a', multimodal=True)
assert [read[i][0].tolist() for i in range(len(read))] == [list(range(60000, 60000 + n)) for n in (3, 0, 5, 1)]
assert read[2][0].dtype == 'uint16' and [int(read[i][1]) for i in range(len(read))] == [3, 0, 5, 1]
assert read.document_indices.tolist() == [0, 1, 2, 4]
";
    python(dir.path(), &["numpy", "megatron.core.datasets.indexed_dataset"], script);
}
