//! What a name in a pipeline file stands for.

use super::chain::{Chain, Context};
use super::decode::Fields;
use crate::dataset::iter::Stream;
use crate::dataset::{BoxIter, BoxMap};
use crate::element::Element;
use crate::error::Result;
use crate::source::Format;

/// Builds a stage of random access.
pub(crate) type MapFn = fn(BoxMap<Element>, &Fields<'_>, &Context) -> Result<BoxMap<Element>>;
/// Builds a stage of a stream.
pub(crate) type IterFn = fn(BoxIter<Element>, &Fields<'_>, &Context) -> Result<BoxIter<Element>>;
/// Builds a stage straight behind the border, where it can do more than behind another stage.
pub(crate) type StreamFn = fn(Stream<BoxMap<Element>>, &Fields<'_>, &Context) -> Result<BoxIter<Element>>;
/// Builds a stage that stands in either world.
pub(crate) type ChainFn = fn(Chain, &Fields<'_>, &Context) -> Result<Chain>;
/// Builds a source, or a combination of sources.
pub(crate) type SourceFn = fn(&Fields<'_>, &Context) -> Result<Chain>;

/// A stage that a file can name.
pub(crate) struct StageEntry {
    /// The name of the method.
    pub(crate) name: &'static str,
    /// The argument that a bare value stands for: `limit: 100`.
    pub(crate) main: Option<&'static str>,
    pub(crate) map: Option<MapFn>,
    /// Elementwise: behind `to_iter` it may still run in front of the border.
    pub(crate) elementwise: bool,
    pub(crate) iter: Option<IterFn>,
    pub(crate) stream: Option<StreamFn>,
    pub(crate) chain: Option<ChainFn>,
    /// Of two worlds it belongs to the stream, unless a later `to_iter` says where that begins.
    pub(crate) starts_stream: bool,
    /// Whether a stream has the same columns behind it.
    pub(crate) keeps_columns: bool,
}

impl StageEntry {
    const fn new(name: &'static str, main: Option<&'static str>) -> Self {
        Self {
            name,
            main,
            map: None,
            elementwise: false,
            iter: None,
            stream: None,
            chain: None,
            starts_stream: false,
            keeps_columns: true,
        }
    }

    /// A stage of random access only.
    pub(crate) const fn map(name: &'static str, main: Option<&'static str>, build: MapFn) -> Self {
        Self { map: Some(build), ..Self::new(name, main) }
    }

    /// A stage of streams only.
    pub(crate) const fn iter(name: &'static str, main: Option<&'static str>, build: IterFn) -> Self {
        Self { iter: Some(build), ..Self::new(name, main) }
    }

    /// A stage that either world has.
    pub(crate) const fn both(name: &'static str, main: Option<&'static str>, map: MapFn, iter: IterFn) -> Self {
        Self { map: Some(map), iter: Some(iter), ..Self::new(name, main) }
    }

    /// A stage that sees each element on its own, in either world.
    pub(crate) const fn each(name: &'static str, main: Option<&'static str>, map: MapFn, iter: IterFn) -> Self {
        Self { elementwise: true, ..Self::both(name, main, map, iter) }
    }

    /// Straight behind the border it is built by `build`.
    pub(crate) const fn at_border(self, build: StreamFn) -> Self {
        Self { stream: Some(build), ..self }
    }

    /// A stage that finds its place itself.
    pub(crate) const fn chain(name: &'static str, main: Option<&'static str>, build: ChainFn) -> Self {
        Self { chain: Some(build), ..Self::new(name, main) }
    }

    /// A stage of either world that begins the stream, unless a later `to_iter` does.
    pub(crate) const fn starts_stream(self) -> Self {
        Self { starts_stream: true, ..self }
    }

    /// The columns behind it are others.
    pub(crate) const fn new_columns(self) -> Self {
        Self { keeps_columns: false, ..self }
    }
}

/// The two builders of a stage made of a named function.
macro_rules! each {
    ($function:ident, $map:ident, $iter:ident) => {
        fn $map(ds: BoxMap<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxMap<Element>> {
            Ok($function(fields, context)?.after(ds).boxed())
        }

        fn $iter(ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
            Ok($function(fields, context)?.after(ds).boxed())
        }
    };
}
pub(super) use each;

/// The same, of a function that sees nothing but the names of columns.
macro_rules! each_of_names {
    ($function:ident, $map:ident, $iter:ident) => {
        fn $map(ds: BoxMap<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxMap<Element>> {
            Ok($function(fields, context)?.of_names(ds).boxed())
        }

        fn $iter(ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
            Ok($function(fields, context)?.after(ds).boxed())
        }
    };
}
pub(super) use each_of_names;

/// A source that a file can name.
pub(crate) struct SourceEntry {
    pub(crate) name: &'static str,
    pub(crate) main: Option<&'static str>,
    /// The argument by which columns are chosen, where they can be.
    pub(crate) columns: Option<&'static str>,
    build: Build,
}

enum Build {
    By(SourceFn),
    /// The feature of this format is off.
    Lacks(Format),
}

impl SourceEntry {
    /// A source that this build has.
    pub(crate) const fn new(name: &'static str, main: Option<&'static str>, build: SourceFn) -> Self {
        Self { name, main, columns: None, build: Build::By(build) }
    }

    /// One that it lacks, and says so.
    #[allow(dead_code, reason = "not where every feature is on")]
    pub(crate) const fn lacking(name: &'static str, format: Format) -> Self {
        Self { name, main: None, columns: None, build: Build::Lacks(format) }
    }

    /// The argument by which it reads some columns only.
    pub(crate) const fn chooses(self, columns: &'static str) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// What the arguments describe.
    pub(crate) fn build(&self, fields: &Fields<'_>, context: &Context) -> Result<Chain> {
        match self.build {
            Build::By(build) => build(fields, context),
            Build::Lacks(format) => Err(format.lacking()),
        }
    }
}
