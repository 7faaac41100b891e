//! TFRecord.

use super::facts::{Facts, Turn};
use super::probe::Probe;

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
    sign: Some((Turn::Packed, |probe| probe.unpacks_to(begins) || is_zlib(probe))),
    ..Facts::compressed(
        "tfrecord_stream",
        "tfrecord",
        &[".tfrecord.gz", ".tfrecords.gz", ".tfrecord.zlib", ".tfrecords.zlib"],
    )
};

/// Returns true if the bytes begin with a record, in builds that read TFRecord.
fn begins(head: &[u8]) -> bool {
    #[cfg(feature = "tf_record")]
    return crate::source::tf_record::is_tf_record(head);
    #[cfg(not(feature = "tf_record"))]
    {
        let _ = head;
        false
    }
}

#[cfg(all(feature = "tf_record", feature = "compress"))]
fn is_zlib(probe: &Probe) -> bool {
    use crate::source::{inflate, signs};
    signs::may_be_zlib(probe.head()) && begins(&inflate::beginning_of_zlib(probe.head(), 4 << 10))
}

#[cfg(not(all(feature = "tf_record", feature = "compress")))]
fn is_zlib(_: &Probe) -> bool {
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
