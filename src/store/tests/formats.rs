//! Files of every format in a store, beside the same on a disk.

use super::*;
use crate::dataset::map::RandomAccess;

#[test]
fn lines_of_objects_are_lines_of_files() {
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let text: String = (0..60_000).map(|i| format!("{{\"n\": {i}, \"pad\": \"{}\"}}\n", "x".repeat(i % 90))).collect();
    std::fs::write(dir.path().join("a.jsonl"), &text).unwrap();
    let url = server.put("a.jsonl", text);
    use crate::source::{IndexCache, Jsonl, Lines};
    let (near, far) = (Lines::open(dir.path().join("a.jsonl")).unwrap(), Lines::open(&url).unwrap());
    assert_eq!(near.len(), far.len());
    let indices: Vec<u64> = (0..near.len()).step_by(997).chain([0, 59_999]).collect();
    for (&index, line) in indices.iter().zip(far.read_many(&indices).items()) {
        assert_eq!(near.read(index).unwrap(), *line);
    }
    let options = || Jsonl::options().cache(IndexCache::Folder(dir.path().join("cache")));
    assert_eq!(options().open(&url).unwrap().read(777).unwrap(), Jsonl::open(dir.path()).unwrap().read(777).unwrap());
    let damaged = server.put("b.txt", b"one\n\n\xff\n".to_vec());
    let error = Lines::open(&damaged).unwrap().read(1).unwrap_err().to_string();
    assert_eq!(error, format!("{damaged}: record 1: byte 5: byte 0xff is not UTF-8"));
}

/// The index is one for all of them, and theirs for the URL that they were asked for with alone.
#[test]
fn small_objects_have_one_index_together() {
    use crate::source::{IndexCache, Lines};
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let text = |i: usize| format!("{}\n", "x".repeat(1 << i)).repeat(1 << (20 - i));
    let urls: Vec<String> = (0..9).map(|i| server.put(&format!("small/{i}.txt"), text(i))).collect();
    let signed: Vec<String> = urls.iter().map(|url| format!("{url}?signature=a/b")).collect();
    let cache = || IndexCache::Folder(dir.path().join("cache"));
    let open = |urls: &Vec<String>| Lines::options().cache(cache()).open(urls).unwrap();
    let kept = || std::fs::read_dir(dir.path().join("cache")).unwrap().flatten().map(|file| file.path());
    let first = open(&urls);
    let written = kept().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>();
    assert_eq!((written.len(), first.len()), (1, (0..9).map(|i| 1 << (20 - i)).sum()));
    // Damage shows that it is this that tells of them: it is found, and made again.
    std::fs::write(kept().next().unwrap(), b"").unwrap();
    assert_eq!((open(&urls).len(), kept().map(|file| std::fs::read(file).unwrap()).collect()), (first.len(), written));
    let before = kept().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>();
    assert_eq!((open(&signed).len(), open(&signed).facts().identity), (first.len(), first.facts().identity));
    assert_ne!(kept().map(|file| std::fs::read(file).unwrap()).collect::<Vec<_>>(), before);
}

/// Every format, as it is on a disk.
#[cfg(all(feature = "spec", feature = "formats"))]
#[test]
fn records_of_objects_are_records_of_files() {
    let Some(fixtures) = std::env::var_os("GRISTMILL_FIXTURES") else { return };
    use crate::dataset::IterDatasetExt;
    use crate::spec::Data;
    let server = Server::start();
    let mut seen = 0;
    for folder in std::fs::read_dir(fixtures).unwrap().flatten().map(|folder| folder.path()) {
        let Ok(files) = std::fs::read_dir(folder) else { continue };
        for path in files.flatten().map(|file| file.path()).filter(|path| path.is_file()) {
            // Alone: a file that needs another beside it has a test in the folder of its format.
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let dir = tempfile::tempdir().unwrap();
            let alone = dir.path().join(&name);
            std::fs::copy(path, &alone).unwrap();
            let url = server.put(&name, std::fs::read(&alone).unwrap());
            let (Ok(near), far) = (Data::open(&alone, None), Data::open(&url, None)) else { continue };
            let far = far.unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert_eq!(near.records(), far.records(), "{name}");
            let (near, far) = (near.stream().collect(), far.stream().collect());
            match (near, far) {
                (Ok(near), Ok(far)) => assert!(near == far, "{name}"),
                (Err(near), Err(far)) => assert_eq!(near.message(), far.message(), "{name}"),
                (near, far) => panic!("{name}: {:?} {:?}", near.err(), far.err()),
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} files");
}

/// Bytes that the server was asked for.
fn asked(server: &Server) -> u64 {
    server.requests().iter().filter_map(|request| request.range).map(|(from, to)| to - from).sum()
}

#[test]
fn rows_and_crops_are_read_where_they_lie() {
    use crate::MapDatasetExt;
    use crate::source::{Npy, TokenLayout, TokenType, Tokens};
    let (server, dir) = (Server::start(), tempfile::tempdir().unwrap());
    let ids: Vec<u8> = (0..12_000_000u32).flat_map(|id| (id as u16).to_le_bytes()).collect();
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend(format!("{:<117}\n", "{'descr': '<u2', 'fortran_order': False, 'shape': (120000, 100), }").bytes());
    npy.extend(&ids);
    for (name, bytes) in [("a.bin", &ids), ("a.npy", &npy)] {
        std::fs::write(dir.path().join(name), bytes).unwrap();
        server.put(name, bytes.clone());
    }
    let (near, far) = (Npy::open(dir.path().join("a.npy")).unwrap(), Npy::open(server.url("a.npy")).unwrap());
    let rows = [119_999, 0, 60_001, 60_000];
    let all = |npy: &Npy| npy.read_many(&rows).dense().unwrap();
    assert_eq!((near.len(), all(&near)), (far.len(), all(&far)));
    assert_eq!(far.read(60_001).unwrap(), near.read(60_001).unwrap());
    assert!(asked(&server) < 1 << 20);
    assert!(near.array().unwrap().bytes() == far.array().unwrap().bytes());

    let open = |path: &Path| Tokens::open(path, TokenLayout::Bare(TokenType::U16)).unwrap();
    let (near, far) = (open(&dir.path().join("a.bin")), open(server.url("a.bin").as_ref()));
    asked(&server);
    for stored in [false, true] {
        let crops = |tokens: &Tokens| {
            let crops = tokens.crops(1001).with_next(true).as_stored(stored);
            let random = tokens.random_crops(77, 3).as_stored(stored).epoch(5);
            (crops.slice_step(.., -4500).collect().unwrap(), random.collect().unwrap())
        };
        assert_eq!(crops(&near), crops(&far));
    }
    assert!(asked(&server) < ids.len() as u64 / 2);
    assert!(near.views().unwrap()[0].bytes() == far.views().unwrap()[0].bytes());
}

/// Neighbouring rows are asked for by one request, in whatever order they are read.
#[cfg(feature = "formats")]
#[test]
fn rows_of_tensors_are_fetched_at_once() {
    use crate::source::Safetensors;
    let (server, row) = (Server::start(), BLOCK as usize);
    let header = format!(r#"{{"a":{{"dtype":"U8","shape":[8,{row}],"data_offsets":[0,{}]}}}}"#, 8 * row);
    let mut file = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    (0..8u8).for_each(|number| file.extend(vec![number; row]));
    let source = Safetensors::options().rows(true).open(server.put("a.safetensors", file)).unwrap();
    assert!(source.facts().reads_far && source.facts().reads_together);
    server.requests();
    let rows = source.read_many(&[4, 3, 5]).dense().unwrap();
    let firsts: Vec<u8> = rows.iter().map(|row| row.array("a").unwrap().bytes()[0]).collect();
    assert_eq!((firsts, server.requests().len()), (vec![4, 3, 5], 1));
}
