//! Builders of sources and stages: functions of decoded arguments.

use std::ops::Deref;
use std::sync::Arc;

use super::chain::{Chain, Context};
use crate::dataset::columns::{NameBefore, NamedFn};
use crate::dataset::iter::FilterThresholds;
use crate::dataset::{BoxIter, BoxMap, IterDatasetExt, MapDatasetExt};
use crate::declare::arguments::Arguments;
use crate::declare::decode::Fields;
use crate::element::Element;
use crate::error::{Error, Result};

/// The place of a stage in a file: the pipeline so far, and the position for errors.
pub(crate) struct Site<'a> {
    context: &'a Context,
    fields: &'a Fields<'a>,
}

impl Site<'_> {
    /// An error about the arguments as a whole.
    #[cold]
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> Error {
        self.fields.error(message)
    }

    /// The error of an argument that must be there.
    #[cold]
    pub(crate) fn missing(&self, name: &'static str) -> Error {
        self.fields.missing(name)
    }

    /// Reads arguments that are not described, so that the stage refuses them in its own words.
    pub(crate) fn undescribed<A: Arguments>(&self) -> Result<A> {
        A::read(self.fields)
    }
}

impl Deref for Site<'_> {
    type Target = Context;

    fn deref(&self) -> &Context {
        self.context
    }
}

/// Something that is built of arguments of this type.
pub(crate) trait Takes {
    type Args: Arguments;
}

/// Builder of an `O` after an `I`.
pub(crate) trait Build<I, O>: Sync {
    /// Builds it of the arguments in `fields`.
    fn build(&self, before: I, fields: &Fields<'_>, context: &Context) -> Result<O>;
}

/// Any [`Build`].
pub(crate) type Builder<I, O> = &'static dyn Build<I, O>;

/// Builder of a stage after other stages.
pub(crate) struct Behind<I, A, O>(pub(crate) fn(I, A, &Site<'_>) -> Result<O>);

impl<I, A: Arguments, O> Takes for Behind<I, A, O> {
    type Args = A;
}

impl<I, A: Arguments, O> Build<I, O> for Behind<I, A, O> {
    fn build(&self, before: I, fields: &Fields<'_>, context: &Context) -> Result<O> {
        self.0(before, A::read(fields)?, &Site { context, fields })
    }
}

/// Builder without an input: of a source, or of the function of an elementwise stage.
pub(crate) struct Of<A, F>(pub(crate) fn(A, &Site<'_>) -> Result<F>);

impl<A: Arguments, F> Of<A, F> {
    fn made(&self, fields: &Fields<'_>, context: &Context) -> Result<F> {
        self.0(A::read(fields)?, &Site { context, fields })
    }
}

impl<A: Arguments, F> Takes for Of<A, F> {
    type Args = A;
}

impl<A: Arguments> Build<(), Chain> for Of<A, Chain> {
    fn build(&self, (): (), fields: &Fields<'_>, context: &Context) -> Result<Chain> {
        self.made(fields, context)
    }
}

impl<A: Arguments, F: Elementwise> Build<BoxMap<Element>, BoxMap<Element>> for Of<A, F> {
    fn build(&self, ds: BoxMap<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxMap<Element>> {
        Ok(self.made(fields, context)?.map(ds))
    }
}

impl<A: Arguments, F: Elementwise> Build<BoxIter<Element>, BoxIter<Element>> for Of<A, F> {
    fn build(&self, ds: BoxIter<Element>, fields: &Fields<'_>, context: &Context) -> Result<BoxIter<Element>> {
        Ok(self.made(fields, context)?.iter(ds))
    }
}

/// Function of an elementwise stage, which either world has.
pub(crate) trait Elementwise: 'static {
    /// As a stage of random access.
    fn map(self, ds: BoxMap<Element>) -> BoxMap<Element>;

    /// As a stage of a stream.
    fn iter(self, ds: BoxIter<Element>) -> BoxIter<Element>;
}

impl Elementwise for NamedFn<Element> {
    fn map(self, ds: BoxMap<Element>) -> BoxMap<Element> {
        self.after(ds).boxed()
    }

    fn iter(self, ds: BoxIter<Element>) -> BoxIter<Element> {
        self.in_order(ds).boxed()
    }
}

/// Function that sees nothing but the names of columns.
pub(crate) struct OfNames(pub(crate) NamedFn<Element>, pub(crate) Arc<NameBefore>);

impl Elementwise for OfNames {
    fn map(self, ds: BoxMap<Element>) -> BoxMap<Element> {
        self.0.of_names(ds, self.1).boxed()
    }

    fn iter(self, ds: BoxIter<Element>) -> BoxIter<Element> {
        self.0.in_order(ds).boxed()
    }
}

/// Function that drops elements. A stream reports if it drops too many.
pub(crate) struct Filter(pub(crate) NamedFn<Element>);

impl Elementwise for Filter {
    fn map(self, ds: BoxMap<Element>) -> BoxMap<Element> {
        self.0.after(ds).boxed()
    }

    fn iter(self, ds: BoxIter<Element>) -> BoxIter<Element> {
        self.0.watched(ds, FilterThresholds::default()).boxed()
    }
}
