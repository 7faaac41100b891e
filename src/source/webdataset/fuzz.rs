//! Fuzz target for WebDataset shards.

use super::{WebDataset, WebDatasetWriter};
use crate::dataset::map::RandomAccess;
use crate::dataset::{DatasetIterator, IterDataset};
use crate::source::fuzzing::{Target, contents};

pub(in crate::source) const TARGETS: &[Target] = &[("webdataset", webdataset)];

/// Reads a tar archive by number and, compressed or not, front to back. If the archive opens by number, both readers
/// must return equal samples, or both must return errors.
fn webdataset(data: &[u8]) {
    written_again(data);
    let options = || WebDataset::options().decode(true);
    let numbered = options().open_contents(contents("x.tar", data)).ok();
    let Ok(stream) = options().stream_contents(contents("x.tar", data)) else { return };
    let Ok(mut samples) = stream.iter(&crate::exec::Runtime::inline()) else { return };
    let mut cx = crate::Cx::default();
    // A small file can contain very long samples.
    let (mut count, mut bytes) = (0, 0);
    while count < 1000 && bytes < 16 << 20 {
        let state = samples.state();
        let sample = samples.next(&mut cx);
        if let Some(source) = numbered.as_ref().filter(|source| count < source.len()) {
            match (&sample, source.read(count)) {
                (Ok(Some(a)), Ok(b)) => assert_eq!(format!("{a:?}"), format!("{b:?}")),
                (a, b) => assert!(a.is_err() && b.is_err(), "{a:?} {b:?}"),
            }
        }
        match sample {
            Ok(Some(sample)) => bytes += sample.nbytes(),
            Ok(None) => return,
            Err(_) if samples.state().file > state.file => return,
            Err(_) => {}
        }
        count += 1;
    }
}

/// Writes the samples of an archive, and checks that they are read back unchanged.
fn written_again(data: &[u8]) {
    let open = |data: &[u8]| WebDataset::options().open_contents(contents("x.tar", data));
    let Ok(source) = open(data) else { return };
    let (mut writer, mut written, mut bytes) = (WebDatasetWriter::new(Vec::new()), Vec::new(), 0);
    for sample in (0..source.len().min(100)).filter_map(|record| source.read(record).ok()) {
        bytes += sample.nbytes();
        if bytes > 1 << 20 {
            break;
        }
        // Some names can be read but not written.
        if writer.write(&sample).is_ok() {
            written.push(sample);
        }
    }
    let again = open(&writer.finish().expect("room in memory")).expect("what was written");
    assert_eq!(again.len(), written.len() as u64);
    let fields = |sample: &crate::Element| {
        let written = sample.iter().filter(|(name, _)| *name == "__key__" || !name.starts_with('_'));
        written.map(|(name, value)| format!("{name}: {value:?}")).collect::<Vec<_>>()
    };
    for (record, sample) in written.iter().enumerate() {
        assert_eq!(fields(&again.read(record as u64).expect("what was written")), fields(sample));
    }
}
