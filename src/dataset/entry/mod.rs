//! Entries of pipeline files: the name of a source or stage, its arguments, and the function that builds it. Each entry is part of the file of
//! its stage or format.

pub(crate) mod build;
pub(crate) mod chain;
pub(crate) mod prelude;

use self::build::{Build, Builder, Takes};
use self::chain::{Chain, Context};
use super::iter::{BadRecords, Stream};
use super::{BoxIter, BoxMap};
use crate::declare::arguments::{About, Arguments, arguments, words};
use crate::declare::decode::Fields;
use crate::element::Element;
use crate::error::{Error, Result};

/// A dataset of random access.
type Map = BoxMap<Element>;
/// A stream.
type Iter = BoxIter<Element>;
/// A stream directly after the border, which permits more than a position after another stage.
type AtBorder = Stream<BoxMap<Element>>;
/// A name, or a description.
type Text = &'static str;

/// A stage that a file can name.
pub(crate) struct StageEntry {
    /// The name of the method.
    pub(crate) name: Text,
    /// Its purpose in a sentence. Further paragraphs are for Python's `help`: facts, and errors such as `DataError: …`.
    pub(crate) doc: Text,
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
    /// Reads a policy for bad records of all earlier stages.
    pub(crate) policy: Option<fn(&Fields<'_>) -> Result<BadRecords>>,
}

impl StageEntry {
    const fn new<A: Arguments>(name: Text, doc: Text) -> Self {
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
            policy: None,
        }
    }

    /// A stage of random access only.
    pub(crate) const fn map<B: Takes + Build<Map, Map>>(name: Text, doc: Text, build: &'static B) -> Self {
        Self { map: Some(build), ..Self::new::<B::Args>(name, doc) }
    }

    /// A stage of streams only.
    pub(crate) const fn iter<B: Takes + Build<Iter, Iter>>(name: Text, doc: Text, build: &'static B) -> Self {
        Self { iter: Some(build), ..Self::new::<B::Args>(name, doc) }
    }

    /// A stage that either world has, with the arguments that it has in random access.
    pub(crate) const fn both<M: Takes + Build<Map, Map>, I: Build<Iter, Iter>>(
        name: Text,
        doc: Text,
        map: &'static M,
        iter: &'static I,
    ) -> Self {
        Self { map: Some(map), iter: Some(iter), ..Self::new::<M::Args>(name, doc) }
    }

    /// A stage that sees each element on its own, in either world.
    pub(crate) const fn each<B: Takes + Build<Map, Map> + Build<Iter, Iter>>(
        name: Text,
        doc: Text,
        build: &'static B,
    ) -> Self {
        Self { elementwise: true, map: Some(build), iter: Some(build), ..Self::new::<B::Args>(name, doc) }
    }

    /// Sets the builder directly after the border, whose arguments are described.
    pub(crate) const fn at_border<B: Takes + Build<AtBorder, Iter>>(self, build: &'static B) -> Self {
        Self { stream: Some(build), about: &B::Args::ABOUT, ..self }
    }

    /// A stage that finds its place itself.
    pub(crate) const fn chain<B: Takes + Build<Chain, Chain>>(name: Text, doc: Text, build: &'static B) -> Self {
        Self { chain: Some(build), ..Self::new::<B::Args>(name, doc) }
    }

    /// A stage of either world that begins the stream, unless a later `to_iter` does.
    pub(crate) const fn starts_stream(self) -> Self {
        Self { starts_stream: true, ..self }
    }

    /// Sets the function that reads a policy for bad records.
    pub(crate) const fn with_policy(self, policy: fn(&Fields<'_>) -> Result<BadRecords>) -> Self {
        Self { policy: Some(policy), ..self }
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
    pub(crate) name: Text,
    /// Its purpose in a sentence. Further paragraphs are for Python's `help`: facts, and errors such as `DataError: …`.
    pub(crate) doc: Text,
    pub(crate) about: &'static About,
    /// The argument that chooses columns, if there is such an argument.
    pub(crate) columns: Option<Text>,
    origin: Origin,
}

enum Origin {
    By(Builder<(), Chain>),
    /// This feature is off.
    Lacks(Text),
}

impl SourceEntry {
    /// A source that this build has.
    pub(crate) const fn of<B: Takes + Build<(), Chain>>(name: Text, doc: Text, build: &'static B) -> Self {
        Self { name, doc, about: &B::Args::ABOUT, columns: None, origin: Origin::By(build) }
    }

    /// A source of files, whose shards may be left out.
    pub(crate) const fn of_files<B: Takes + Build<(), Chain>>(name: Text, doc: Text, build: &'static B) -> Self {
        Self {
            about: const { &About { outer: Some(&ShardArgs::ABOUT), ..B::Args::ABOUT } },
            ..Self::of(name, doc, build)
        }
    }

    /// A source that this build lacks.
    #[allow(dead_code, reason = "not where every feature is on")]
    pub(crate) const fn lacking(name: Text, doc: Text, feature: Text) -> Self {
        Self { name, doc, about: &About::NONE, columns: None, origin: Origin::Lacks(feature) }
    }

    /// The argument by which it reads some columns only.
    pub(crate) const fn chooses(self, columns: Text) -> Self {
        Self { columns: Some(columns), ..self }
    }

    /// The feature that this build lacks for it.
    pub(crate) const fn lacks(&self) -> Option<Text> {
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
