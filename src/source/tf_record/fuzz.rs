//! Fuzz target for TFRecord files.

use super::{TfRecordStream, TfRecordWriter, TfRecordWriterOptions};
use crate::dataset::{DatasetIterator, IterDataset};
use crate::source::fuzzing::{Target, contents};

pub(in crate::source) const TARGETS: &[Target] = &[("tf_record", tf_record)];

/// Reads a TFRecord file, compressed or not. Writes the records, and checks that they are read back unchanged.
/// Checksums are not verified here, because random input would never pass them.
fn tf_record(data: &[u8]) {
    let (mut cx, runtime) = (crate::Cx::default(), crate::exec::Runtime::inline());
    let open = |file: &[u8]| TfRecordStream::of(contents("x.tfrecord", file));
    let Ok(Ok(mut records)) = open(data).map(|stream| stream.iter(&runtime)) else { return };
    // A small file can contain very long records.
    let (mut read, mut bytes) = (Vec::new(), 0);
    while read.len() < 1000 && bytes < 16 << 20 {
        let Ok(Some(record)) = records.next(&mut cx) else { break };
        bytes += record.len();
        read.push(record);
    }
    let mut writer = TfRecordWriter::new(Vec::new(), TfRecordWriterOptions::default()).expect("a writer");
    read.iter().for_each(|record| writer.write(record.as_bytes()).expect("room in memory"));
    let written = open(&writer.finish().expect("room in memory")).expect("what was written");
    let mut again = written.iter(&runtime).expect("what was written");
    for record in read {
        assert!(again.next(&mut cx).expect("what was written").is_some_and(|again| again == record));
    }
    assert!(again.next(&mut cx).expect("its end").is_none());
}
