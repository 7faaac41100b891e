//! NumPy's arrays.

#[cfg(feature = "compress")]
use super::paths;
#[cfg(feature = "compress")]
use super::whole::Whole;
use crate::dataset::MapDataset;
use crate::dataset::map::Source;
use crate::error::Result;
#[cfg(feature = "compress")]
use crate::source::Format;
use crate::source::Npy;
use crate::spec::chain::{Chain, Context};
use crate::spec::decode::Fields;

/// `npy: {path: a.npy, field: data}`: rows along the first dimension.
pub(super) fn npy(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    let path = context.existing(fields.required_node("path")?)?;
    let source = Npy::open(&path)?.field(fields.or("field", "data".to_owned())?);
    Ok(Chain::Map(Source::new(source).boxed()))
}

/// `npz: {paths: "features-*.npz"}`: a record for each archive, its arrays the fields.
#[cfg(feature = "compress")]
pub(super) fn npz(fields: &Fields<'_>, context: &Context) -> Result<Chain> {
    use crate::source::{Npz, find};
    let files = find(paths(fields.required_node("paths")?, context)?, Format::Npz.endings())?;
    let archives = files.iter().map(Npz::open).collect::<Result<Vec<_>>>()?;
    let elements = archives.iter().map(Npz::element).collect::<Result<_>>()?;
    let identity = archives.iter().map(|npz| npz.identity()).collect();
    Ok(Chain::Map(Whole { name: "npz", elements, identity }.dataset()))
}
