//! TFRecord.

use super::facts::{Facts, Turn};
use super::probe::Probe;

pub(super) const FACTS: Facts = Facts {
    is_indexed: true,
    sign: Some((Turn::Length, |probe| begins(probe.head()))),
    // It holds nothing at all where there are no records; where the first is damaged, the reader says so.
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

/// Whether records begin so, where they can be read.
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
