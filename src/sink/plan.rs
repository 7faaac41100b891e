//! The plan that all shards of a sink share.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use rayon::ThreadPool;

use super::compression::Compression;
use super::folder::Folder;
use super::options::SinkOptions;
use super::schema::{Fit, Schema};
use super::shard_file::ShardFile;
use super::writers::{Facts, NewShard, ShardWriter};
use crate::element::Element;
use crate::error::{Error, ErrorKind, Result};

/// Options, format and destination of the shards.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) options: SinkOptions,
    pub(super) facts: &'static Facts,
    pub(super) folder: Folder,
    columns: OnceLock<Columns>,
    pool: Option<Arc<ThreadPool>>,
}

/// Columns of all shards, and the conversion of elements to these columns.
#[derive(Debug)]
struct Columns {
    schema: Schema,
    fit: Fit,
}

impl Plan {
    pub(super) fn new(options: SinkOptions, facts: &'static Facts, folder: Folder) -> Result<Self> {
        let has_parts = facts.has_parts || facts.packs_files && options.compression != Compression::None;
        let pool = if has_parts { pool(options.threads)? } else { None };
        Ok(Self { options, facts, folder, columns: OnceLock::new(), pool })
    }

    /// Sets the columns of all shards, before the first shard begins.
    pub(super) fn settle(&self, schema: Schema) -> Result<()> {
        let fit = Fit::new(self.facts.columns, &schema, &self.options.schema)?;
        // The columns are set only once.
        let _ = self.columns.set(Columns { schema, fit });
        Ok(())
    }

    /// Converts an element to the columns of its shard.
    pub(super) fn fit<'a>(&self, element: &'a Element) -> Result<Cow<'a, Element>> {
        self.columns.get().map_or(Ok(Cow::Borrowed(element)), |columns| columns.fit.apply(element))
    }

    /// Begins shard `number`, whose first record is `first_record`.
    pub(super) fn shard(&self, number: u64, first_record: u64) -> Result<Box<dyn ShardWriter>> {
        let schema = self.columns.get().map(|columns| &columns.schema);
        let shard = NewShard { options: &self.options, schema, pool: self.pool.as_ref(), first_record };
        (self.facts.open)(&shard, &mut |ending| self.file(number, ending))
    }

    /// Returns the file name of a shard that has a single file.
    pub(super) fn name(&self, number: u64) -> String {
        self.named(number, &self.facts.ending(self.options.compression))
    }

    /// Returns true if a file in the folder belongs to shard `first` or a later shard.
    pub(super) fn is_shard_from(&self, name: &str, first: u64) -> bool {
        let number = || {
            let rest = name.strip_prefix(&self.options.prefix)?.strip_prefix('-')?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&digits| digits >= 5)?;
            rest[digits..].starts_with('.').then(|| rest[..digits].parse::<u64>().ok())?
        };
        number().is_some_and(|number| number >= first)
    }

    /// Creates a file of a shard, with the ending of the format or with the `ending` of a second file.
    fn file(&self, number: u64, ending: Option<&str>) -> Result<ShardFile> {
        let of_file = if self.facts.packs_files { self.options.compression } else { Compression::None };
        let name = ending.map_or_else(|| self.name(number), |ending| self.named(number, ending));
        ShardFile::create(&self.folder, name, of_file, self.pool.as_ref())
    }

    fn named(&self, number: u64, ending: &str) -> String {
        format!("{}-{number:05}{ending}", self.options.prefix)
    }
}

/// Starts threads for the columns of a shard or the sections of its file; returns `None` for a single thread.
fn pool(threads: usize) -> Result<Option<Arc<ThreadPool>>> {
    if threads < 2 {
        return Ok(None);
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|_| "gristmill-pack".to_owned());
    // The caller that waits for the result reports a panic.
    let pool = pool.panic_handler(|_| ());
    let refused = |e: rayon::ThreadPoolBuildError| Error::new(ErrorKind::Io, format!("threads cannot be started: {e}"));
    pool.build().map(|pool| Some(Arc::new(pool))).map_err(refused)
}
