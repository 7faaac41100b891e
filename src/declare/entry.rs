//! Entries of the names in a pipeline file.

use super::arguments::{About, Arguments, arguments, words};
use super::build::{Build, Builder, Takes};
use super::chain::{Chain, Context};
use super::decode::Fields;
use crate::dataset::iter::{BadRecords, Stream};
use crate::dataset::{BoxIter, BoxMap};
use crate::element::Element;
use crate::error::{Error, Result};

/// A dataset of random access.
type Map = BoxMap<Element>;
/// A stream.
type Iter = BoxIter<Element>;
/// A stream directly after the border, which permits more than a position after another stage.
type AtBorder = Stream<BoxMap<Element>>;

/// A stage that a file can name.
pub(crate) struct StageEntry {
    /// The name of the method.
    pub(crate) name: &'static str,
    /// Its purpose in a sentence. Further paragraphs are for Python's `help`: facts, and errors such as `DataError: …`.
    pub(crate) doc: &'static str,
    pub(crate) about: &'static About,
    pub(crate) map: Option<Builder<Map, Map>>,
    /// Elementwise: it may run before the border although it is written after `to_iter`.
    pub(crate) elementwise: bool,
    pub(crate) iter: Option<Builder<Iter, Iter>>,
    pub(crate) stream: Option<Builder<AtBorder, Iter>>,
    pub(crate) chain: Option<Builder<Chain, Chain>>,
    /// A stage of both worlds that is part of the stream, unless `to_iter` follows.
    pub(crate) starts_stream: bool,
    /// Whether it keeps the columns of a stream.
    pub(crate) keeps_columns: bool,
}

impl StageEntry {
    const fn new<A: Arguments>(name: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            doc,
            about: &A::ABOUT,
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
    pub(crate) const fn map<B: Takes + Build<Map, Map>>(
        name: &'static str,
        doc: &'static str,
        build: &'static B,
    ) -> Self {
        Self { map: Some(build), ..Self::new::<B::Args>(name, doc) }
    }

    /// A stage of streams only.
    pub(crate) const fn iter<B: Takes + Build<Iter, Iter>>(
        name: &'static str,
        doc: &'static str,
        build: &'static B,
    ) -> Self {
        Self { iter: Some(build), ..Self::new::<B::Args>(name, doc) }
    }

    /// A stage that either world has, with the arguments that it has in random access.
    pub(crate) const fn both<M: Takes + Build<Map, Map>, I: Build<Iter, Iter>>(
        name: &'static str,
        doc: &'static str,
        map: &'static M,
        iter: &'static I,
    ) -> Self {
        Self { map: Some(map), iter: Some(iter), ..Self::new::<M::Args>(name, doc) }
    }

    /// A stage that sees each element on its own, in either world.
    pub(crate) const fn each<B: Takes + Build<Map, Map> + Build<Iter, Iter>>(
        name: &'static str,
        doc: &'static str,
        build: &'static B,
    ) -> Self {
        Self { elementwise: true, map: Some(build), iter: Some(build), ..Self::new::<B::Args>(name, doc) }
    }

    /// Sets the builder directly after the border, whose arguments are described.
    pub(crate) const fn at_border<B: Takes + Build<AtBorder, Iter>>(self, build: &'static B) -> Self {
        Self { stream: Some(build), about: &B::Args::ABOUT, ..self }
    }

    /// A stage that finds its place itself.
    pub(crate) const fn chain<B: Takes + Build<Chain, Chain>>(
        name: &'static str,
        doc: &'static str,
        build: &'static B,
    ) -> Self {
        Self { chain: Some(build), ..Self::new::<B::Args>(name, doc) }
    }

    /// A stage of either world that begins the stream, unless a later `to_iter` does.
    pub(crate) const fn starts_stream(self) -> Self {
        Self { starts_stream: true, ..self }
    }

    /// Marks a stage that changes columns.
    pub(crate) const fn new_columns(self) -> Self {
        Self { keeps_columns: false, ..self }
    }
}

/// A policy for damaged shards.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum OnBad {
    Error,
    Skip,
}

words!(OnBad { "error" => OnBad::Error, "skip" => OnBad::Skip });

arguments! {
    /// Arguments of all sources of files.
    struct ShardArgs {
        /// Policy for shards that cannot be opened: `error` ends the run, `skip` skips the shard and logs a warning. By default, `error`,
        /// unless a pipeline file sets a policy for bad records.
        on_bad_shard: Option<OnBad>,
    }
}

/// A source that a file can name.
pub(crate) struct SourceEntry {
    pub(crate) name: &'static str,
    /// Its purpose in a sentence. Further paragraphs are for Python's `help`: facts, and errors such as `DataError: …`.
    pub(crate) doc: &'static str,
    pub(crate) about: &'static About,
    /// The argument that chooses columns, if there is such an argument.
    pub(crate) columns: Option<&'static str>,
    origin: Origin,
}

enum Origin {
    By(Builder<(), Chain>),
    /// This feature is off.
    Lacks(&'static str),
}

impl SourceEntry {
    /// A source that this build has.
    pub(crate) const fn of<B: Takes + Build<(), Chain>>(
        name: &'static str,
        doc: &'static str,
        build: &'static B,
    ) -> Self {
        Self { name, doc, about: &B::Args::ABOUT, columns: None, origin: Origin::By(build) }
    }

    /// A source of files, whose shards may be left out.
    pub(crate) const fn of_files<B: Takes + Build<(), Chain>>(
        name: &'static str,
        doc: &'static str,
        build: &'static B,
    ) -> Self {
        Self {
            about: const { &About { outer: Some(&ShardArgs::ABOUT), ..B::Args::ABOUT } },
            ..Self::of(name, doc, build)
        }
    }

    /// A source that this build lacks.
    #[allow(dead_code, reason = "not where every feature is on")]
    pub(crate) const fn lacking(name: &'static str, doc: &'static str, feature: &'static str) -> Self {
        Self { name, doc, about: &About::NONE, columns: None, origin: Origin::Lacks(feature) }
    }

    /// The argument by which it reads some columns only.
    pub(crate) const fn chooses(self, columns: &'static str) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// The feature that this build lacks for it.
    pub(crate) const fn lacks(&self) -> Option<&'static str> {
        match self.origin {
            Origin::By(_) => None,
            Origin::Lacks(feature) => Some(feature),
        }
    }

    /// The policy for shards that cannot be opened.
    pub(crate) fn on_bad_shard(&self, fields: &Fields<'_>, context: &Context) -> Result<BadRecords> {
        let given = self.about.outer.map(|_| ShardArgs::read(fields)).transpose()?.and_then(|args| args.on_bad_shard);
        Ok(match (given, context.bad) {
            (Some(OnBad::Error), _) => BadRecords::Error,
            (Some(OnBad::Skip), BadRecords::Error) => BadRecords::skip(),
            (_, bad) => bad,
        })
    }

    /// Builds the source or stage of these arguments.
    pub(crate) fn build(&self, fields: &Fields<'_>, context: &Context) -> Result<Chain> {
        match self.origin {
            Origin::By(build) => build.build((), fields, context),
            Origin::Lacks(feature) => Err(Error::lacking(self.name, feature)),
        }
    }
}
