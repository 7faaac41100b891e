//! TFRecord.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(super) const FACTS: Facts = Facts {
    is_indexed: true,
    sign: Some((Turn::Length, |probe| begins(probe.head()))),
    // A file without records is empty. If the first record is damaged, the reader reports the damage.
    could_be: |_| true,
    ..Facts::of("tfrecord", &[".tfrecord", ".tfrecords"])
};

pub(super) const COMPRESSED: Facts = Facts {
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
    return head.is_empty() && cfg!(feature = "tf_record");
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
