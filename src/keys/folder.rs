//! Key files of a folder.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use xxhash_rust::xxh3::xxh3_64;

use super::find::{KeySource, Keyed, Keys};
use super::{Key, KeyBlock, KeyFile, KeyHead, KeyRecorder, KeyWriter, LaneFile, LaneHead, MarkedLanes, OF, lanes};
use crate::cores;
use crate::error::{Error, Result};
use crate::sync::Locked;

/// Key files by what they are keys of: `gristmill index --keys` writes them.
///
/// A file is named by a hash of its source and of the stages behind that see each element alone; so several pipelines share one, and keys
/// of data or stages that have changed are not found. Where the file that is there holds no lengths of an array that is asked for, those that are asked
/// for have a file of their own beside it.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    folder: PathBuf,
    /// Whether it is an error if keys are not there.
    needed: bool,
    /// Whether keys that are not there are recorded.
    records: bool,
    /// What the functions of the stages are called, beside what the stages are.
    functions: String,
    /// Files of which a sample was compared with what the stages make now.
    compared: Arc<Mutex<HashSet<PathBuf>>>,
    open: Arc<Mutex<HashMap<PathBuf, Arc<KeyFile>>>>,
    open_lanes: Arc<Mutex<HashMap<PathBuf, Arc<LaneFile>>>>,
}

/// A key file that was written, or that was there.
#[derive(Clone, Debug)]
pub struct RecordedKeys {
    /// The file.
    pub path: PathBuf,
    /// The source, as a fingerprint names it.
    pub source: String,
    /// Records, and the elements that they yield.
    pub records: u64,
    /// Elements that those yield.
    pub elements: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Whether it was there already.
    pub was_there: bool,
}

impl KeyFolder {
    /// The key files in `folder`, which need not exist.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            needed: false,
            records: false,
            functions: String::new(),
            compared: Arc::default(),
            open: Arc::default(),
            open_lanes: Arc::default(),
        }
    }

    /// The same, for stages whose functions are named so: keys of others have another file. A function has no name that lasts, so whoever
    /// changes what it does changes this, too. A sample of one record of 16, 256 at most, is evaluated when a file is opened, and compared.
    pub fn functions(self, name: impl Into<String>) -> Self {
        Self { functions: name.into(), ..self }
    }

    /// The same, where keys that are not there are an error: without them a host evaluates everything.
    pub fn needed(self) -> Self {
        Self { needed: true, ..self }
    }

    /// The same, where a pass that evaluates everything writes the files that are not there, as far as it comes to their records: one without a
    /// [part](crate::part), or of the part that has the first row. The next start plans by them.
    ///
    /// # Cost
    /// Less than a microsecond an element; where records come in another order than their own, up to 512 MiB, until a block of them is whole. More are not recorded.
    pub fn recorded(self) -> Self {
        Self { records: true, ..self }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The hash by which a file is found. Keys that say of which elements others were made have another file than those that do not.
    fn fingerprint(&self, keyed: &dyn Keyed) -> String {
        let mut of = keyed.lines().join("\n");
        if keyed.names().first().is_some_and(|name| name == OF) {
            of = of + "\n" + OF;
        }
        if !keyed.is_native() && !self.functions.is_empty() {
            of = of + "\n" + &self.functions;
        }
        format!("{:016x}", xxh3_64(of.as_bytes()))
    }

    pub(super) fn head(&self, keyed: &dyn Keyed) -> KeyHead {
        let head = KeyHead::new(self.fingerprint(keyed), keyed.records());
        head.stages(keyed.lines()).columns(keyed.names())
    }

    /// The files in which the keys of `keyed` may be: that of its stages, whose columns are those of whoever was first; and that of its columns, too.
    pub(super) fn files(&self, keyed: &dyn Keyed) -> [PathBuf; 2] {
        let first = self.fingerprint(keyed);
        let of = format!("{first}\n{}", keyed.names().join("\n"));
        let own = format!("{first}-{:016x}", xxh3_64(of.as_bytes()));
        [first, own].map(|name| self.folder.join(name + ".gmk"))
    }

    /// The file in which the keys of `keyed` are or belong, and whether they are there.
    fn place(&self, keyed: &dyn Keyed) -> Result<(PathBuf, bool)> {
        let head = self.head(keyed);
        let [first, own] = self.files(keyed);
        let mut lacks = false;
        for path in [&first, &own].into_iter().filter(|path| path.exists()) {
            let file = KeyFile::open(path)?;
            if file.check(&head).is_ok() {
                return Ok((path.clone(), true));
            }
            lacks |= file.head().check_prefix(&head).is_ok();
        }
        Ok((if lacks { own } else { first }, false))
    }

    /// Makes the keys of `keyed` on all cores, unless they are there, and tells `progress` now and then of how many records there are keys. Where
    /// it was interrupted, it goes on.
    ///
    /// # Errors
    /// Errors of evaluating records that are not of the data, and of writing the file.
    pub fn record(&self, keyed: &dyn Keyed, mut progress: impl FnMut(u64)) -> Result<RecordedKeys> {
        let (path, was_there) = self.place(keyed)?;
        if !was_there {
            std::fs::create_dir_all(&self.folder).map_err(|e| Error::io(e, &self.folder))?;
            let mut writer = KeyWriter::resume(&path, self.head(keyed))?;
            while writer.slots_wanted() > 0 {
                let first = writer.next_slot();
                writer.push_block(&block(keyed, first, writer.slots_wanted() as u64)?)?;
                progress(writer.next_slot());
            }
            writer.finish()?;
        }
        let (file, bytes) = (KeyFile::open(&path)?, std::fs::metadata(&path).map_err(|e| Error::io(e, &path))?.len());
        let source = keyed.lines().first().cloned().unwrap_or_default();
        Ok(RecordedKeys { path, source, records: file.len(), elements: file.elements(), bytes, was_there })
    }

    /// The file at `path`, which is of the prefix of `wanted`; what was opened is kept.
    fn opened(&self, path: &Path, wanted: &KeyHead) -> Result<Arc<KeyFile>> {
        let mut open = self.open.locked();
        if let Some(file) = open.get(path) {
            return Ok(file.clone());
        }
        let file = KeyFile::open(path)?;
        file.head().check_prefix(wanted).map_err(|e| e.path(path))?;
        open.insert(path.to_owned(), file.clone());
        Ok(file)
    }

    /// The file of the index of lanes.
    fn lane_file(&self, head: &LaneHead) -> PathBuf {
        self.folder.join(format!("{}.gml", head.fingerprint))
    }

    /// Makes the index of `lanes` on all cores, unless it is there, and tells `progress` now and then of how many elements it knows. Records are the
    /// lanes.
    ///
    /// # Errors
    /// Errors of reading the lanes, whatever they are: an index knows no element that is not there. Errors of writing the file.
    pub fn record_lanes(&self, lanes: &dyn MarkedLanes, mut progress: impl FnMut(u64)) -> Result<RecordedKeys> {
        let (head, path) = (lanes.head(), self.lane_file(lanes.head()));
        let was_there = path.exists() && LaneFile::open(&path)?.head().check(head).is_ok();
        if !was_there {
            std::fs::create_dir_all(&self.folder).map_err(|e| Error::io(e, &self.folder))?;
            lanes::write(&path, lanes, &mut progress)?;
        }
        let (file, bytes) = (LaneFile::open(&path)?, std::fs::metadata(&path).map_err(|e| Error::io(e, &path))?.len());
        let source = head.stages.last().cloned().unwrap_or_default();
        Ok(RecordedKeys { path, source, records: head.lanes, elements: file.elements(), bytes, was_there })
    }
}

impl KeyFolder {
    #[cold]
    fn missing(&self, keyed: &dyn Keyed, path: &Path) -> Error {
        let chain = keyed.lines().join(" → ");
        let error = Error::config(format!("there are no keys of {chain}")).path(path);
        if self.has_other_functions(keyed) {
            return error.help(
                "there are keys of these stages with other functions: make them again, as `make_keys` does. A value that a function uses and that \
                 differs between hosts, such as a rank, makes another function",
            );
        }
        error.help(
            "`make_keys`, or `gristmill index --keys PIPELINE.yaml`, makes them; or leave `keys` out, and each host evaluates everything",
        )
    }

    /// Whether there is a file of these stages with other functions.
    fn has_other_functions(&self, keyed: &dyn Keyed) -> bool {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files = files.filter(|path| path.extension().is_some_and(|ending| ending == "gmk"));
        !keyed.is_native()
            && files.any(|path| KeyFile::open(&path).is_ok_and(|file| file.head().stages_are(keyed.lines())))
    }
}

/// Size of a sample if functions of the user are evaluated: one record of 16, within these bounds.
const EVERY: u64 = 16;
const SAMPLE: [u64; 2] = [16, 256];

/// Compares the keys of a sample with those that the stages make now, because no name describes a function completely. A change of 1 % of the records is
/// found in 12 of 13 cases. The names of native stages are complete: 16 records find forged keys and another build of the tokenizer.
///
/// # Errors
/// [`ErrorKind::Data`](crate::ErrorKind::Data) with the first record that differs.
fn compare(keyed: &dyn Keyed, keys: &OfFile, head: &KeyHead) -> Result<()> {
    let (count, [least, most]) = (keyed.records(), SAMPLE);
    let most = if keyed.is_native() { least } else { most };
    let record = |at: u64| match count > least {
        true => xxh3_64(format!("{} {at}", head.fingerprint).as_bytes()) % count,
        false => at,
    };
    let mut records: Vec<u64> = (0..(count / EVERY).clamp(least, most).min(count)).map(record).collect();
    records.sort_unstable();
    records.dedup();
    let mut now = Vec::with_capacity(records.len());
    keyed.bring(&records);
    keyed.make_each(&records, &mut |key, lens| now.push((key, lens.to_vec())))?;
    let mut lens = Vec::new();
    for (record, (made, made_lens)) in records.into_iter().zip(now) {
        lens.clear();
        let key = keys.key(record, &mut lens)?;
        // What fails now is for the policy of elements that fail.
        if made != Key::Bad && (key != made || lens != made_lens) {
            let differs = match key == made {
                true => "has other lengths".to_owned(),
                false => format!("{}, and the file says that it {}", says(made), says(key)),
            };
            let cause = match keyed.is_native() {
                true => "the keys were made by another build, or changed since",
                false => "a function of the pipeline is not the one that the keys were made with",
            };
            return Err(Error::data(format!("the keys are stale: record {record} {differs}"))
                .help(format!("{cause}: remove the file, and make the keys again")));
        }
    }
    Ok(())
}

/// What becomes of a record.
fn says(key: Key) -> String {
    match key {
        Key::Elements(0) => "is dropped".to_owned(),
        Key::Elements(1) => "is one element".to_owned(),
        Key::Elements(count) => format!("is {count} elements"),
        Key::Bad => "is bad".to_owned(),
    }
}

/// Records of which one thread makes the keys at a time.
pub(super) const TOGETHER: u64 = 512;

/// Makes the keys of `records`, on this thread.
pub(super) fn make(keyed: &dyn Keyed, records: Range<u64>) -> Result<KeyBlock> {
    let (mut keys, mut pushed) = (KeyBlock::new(keyed.names().len()), Ok(()));
    keyed.make(records, &mut |key, lens| {
        if pushed.is_ok() {
            pushed = keys.push_of(key, lens);
        }
    })?;
    pushed.map(|()| keys)
}

/// Makes the keys of `count` records from `first` on, on all cores.
fn block(keyed: &dyn Keyed, first: u64, count: u64) -> Result<KeyBlock> {
    let starts = (first..first + count).step_by(TOGETHER as usize);
    let make = |start: u64| make(keyed, start..(first + count).min(start + TOGETHER));
    let parts: Vec<Result<KeyBlock>> = cores::map(starts, make);
    let mut block = KeyBlock::new(keyed.names().len());
    for part in parts {
        for (key, lens) in part?.iter() {
            block.push_of(key, lens)?;
        }
    }
    Ok(block)
}

impl KeySource for KeyFolder {
    fn find(&self, keyed: &Arc<dyn Keyed>) -> Result<Option<Arc<dyn Keys>>> {
        let (head, files) = (self.head(&**keyed), self.files(&**keyed));
        let mut lacks = Ok(());
        for path in files.iter().filter(|path| path.exists()) {
            let file = self.opened(path, &head)?;
            match file.check(&head) {
                Ok(()) => {
                    let keys = OfFile::new(file, keyed.names());
                    if self.compared.locked().insert(path.clone()) {
                        compare(&**keyed, &keys, &head).map_err(|e| e.path(path))?;
                    }
                    return Ok(Some(Arc::new(keys)));
                }
                error => lacks = error,
            }
        }
        match (self.records, self.needed) {
            (true, _) => Ok(None),
            (false, true) if lacks.is_ok() => Err(self.missing(&**keyed, &files[0])),
            _ => lacks.map(|()| None),
        }
    }

    fn find_lanes(&self, lanes: &Arc<dyn MarkedLanes>) -> Result<Option<Arc<LaneFile>>> {
        let path = self.lane_file(lanes.head());
        let mut open = self.open_lanes.locked();
        let file = match open.get(&path) {
            Some(file) => file.clone(),
            None if !path.exists() => return Ok(None),
            None => open.entry(path.clone()).or_insert(LaneFile::open(&path)?).clone(),
        };
        file.head().check(lanes.head()).map_err(|e| e.path(&path))?;
        Ok(Some(file))
    }

    fn recorder(&self) -> Option<Arc<KeyRecorder>> {
        self.records.then(|| Arc::new(KeyRecorder::new(self.clone())))
    }
}

/// Keys of a file, with the lengths of some of its columns, if not of all.
struct OfFile {
    file: Arc<KeyFile>,
    columns: Option<Vec<usize>>,
}

impl OfFile {
    fn new(file: Arc<KeyFile>, names: &[String]) -> Self {
        let columns: Vec<usize> = names.iter().filter_map(|name| file.head().column(name)).collect();
        let all = columns.iter().copied().eq(0..file.head().columns.len());
        Self { file, columns: (!all).then_some(columns) }
    }
}

/// The lengths of some `columns` of each element, of which there are `width`.
fn chosen<'a>(lens: &'a [u32], width: usize, columns: &'a [usize]) -> impl Iterator<Item = u32> + 'a {
    lens.chunks(width.max(1)).flat_map(|of| columns.iter().map(|&column| of[column]))
}

impl Keys for OfFile {
    fn key(&self, record: u64, lens: &mut Vec<u32>) -> Result<Key> {
        let mut all = Vec::new();
        let key = self.file.key(record, &mut all)?;
        match &self.columns {
            None => lens.append(&mut all),
            Some(columns) => lens.extend(chosen(&all, self.file.head().columns.len(), columns)),
        }
        Ok(key)
    }

    fn gather(&self, records: &[u64], into: &mut KeyBlock) -> Result<()> {
        let Some(columns) = &self.columns else { return self.file.gather(records, into) };
        let (width, mut lens) = (self.file.head().columns.len(), Vec::new());
        let mut all = KeyBlock::new(width);
        self.file.gather(records, &mut all)?;
        for (key, of) in all.iter() {
            lens.clear();
            lens.extend(chosen(of, width, columns));
            into.push_of(key, &lens)?;
        }
        Ok(())
    }
}
