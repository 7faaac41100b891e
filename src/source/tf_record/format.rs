//! TFRecord.

use super::facts::{Facts, Turn};
#[cfg(feature = "tf_record")]
use crate::source::tf_record::{is_tf_record as begins, is_zlib};

pub(in crate::source) const FACTS: Facts = Facts {
    is_indexed: true,
    sign: Some((Turn::Length, |probe| begins(probe.head()))),
    // A file without records is empty. If the first record is damaged, the reader reports the damage.
    could_be: |_| true,
    ..Facts::of(
        "tfrecord",
        "Reads the records of TFRecord files. Compressed files (`.gz`, `.zlib`) are read as a stream.\n\n\
         Elements are `bytes`, or dicts if `field`, `examples` or `sequence_examples` is given.",
        &[".tfrecord", ".tfrecords"],
    )
};

pub(in crate::source) const COMPRESSED: Facts = Facts {
    sign: Some((Turn::Packed, |probe| probe.unpacks_to(begins) || is_zlib(probe.head()))),
    ..Facts::compressed(
        "tfrecord_stream",
        "tfrecord",
        &[".tfrecord.gz", ".tfrecords.gz", ".tfrecord.zlib", ".tfrecords.zlib"],
    )
};

#[cfg(not(feature = "tf_record"))]
fn begins(_: &[u8]) -> bool {
    false
}

#[cfg(not(feature = "tf_record"))]
fn is_zlib(_: &[u8]) -> bool {
    false
}

#[cfg(all(test, feature = "tf_record"))]
mod tests {
    use crate::source::detect::tests::is;
    use crate::source::formats::Format;

    #[test]
    fn records_of_every_length_are_tf_record() {
        for length in 0..3000 {
            let mut writer = crate::source::TfRecordWriter::new(Vec::new(), Default::default()).unwrap();
            writer.write(&vec![b' '; length]).unwrap();
            assert_eq!(is(&writer.finish().unwrap(), "x"), Some(Format::TfRecord), "{length}");
        }
    }
}
