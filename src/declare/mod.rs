//! Descriptions of arguments in pipeline files, and their decoders.
//!
//! A source or stage declares its arguments beside its code, by [`arguments!`](arguments::arguments) and an
//! [entry](crate::dataset::entry). [`spec`](crate::spec) puts pipelines together from all entries.

pub(crate) mod arguments;
pub(crate) mod decode;
pub(crate) mod node;
pub(crate) mod suggest;
pub(crate) mod values;
