//! The source of pipeline files.

use super::{Condition, Parquet, ParquetOptions};
use crate::declare::arguments::Arguments;
use crate::declare::decode::Fields;
use crate::declare::values::{Amount, decode_as};
use crate::source::arrow::columns::all_names;
use crate::source::entries::prelude::*;
use crate::source::files::Patterns;
use crate::source::formats::parquet::FACTS;

pub(in crate::source) const SOURCES: &[SourceEntry] =
    &[SourceEntry::of_files(FACTS.source, FACTS.doc, &Of(parquet)).chooses("columns")];

arguments! {
    struct ParquetArgs(paths) {
        /// Paths or URLs of files and folders. Globs and shard ranges (`train-{000..127}.parquet`) are expanded.
        paths: Given<Vec<PathBuf>>,
        /// Memory for the cache of decoded row groups.
        cache_bytes: Amount = "256MiB",
        /// Condition that selects row groups by their statistics, such as `{column: id, min: 3, max: 9}`. Row groups in which no row can
        /// meet all given limits are not read. A `filter` drops the other rows of the row groups that are read.
        row_groups: Option<Condition>,
        /// Columns to read; `meta.url` reads a single field of a struct. By default, all columns.
        columns: Option<Given<Vec<String>>>,
        /// Whether folders named `key=value` become columns, as in Hive, Spark and DuckDB. With `true`, all folders of a path become
        /// columns; with `false`, none. By default, only the folders between a folder of `paths` and its files become columns.
        hive_partitioning: Option<bool>,
    }
}

fn parquet(args: ParquetArgs, at: &Site<'_>) -> Result<Chain> {
    let paths = paths(&args.paths, at)?;
    let options = Parquet::options().cache_bytes(args.cache_bytes.into());
    let options = args.row_groups.into_iter().fold(options, ParquetOptions::row_groups_where);
    let options = args.hive_partitioning.into_iter().fold(options, ParquetOptions::hive_partitioning);
    let columns = args.columns.map(|given| Ok::<_, crate::Error>((given.get()?, given))).transpose()?;
    by_number(at, || {
        let Some((names, given)) = columns else { return Ok(Source::new(options.open(&paths)?).boxed()) };
        let opened = options.open_choosing(&paths, |mut columns| {
            // Whether `meta` has a field `url` is known where the file is opened with `meta.url` as a column.
            let is_inner =
                |name: &String| name.split_once('.').is_some_and(|(root, _)| columns.iter().any(|c| c == root));
            let inner: Vec<_> = names.into_iter().filter(is_inner).collect();
            columns.extend(inner);
            at.of_columns(columns).columns_in(&given)
        })?;
        Ok(Source::new(opened).boxed())
    })
}

arguments! {
    struct ConditionArgs {
        /// Column to test. All given conditions must hold.
        column: String,
        /// Minimum value, inclusive.
        min: Option<f64>,
        /// Maximum value, inclusive.
        max: Option<f64>,
        /// Text that the value must equal.
        equals: Option<String>,
    }
}

decode_as!(Condition, Kind::Section(&ConditionArgs::ABOUT), |node| {
    let fields = Fields::new(node)?;
    let ConditionArgs { column, min, max, equals } = ConditionArgs::read(&fields)?;
    if min.is_none() && max.is_none() && equals.is_none() {
        return Err(fields.error("needs a condition: one of min, max, equals"));
    }
    fields.finish()?;
    let condition = min.into_iter().fold(Self::column(column), Self::min);
    let condition = max.into_iter().fold(condition, Self::max);
    Ok(equals.into_iter().fold(condition, Self::equals))
});

impl ParquetOptions {
    /// Like `open`, but `choose` receives the names of all columns and returns the columns to read.
    fn open_choosing(
        self,
        patterns: impl Patterns,
        choose: impl FnOnce(Vec<String>) -> Result<Vec<String>>,
    ) -> Result<Parquet> {
        let (read, partitions) = self.read(patterns)?;
        let names = all_names(read.iter().map(|(_, _, metadata, _)| &**metadata.schema()), &partitions);
        self.columns(choose(names)?).open_read(read, partitions)
    }
}
