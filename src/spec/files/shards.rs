//! Data sets of shards: WebDataset, MDS.

use super::paths;
#[cfg(feature = "mds")]
use super::unopened_map;
#[cfg(feature = "webdataset")]
use super::{found, index_cache, is_packed, lanes_of, refuse_lanes, unopened};
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
    use crate::source::{Format, WebDataset, open_plain};
    let endings = [Format::WebDatasetStream.endings(), Format::WebDataset.endings()].concat();
    let files = found(paths(fields.required_node("paths")?, context)?, &endings, context)?;
    let mut options = WebDataset::options().decode(fields.or("decode", false)?).url(fields.or("url", false)?);
    if let Some(columns) = fields.optional::<Vec<String>>("columns")? {
        options = options.columns(columns);
    }
    let cache = index_cache(fields, context)?;
    if context.is_draft {
        return unopened(fields, is_packed(&files));
    }
    let Some(contents) = open_plain(&files)? else {
        let stream = |files: &[std::path::PathBuf]| Ok(options.clone().stream(files)?.boxed());
        let Some(count) = fields.at_least("lanes", 1)? else { return Ok(Chain::Iter(stream(&files)?)) };
        return lanes_of(&files, count, stream);
    };
    refuse_lanes(fields)?;
    Ok(Chain::Map(Source::new(options.cache(cache).open_contents(contents)?).boxed()))
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
    if context.is_draft {
        return Ok(Chain::Map(unopened_map()));
    }
    Ok(Chain::Map(Source::new(options.open(&paths)?).boxed()))
}
