//! Folder of key files.

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

/// Folder of key files, as `gristmill index --keys` writes them.
///
/// A file is named by a hash of its source and of the elementwise stages after it. Several pipelines therefore share a file, and keys of
/// changed data or stages are not found. If the existing file lacks the lengths of a requested array, the requested columns get a
/// separate file beside it.
#[derive(Clone, Debug)]
pub struct KeyFolder {
    folder: PathBuf,
    /// Whether missing keys are an error.
    needed: bool,
    /// Whether missing keys are recorded.
    records: bool,
    /// Name of the user functions, which is hashed with the stages.
    functions: String,
    /// Files whose sample has been compared with the current results of the stages.
    compared: Arc<Mutex<HashSet<PathBuf>>>,
    open: Arc<Mutex<HashMap<PathBuf, Arc<KeyFile>>>>,
    open_lanes: Arc<Mutex<HashMap<PathBuf, Arc<LaneFile>>>>,
}

/// Key file that was written, or that existed already.
#[derive(Clone, Debug)]
pub struct RecordedKeys {
    /// Path of the file.
    pub path: PathBuf,
    /// Line that names the source in a fingerprint.
    pub source: String,
    /// Number of records.
    pub records: u64,
    /// Number of elements that the records yield.
    pub elements: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Whether the file existed already.
    pub was_there: bool,
}

impl KeyFolder {
    /// Creates a handle to the key files in `folder`, which need not exist.
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

    /// Names the user functions of the stages; keys of other functions are in another file.
    ///
    /// Functions have no durable name, so change this name if a function changes. Opening a file also evaluates a sample of 1/16 of the
    /// records, at most 256. The results are compared with the stored keys.
    pub fn functions(self, name: impl Into<String>) -> Self {
        Self { functions: name.into(), ..self }
    }

    /// Makes missing keys an error. Without keys, each host evaluates everything.
    pub fn needed(self) -> Self {
        Self { needed: true, ..self }
    }

    /// Records missing keys: a pass that evaluates everything writes the missing files, for the records that it reaches.
    ///
    /// This applies to passes without a [part](crate::part), or with the part that has the first row. The next start plans from the files.
    ///
    /// # Cost
    /// Less than a microsecond per element. If records arrive out of order, their keys take up to 512 MiB until a block is complete.
    /// Above that limit, the recording stops.
    pub fn recorded(self) -> Self {
        Self { records: true, ..self }
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// Returns the hash that names the file. Keys with a column of input elements (`OF`) have another file than keys without.
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

    /// Returns the candidate files of `keyed`. The first is named by its stages, the second by its stages and columns.
    ///
    /// The first file has the columns of its first writer.
    pub(super) fn files(&self, keyed: &dyn Keyed) -> [PathBuf; 2] {
        let first = self.fingerprint(keyed);
        let of = format!("{first}\n{}", keyed.names().join("\n"));
        let own = format!("{first}-{:016x}", xxh3_64(of.as_bytes()));
        [first, own].map(|name| self.folder.join(name + ".gmk"))
    }

    /// Returns the file in which the keys of `keyed` are or belong, and whether they are there.
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

    /// Computes the keys of `keyed` on all cores, unless they exist. Passes the number of finished records to `progress` now and then.
    ///
    /// An interrupted recording is resumed.
    ///
    /// # Errors
    /// Errors of evaluating records, other than bad data, and errors of writing the file.
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

    /// Returns the file at `path`, which must have the prefix of `wanted`. Opened files are cached.
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

    /// Returns the path of an index of lanes.
    fn lane_file(&self, head: &LaneHead) -> PathBuf {
        self.folder.join(format!("{}.gml", head.fingerprint))
    }

    /// Builds the index of `lanes` on all cores, unless it exists. Passes the number of indexed elements to `progress` now and then.
    ///
    /// In the result, `records` is the number of lanes.
    ///
    /// # Errors
    /// All errors of reading the lanes, since an index cannot skip an element. Errors of writing the file.
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
        let error = Error::config(format!("there are no keys for {chain}")).path(path);
        if self.has_other_functions(keyed) {
            return error.help(
                "there are keys of these stages with other functions: make them again with `make_keys`; functions also \
                 differ if a value that they use differs between hosts, such as a rank",
            );
        }
        error.help(
            "make them with `make_keys` or `gristmill index --keys PIPELINE.yaml`; or omit `keys`, and each host evaluates all elements",
        )
    }

    /// Returns true if the folder has a file of these stages with other functions.
    fn has_other_functions(&self, keyed: &dyn Keyed) -> bool {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut files = files.filter(|path| path.extension().is_some_and(|ending| ending == "gmk"));
        !keyed.is_native()
            && files.any(|path| KeyFile::open(&path).is_ok_and(|file| file.head().stages_are(keyed.lines())))
    }
}

/// Sampling interval for user functions: one record in `EVERY`. [`SAMPLE`] bounds the number of records.
const EVERY: u64 = 16;
const SAMPLE: [u64; 2] = [16, 256];

/// Compares a sample of the keys with the current results of the stages, because no name describes a function completely.
///
/// A change of 1 % of the records is found in 12 of 13 cases. The names of native stages are complete: 16 records are enough to find
/// forged keys and another build of the tokenizer.
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
        // The policy for failing elements handles records that fail now.
        if made != Key::Bad && (key != made || lens != made_lens) {
            let differs = match key == made {
                true => "has other lengths".to_owned(),
                false => format!("{} now, but {} in the file", says(made), says(key)),
            };
            let cause = match keyed.is_native() {
                true => "the keys were made by another build, or changed since",
                false => "a function of the pipeline differs from the function that made the keys",
            };
            return Err(Error::data(format!("the keys are stale: record {record} {differs}"))
                .help(format!("{cause}: remove the file, and make the keys again")));
        }
    }
    Ok(())
}

/// Describes the outcome of a record.
fn says(key: Key) -> String {
    match key {
        Key::Elements(0) => "is dropped".to_owned(),
        Key::Elements(1) => "is one element".to_owned(),
        Key::Elements(count) => format!("is {count} elements"),
        Key::Bad => "is bad".to_owned(),
    }
}

/// Number of records per task, whose keys one thread computes.
pub(super) const TOGETHER: u64 = 512;

/// Computes the keys of `records` on this thread.
pub(super) fn make(keyed: &dyn Keyed, records: Range<u64>) -> Result<KeyBlock> {
    let (mut keys, mut pushed) = (KeyBlock::new(keyed.names().len()), Ok(()));
    keyed.make(records, &mut |key, lens| {
        if pushed.is_ok() {
            pushed = keys.push_of(key, lens);
        }
    })?;
    pushed.map(|()| keys)
}

/// Computes the keys of `count` records from `first` on, on all cores.
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

/// Keys of a file, with the lengths of all columns or of some.
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

/// Selects some `columns` from lengths with `width` columns per element.
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
