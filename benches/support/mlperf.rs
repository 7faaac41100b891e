//! The training workloads of MLPerf Storage: published sizes and step times, and files of random bytes in NumPy's
//! formats.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use gristmill::dataset::map::{Concatenate, RandomAccess, Source, SourceFacts};
use gristmill::source::{Npy, Npz, find};
use gristmill::{Array, DType, Element, Error, MapDataset, MapDatasetExt, Result};

use crate::random::Random;

/// A workload. Source: `configs/dlio/workload/{unet3d,resnet50,cosmoflow}_{a100,h100}.yaml` of mlcommons/storage.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// `record_length_bytes` and `record_length_bytes_stdev`.
    pub(crate) sample_bytes: f64,
    pub(crate) deviation: f64,
    /// `record_length_bytes_resize`: delivered bytes of a sample, if they differ from its size.
    pub(crate) resize: Option<usize>,
    pub(crate) samples_per_file: usize,
    /// Number of files as published, and number of files here.
    pub(crate) published_files: usize,
    pub(crate) files: usize,
    pub(crate) batch_size: usize,
    /// `computation_time`, in seconds.
    pub(crate) a100_s: f64,
    pub(crate) h100_s: f64,
    /// `au`: required utilisation.
    pub(crate) asked: f64,
}

pub(crate) const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "unet3d",
        sample_bytes: 146_600_628.0,
        deviation: 68_341_808.0,
        resize: Some(2_097_152),
        samples_per_file: 1,
        published_files: 168,
        files: 14,
        batch_size: 7,
        a100_s: 0.636,
        h100_s: 0.323,
        asked: 0.9,
    },
    Workload {
        name: "resnet50",
        sample_bytes: 114_660.0,
        deviation: 0.0,
        resize: Some(150_528),
        samples_per_file: 1251,
        published_files: 1024,
        files: 8,
        batch_size: 400,
        a100_s: 0.435,
        h100_s: 0.224,
        asked: 0.9,
    },
    Workload {
        name: "cosmoflow",
        sample_bytes: 2_828_486.0,
        deviation: 71_311.0,
        resize: None,
        samples_per_file: 1,
        published_files: 524_288,
        files: 256,
        batch_size: 1,
        a100_s: 5.51e-3,
        h100_s: 3.50e-3,
        asked: 0.7,
    },
];

impl Workload {
    /// Writes the files into `folder` and syncs them to disk, so that writing does not overlap the measured reading.
    /// Returns their total bytes.
    pub(crate) fn write(&self, folder: &Path) -> Result<u64> {
        let mut random = Random(1);
        let mut all = 0;
        for number in 0..self.files {
            let bytes = (self.sample_bytes + self.deviation * random.normal()).max(self.sample_bytes / 16.0) as usize;
            let many = self.samples_per_file > 1;
            let path = folder.join(format!("{number:06}.{}", if many { "npy" } else { "npz" }));
            let shape = if many { format!("({}, {bytes})", self.samples_per_file) } else { format!("({bytes},)") };
            let npy = npy(&shape, bytes * self.samples_per_file, &mut random);
            let written = File::create(&path).and_then(|file| {
                let mut out = BufWriter::new(&file);
                if many {
                    out.write_all(&npy)?
                } else {
                    zip(&mut out, &npy)?
                }
                out.flush()?;
                drop(out);
                file.sync_all()
            });
            written.map_err(|e| Error::io(e, &path))?;
            all += npy.len() as u64;
        }
        Ok(all)
    }

    /// Returns the samples in `folder` as delivered, in an endless seeded shuffle.
    pub(crate) fn samples(&'static self, folder: &Path) -> Result<impl MapDataset<Item = Element> + use<>> {
        let samples = if self.samples_per_file > 1 {
            let paths = find(folder, &[".npy"])?;
            let rows = paths.iter().map(|path| Ok(Source::new(Npy::open(path)?.field("x"))));
            Concatenate::new(rows.collect::<Result<Vec<_>>>()?).boxed()
        } else {
            Source::new(Archives(find(folder, &[".npz"])?)).boxed()
        };
        let resize = self.resize;
        Ok(samples.shuffle(1).repeat(None).try_map(move |sample| {
            let sample = sample.array("x")?;
            Ok(Element::new().with("x", resize.map_or_else(|| Ok(sample.clone()), |bytes| resized(sample, bytes))?))
        }))
    }
}

/// Returns the first `bytes` of a sample, padded with zeros if it is shorter.
fn resized(sample: &Array, bytes: usize) -> Result<Array> {
    if let Some(first) = sample.rows(0..bytes) {
        return Ok(first);
    }
    let mut out = Array::builder(DType::U8, &[bytes])?;
    out.bytes_mut()[..sample.bytes().len()].copy_from_slice(sample.bytes());
    Ok(out.freeze())
}

/// Archives of an array `x` each, opened on reading. The checksum makes every byte be read.
struct Archives(Vec<PathBuf>);

impl RandomAccess for Archives {
    type Record = Element;

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, index: u64) -> Result<Element> {
        Npz::open(&self.0[index as usize])?.element()
    }

    fn record_bytes(&self, record: &Element) -> u64 {
        record.nbytes() as u64
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts { is_native: true, ..SourceFacts::new("source", format!("{} records", self.len())) }
    }
}

/// Returns a `.npy` file of random bytes.
fn npy(shape: &str, bytes: usize, random: &mut Random) -> Vec<u8> {
    let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
    let mut file = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    file.extend_from_slice(format!("{header:<117}\n").as_bytes());
    let start = file.len();
    file.resize(start + bytes, 0);
    file[start..].chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]));
    file
}

/// Writes an archive with a single stored member, `x.npy`, like `numpy.savez`.
fn zip(out: &mut impl Write, npy: &[u8]) -> std::io::Result<()> {
    let mut crc = flate2::Crc::new();
    crc.update(npy);
    // Version, flags, method, time and date; then checksum and sizes, and the lengths of name and extra field.
    let mut about = [0; 10].to_vec();
    about.extend_from_slice(&crc.sum().to_le_bytes());
    about.extend_from_slice(&(npy.len() as u32).to_le_bytes().repeat(2));
    about.extend_from_slice(&[5, 0, 0, 0]);
    let local = [b"PK\x03\x04", about.as_slice(), b"x.npy"].concat();
    let entry = [b"PK\x01\x02\x14\x00", about.as_slice(), &[0; 14], b"x.npy"].concat();
    out.write_all(&local)?;
    out.write_all(npy)?;
    out.write_all(&entry)?;
    out.write_all(b"PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00")?;
    out.write_all(&(entry.len() as u32).to_le_bytes())?;
    out.write_all(&((local.len() + npy.len()) as u32).to_le_bytes())?;
    out.write_all(&[0, 0])
}
