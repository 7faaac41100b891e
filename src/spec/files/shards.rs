//! Data sets of shards: WebDataset, MDS.

use super::paths;
#[cfg(feature = "webdataset")]
use super::{index_cache, lanes_of, refuse_lanes};
#[cfg(feature = "webdataset")]
use crate::dataset::IterDataset;
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
use crate::spec::chain::{Chain, Context};
use crate::spec::decode::Fields;

/// `webdataset: {paths: "train-*.tar", decode: true, columns: [__key__, jpg]}`; compressed shards are a stream.
#[cfg(feature = "webdataset")]
pub(super) fn webdataset(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    use crate::source::{Format, WebDataset, find, open_plain};
    let endings = [Format::WebDatasetStream.endings(), Format::WebDataset.endings()].concat();
    let files = find(paths(fields.required_node("paths")?, context)?, &endings)?;
    let mut options = WebDataset::options().decode(fields.or("decode", false)?).url(fields.or("url", false)?);
    if let Some(columns) = fields.optional::<Vec<String>>("columns")? {
        options = options.columns(columns);
    }
    let Some(contents) = open_plain(&files)? else {
        let stream = |files: &[std::path::PathBuf]| Ok(options.clone().stream(files)?.boxed());
        let Some(count) = fields.at_least("lanes", 1)? else { return Ok(Chain::Iter(stream(&files)?)) };
        return lanes_of(&files, count, stream);
    };
    refuse_lanes(fields)?;
    Ok(Chain::Map(Source::new(options.cache(index_cache(fields, context)?).open_contents(contents)?).boxed()))
}

/// `mds: {paths: folder, columns: [text], images: true, check_hashes: false, cache_bytes: 536870912}`.
#[cfg(feature = "mds")]
pub(super) fn mds(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let paths = paths(fields.required_node("paths")?, context)?;
    let mut options = crate::source::Mds::options().images(fields.or("images", true)?);
    options = options.check_hashes(fields.or("check_hashes", false)?);
    if let Some(bytes) = fields.optional("cache_bytes")? {
        options = options.cache_bytes(bytes);
    }
    if let Some(columns) = fields.optional::<Vec<String>>("columns")? {
        options = options.columns(columns);
    }
    Ok(Chain::Map(Source::new(options.open(&paths)?).boxed()))
}
