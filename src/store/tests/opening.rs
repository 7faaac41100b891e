//! Many objects that are opened: how many requests it takes, and how many of them are in flight at a time.

use super::*;
use crate::dataset::map::RandomAccess;
use crate::source::{
    Arrow, ArrowWriter, IndexCache, Jsonl, Npy, NpyWriter, Parquet, ParquetWriter, TfRecord, TfRecordWriter, WebDataset,
};
use crate::{Array, Element};

/// Objects of each data set: more than twice as many as requests may be in flight.
const OBJECTS: usize = 150;
/// Requests that may be in flight at a time.
const REQUESTS: usize = 64;

fn row(i: usize) -> Element {
    Element::new().with("x", Array::scalar(i as u64))
}

fn npy(i: usize) -> Vec<u8> {
    let mut writer = NpyWriter::options().write_back_to(std::io::Cursor::new(Vec::new()));
    writer.write(&row(i)).unwrap();
    writer.finish().unwrap().into_inner()
}

fn arrow(i: usize) -> Vec<u8> {
    let mut writer = ArrowWriter::new(Vec::new(), Default::default()).unwrap();
    writer.write(&row(i)).unwrap();
    writer.finish().unwrap()
}

fn parquet(i: usize) -> Vec<u8> {
    let mut writer = ParquetWriter::new(Vec::new(), Default::default()).unwrap();
    writer.write(&row(i)).unwrap();
    writer.finish().unwrap()
}

fn tf_record(i: usize) -> Vec<u8> {
    let mut writer = TfRecordWriter::new(Vec::new(), Default::default()).unwrap();
    writer.write(&[i as u8]).unwrap();
    writer.finish().unwrap()
}

fn jsonl(i: usize) -> Vec<u8> {
    format!("{{\"x\": {i}}}\n").into_bytes()
}

fn tar(i: usize) -> Vec<u8> {
    let mut header = [0; 512];
    header[..5].copy_from_slice(b"a.txt");
    header[124..135].copy_from_slice(b"00000000001");
    header[156] = b'0';
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum::<u32>() + 8 * 32;
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.push(i as u8);
    archive.resize(2048, 0);
    archive
}

/// A format: its ending, a file of it, and the number of records in some of these files.
type Opened = (&'static str, fn(usize) -> Vec<u8>, fn(Vec<String>) -> Result<u64>);

#[test]
fn objects_are_opened_as_many_at_a_time_as_requests_may_be_in_flight() {
    let formats: [Opened; 6] = [
        ("jsonl", jsonl, |urls| Ok(Jsonl::options().cache(IndexCache::Off).open(urls)?.len())),
        ("npy", npy, |urls| Ok(Npy::open(urls)?.len())),
        ("parquet", parquet, |urls| Ok(Parquet::open(urls)?.len())),
        ("arrow", arrow, |urls| Ok(Arrow::open(urls)?.len())),
        ("tfrecord", tf_record, |urls| Ok(TfRecord::options().cache(IndexCache::Off).open(urls)?.len())),
        ("tar", tar, |urls| Ok(WebDataset::options().cache(IndexCache::Off).open(urls)?.len())),
    ];
    for (format, bytes, open) in formats {
        let server = Server::start();
        let urls = (0..OBJECTS).map(|i| server.put(&format!("{i}.{format}"), bytes(i))).collect();
        for method in ["HEAD", "GET"] {
            server.together_of(method, REQUESTS);
        }
        assert_eq!(open(urls).unwrap(), OBJECTS as u64, "{format}");
        assert_eq!((server.missing(), server.most_in_flight()), (0, REQUESTS), "{format}");
        assert_eq!(server.requests().len(), 2 * OBJECTS, "{format}: a request for the size, and one for the bytes");
    }
}

/// Whether it is there or damaged: the order of the answers does not matter.
#[test]
fn the_first_object_that_fails_is_named() {
    let server = Server::start();
    let mut urls: Vec<String> = (0..OBJECTS).map(|i| server.put(&format!("{i}.npy"), npy(i))).collect();
    server.put("70.npy", b"not an array".to_vec());
    server.remove("40.npy");
    server.remove("90.npy");
    let error = |urls: &[String]| Npy::open(urls).unwrap_err().to_string();
    assert_eq!(error(&urls), format!("{}: there is no such object", server.url("40.npy")));
    urls.remove(90);
    urls.remove(40);
    assert!(error(&urls).starts_with(&server.url("70.npy")), "{}", error(&urls));
}
