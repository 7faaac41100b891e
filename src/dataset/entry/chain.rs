//! A pipeline while it is being put together.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::cx::Cx;
use crate::dataset::INFINITE;
use crate::dataset::iter::{BadRecords, FilterThresholds, Stream, lanes};
use crate::dataset::{BoxIter, BoxMap, IterDatasetExt, MapDataset, MapDatasetExt, Stage, bring};
use crate::declare::node::Node;
use crate::declare::suggest::nearest;
use crate::declare::values::{Decode, Given};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::place::{Location, Shards};
use crate::sync::Locked;

/// The stages so far.
#[derive(Debug)]
pub(crate) enum Chain<T: Send + 'static = Element> {
    /// Random access.
    Map(BoxMap<T>),
    /// A stream with elementwise stages only. They stay before the border, and threads run them.
    Stream(BoxMap<T>, Border),
    /// Streams in lanes with elementwise stages only, which run inside the lanes.
    Lanes(Vec<BoxIter<T>>, usize),
    /// A stream after its first stateful stage.
    Iter(BoxIter<T>),
}

/// Arguments of `to_iter`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Border {
    pub(crate) bad: BadRecords,
    pub(crate) thresholds: FilterThresholds,
}

impl Border {
    /// The stream of `ds`.
    pub(crate) fn open<T: Send + 'static>(self, ds: BoxMap<T>) -> Stream<BoxMap<T>> {
        ds.to_iter().on_bad_record(self.bad).filter_thresholds(self.thresholds)
    }
}

impl<T: Send + 'static> Clone for Chain<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Map(ds) => Self::Map(ds.clone()),
            Self::Stream(ds, border) => Self::Stream(ds.clone(), *border),
            Self::Lanes(parts, count) => Self::Lanes(parts.clone(), *count),
            Self::Iter(ds) => Self::Iter(ds.clone()),
        }
    }
}

impl<T: Send + 'static> Chain<T> {
    /// As a stream.
    pub(crate) fn into_iter(self) -> BoxIter<T> {
        match self {
            Self::Map(ds) => ds.to_iter().boxed(),
            Self::Stream(ds, border) => border.open(ds).boxed(),
            Self::Lanes(parts, count) => lanes(parts, count).boxed(),
            Self::Iter(ds) => ds,
        }
    }

    /// The stages before the border, if no other stage follows them.
    pub(crate) fn prefix(&self) -> Option<&BoxMap<T>> {
        match self {
            Self::Map(ds) | Self::Stream(ds, _) => Some(ds),
            Self::Lanes(..) | Self::Iter(_) => None,
        }
    }

    /// Number of indices that the stream reads, unless it begins with a stateful stage or is endless.
    pub(crate) fn indices(&self) -> Option<u64> {
        self.prefix().map(MapDataset::len).filter(|&len| len < INFINITE)
    }

    /// Appends a stage of random access. A chain without a prefix stays as it is.
    pub(crate) fn over(self, stage: impl FnOnce(BoxMap<T>) -> BoxMap<T>) -> Self {
        match self {
            Self::Map(ds) => Self::Map(stage(ds)),
            Self::Stream(ds, border) => Self::Stream(stage(ds), border),
            other => other,
        }
    }

    /// Moves the chain past the border, if it is before it.
    pub(crate) fn into_stream(self, border: Border) -> Self {
        match self {
            Self::Map(ds) => Self::Stream(ds, border),
            other => other,
        }
    }

    /// The last stage.
    pub(crate) fn last(&self) -> Box<dyn Stage> {
        match self {
            Self::Map(ds) => Box::new(ds.clone()),
            other => Box::new(other.clone().into_iter()),
        }
    }

    /// Sets the policy for bad records of the stages so far, and of later elementwise stages before the border.
    pub(crate) fn on_bad_record(self, bad: BadRecords) -> Self {
        match self.into_stream(Border::default()) {
            Self::Stream(ds, border) => Self::Stream(ds, Border { bad, ..border }),
            other => Self::Iter(other.into_iter().on_bad_record(bad).boxed()),
        }
    }

    /// The last stage, checked: an impossible argument is found while its line is known.
    pub(crate) fn check(&self) -> Result<()> {
        let check = |stage: &dyn Stage| stage.node().describe.check();
        match self {
            Self::Map(ds) | Self::Stream(ds, _) => check(ds),
            Self::Lanes(parts, count) => {
                check(&lanes(parts.clone(), *count))?;
                parts.first().map_or(Ok(()), |part| check(part))
            }
            Self::Iter(ds) => check(ds),
        }
    }
}

/// Number of indices that are tried to learn what elements look like; a filter may have dropped the first.
const PEEK: u64 = 64;
/// Shards that are left out and logged one by one.
const LOGGED: usize = 5;

/// Input of a stage besides its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    /// Relative paths start here.
    pub(crate) folder: PathBuf,
    /// Columns of the input elements, if they are known.
    pub(crate) columns: Option<Vec<String>>,
    /// Number of indices before the first stateful stage.
    pub(crate) indices: Option<u64>,
    /// Whether elements may be read to learn their columns, which must not run a user's function.
    pub(crate) looks: bool,
    /// Whether the arguments are only checked: no file is opened, and no tokenizer is loaded.
    pub(crate) is_draft: bool,
    /// Policy for shards that cannot be opened.
    pub(crate) bad: BadRecords,
    /// Shards that sources leave out.
    pub(crate) shards: Shards,
    /// The errors of the shards that were left out so far.
    skipped: Arc<Mutex<Vec<Error>>>,
    /// Files, folders and URLs of the stages so far.
    named: Arc<Mutex<Vec<Location>>>,
}

impl Context {
    /// Nothing is known of the elements yet.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            columns: None,
            indices: None,
            looks: true,
            is_draft: false,
            bad: BadRecords::Error,
            shards: Shards::default(),
            skipped: Arc::default(),
            named: Arc::default(),
        }
    }

    /// Makes the context of a check, which opens no file.
    pub(crate) fn draft(folder: PathBuf) -> Self {
        Self { looks: false, is_draft: true, ..Self::new(folder) }
    }

    /// Makes the context of a part of a pipeline with a separate source.
    pub(crate) fn of_part(&self) -> Self {
        Self { columns: None, indices: None, ..self.clone() }
    }

    /// Makes the context of a source that leaves out these shards.
    pub(crate) fn leaving_out(&self, shards: &Shards) -> Self {
        Self { shards: shards.clone(), ..self.clone() }
    }

    /// Remembers shards that were left out, and warns of the first.
    pub(crate) fn skip(&self, bad: Vec<Error>) {
        bad.iter().take(LOGGED).for_each(|error| tracing::warn!("shard skipped: {error}"));
        if let Some(more) = bad.len().checked_sub(LOGGED).filter(|&more| more > 0) {
            tracing::warn!("{more} more shards skipped");
        }
        self.skipped.locked().extend(bad);
    }

    /// Whether a shard was left out.
    #[cfg(all(feature = "cli", feature = "columns"))]
    pub(crate) fn is_skipped(&self, file: &Path) -> bool {
        self.skipped.locked().iter().any(|error| error.file() == Some(file))
    }

    /// Makes the context of something whose elements have these columns.
    pub(crate) fn of_columns(&self, columns: Vec<String>) -> Self {
        Self { columns: Some(columns), named: self.named.clone(), ..Self::new(self.folder.clone()) }
    }

    /// Reads one element to learn the columns. What fails here fails again, with its place, when the pipeline runs.
    pub(crate) fn peek(&mut self, ds: &BoxMap<Element>) {
        if !self.looks {
            self.columns = None;
            return;
        }
        let mut cx = Cx::default();
        let first = (0..ds.len().min(PEEK)).find_map(|i| {
            bring(ds, &[i]);
            ds.get(i, &mut cx).ok().flatten()
        });
        self.columns = first.map(|element| element.iter().map(|(name, _)| name.to_owned()).collect());
    }

    /// Refuses a column that the elements do not have.
    pub(crate) fn check_column(&self, node: &Node, name: &str) -> Result<()> {
        let Some(columns) = &self.columns else { return Ok(()) };
        if columns.iter().any(|c| c == name) {
            return Ok(());
        }
        let error = node.error(format!("no column `{name}`; there are {}", columns.join(", ")));
        Err(match nearest(name, columns.iter().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        })
    }

    /// The column that an argument names.
    pub(crate) fn column(&self, given: &Given<String>) -> Result<String> {
        let column = given.get()?;
        self.check_column(given, &column)?;
        Ok(column)
    }

    /// The columns that a list names.
    pub(crate) fn columns_in(&self, node: &Node) -> Result<Vec<String>> {
        let name = |node: &Node| {
            let name: String = Decode::decode(node)?;
            self.check_column(node, &name)?;
            Ok(name)
        };
        Vec::<Node>::decode(node)?.iter().map(name).collect()
    }

    /// A path of the pipeline file, seen from here; a URL as it is.
    pub(crate) fn resolve(&self, path: &str) -> Location {
        let place = match Location::from(crate::place::named(Path::new(path))) {
            // `join` takes an absolute path as it is.
            Location::Local(path) => Location::Local(self.folder.join(path)),
            object => object,
        };
        self.named.locked().push(place.clone());
        place
    }

    /// The path of a file that must be there.
    pub(crate) fn existing(&self, node: &Node) -> Result<Location> {
        let file = self.resolve(&String::decode(node)?);
        if file.may_exist() { Ok(file) } else { Err(missing(node, file.as_ref())) }
    }
}

#[cfg(feature = "cli")]
impl Context {
    /// The errors of the shards that were left out.
    pub(crate) fn skipped(&self) -> Vec<String> {
        self.skipped.locked().iter().map(ToString::to_string).collect()
    }

    /// The places that were named.
    pub(crate) fn named(&self) -> Vec<Location> {
        self.named.locked().clone()
    }
}

impl Context {
    /// Nothing is known of the elements, and nothing is read to learn it.
    pub(crate) fn unknown() -> Self {
        Self::new(PathBuf::new()).blind()
    }

    /// Makes the context after a function of the user.
    pub(crate) fn blind(self) -> Self {
        Self { columns: None, looks: false, ..self }
    }
}

/// An error about a file that is not there, with the most similar name in its folder.
pub(crate) fn missing(node: &Node, path: &Path) -> Error {
    let error = node.error(format!("no file {}", path.display()));
    match similar_file(path) {
        Some(name) => error.help(format!("did you mean `{name}`?")),
        None if node.line == 0 => error,
        None => error.help("paths start at the folder of the pipeline file"),
    }
}

/// The name in the folder of `path` that is most like its own, if any is.
pub(crate) fn similar_file(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).ok()?;
    let names: Vec<String> = entries.flatten().take(10_000).filter_map(|e| e.file_name().into_string().ok()).collect();
    let wanted = path.file_name()?.to_str()?;
    nearest(wanted, names.iter().map(String::as_str)).map(str::to_owned)
}
