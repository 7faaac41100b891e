//! The elementwise functions that a file can name, as one stage that carries its name and arguments.

mod names;
mod watched;

use std::fmt;
use std::sync::Arc;

use crate::cx::{Cx, StageId};
use crate::dataset::map::Many;
use crate::dataset::{DatasetIterator, IterDataset, MapDataset, Role, Stage, stage_after};
use crate::element::Element;
use crate::error::Result;
use crate::exec::Runtime;

/// What is done with each element; `None` drops it.
type Function<T, U> = dyn Fn(T) -> Result<Option<U>> + Send + Sync;
/// The same done with many.
type Together<T, U> = dyn Fn(Many<T>) -> Many<U> + Send + Sync;

/// An elementwise stage made of a function with a name: a closure alone would leave the fingerprint blind.
pub(crate) struct Named<D, T, U = Element> {
    parent: D,
    name: &'static str,
    params: String,
    role: Role,
    function: Arc<Function<T, U>>,
    together: Option<Arc<Together<T, U>>>,
    native: bool,
    /// Whether it does to a batch what it does to elements.
    of_names: bool,
    stage: StageId,
}

/// A function, its name, and the arguments that shape what it does.
pub(crate) struct NamedFn<T, U = Element> {
    name: &'static str,
    params: String,
    role: Role,
    function: Arc<Function<T, U>>,
    together: Option<Arc<Together<T, U>>>,
    native: bool,
}

impl<T, U> Clone for NamedFn<T, U> {
    fn clone(&self) -> Self {
        Self { params: self.params.clone(), function: self.function.clone(), together: self.together.clone(), ..*self }
    }
}

impl<T: 'static, U: 'static> NamedFn<T, U> {
    /// One element in, one out.
    pub(crate) fn map(name: &'static str, params: String, f: impl Fn(T) -> Result<U> + Send + Sync + 'static) -> Self {
        Self {
            name,
            params,
            role: Role::Elementwise,
            function: Arc::new(move |e| f(e).map(Some)),
            together: None,
            native: true,
        }
    }

    /// The same, where it is the user's.
    #[cfg(feature = "python")]
    pub(crate) fn foreign(self) -> Self {
        Self { native: false, ..self }
    }

    /// The same, and how it is done with many at once, if that is quicker.
    #[cfg(feature = "python")]
    pub(crate) fn together(self, together: impl Fn(Many<T>) -> Many<U> + Send + Sync + 'static) -> Self {
        Self { together: Some(Arc::new(together)), ..self }
    }

    /// As a stage behind `parent`.
    pub(crate) fn after<D: Stage>(self, parent: D) -> Named<D, T, U> {
        let stage = stage_after(&[&parent]);
        let Self { name, params, role, function, together, native } = self;
        Named { parent, name, params, role, function, together, native, of_names: false, stage }
    }
}

impl<T: 'static> NamedFn<T, T> {
    /// Keeps or drops.
    pub(crate) fn filter(
        name: &'static str,
        params: String,
        keep: impl Fn(&T) -> Result<bool> + Send + Sync + 'static,
    ) -> Self {
        let function = move |e: T| Ok(keep(&e)?.then_some(e));
        Self { name, params, role: Role::MayDrop, function: Arc::new(function), together: None, native: true }
    }
}

impl<D: Stage, T, U> Stage for Named<D, T, U> {
    fn name(&self) -> &'static str {
        self.name
    }
    fn params(&self) -> String {
        self.params.clone()
    }
    fn role(&self) -> Role {
        self.role
    }
    fn is_native(&self) -> bool {
        self.native
    }
    fn has_columns(&self) -> bool {
        self.of_names
    }
    fn parents(&self) -> Vec<&dyn Stage> {
        vec![&self.parent]
    }
}

fn run<T, U>(f: &Function<T, U>, stage: StageId, name: &str, element: T, cx: &mut Cx) -> Result<Option<U>> {
    match cx.consumed(stage, || f(element)) {
        Ok(Some(element)) => {
            cx.produced(stage, 1, 0);
            Ok(Some(element))
        }
        Ok(None) => Ok(None),
        Err(error) => Err(cx.blame(stage, name, error)),
    }
}

impl<D: MapDataset, U> MapDataset for Named<D, D::Item, U> {
    type Item = U;

    fn len(&self) -> u64 {
        self.parent.len()
    }

    fn get(&self, index: u64, cx: &mut Cx) -> Result<Option<U>> {
        match self.parent.get(index, cx)? {
            Some(element) => run(&*self.function, self.stage, self.name, element, cx),
            None => Ok(None),
        }
    }

    fn get_many(&self, indices: &[u64], cx: &mut Cx) -> Many<U> {
        let many = self.parent.get_many(indices, cx);
        let many = cx.consumed_many(self.stage, many.items().len(), || match &self.together {
            Some(together) => together(many),
            None => many.filter_map(|_, element| (self.function)(element)),
        });
        cx.produced(self.stage, many.items().len() as u64, 0);
        let blame = cx.blamer(self.stage, self.name);
        // An error that came in names the stage that it came from, and goes on doing so.
        many.map_errors(|_, error| blame(error))
    }

    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Self> {
        let parent = self.parent.for_pass(run, border)?;
        let (params, function, together) = (self.params.clone(), self.function.clone(), self.together.clone());
        Some(Self { parent, params, function, together, ..*self })
    }
}

impl<D: IterDataset, U: Send + 'static> IterDataset for Named<D, D::Item, U> {
    type Item = U;
    type Iter = NamedIter<D::Iter, D::Item, U>;

    fn iter(&self, run: &Runtime) -> Result<Self::Iter> {
        let (function, stage, name) = (self.function.clone(), self.stage, self.name);
        Ok(NamedIter { parent: self.parent.iter(run)?, function, stage, name })
    }
}

/// A pass over a stream of [`Named`].
pub(crate) struct NamedIter<I, T, U = Element> {
    parent: I,
    function: Arc<Function<T, U>>,
    stage: StageId,
    name: &'static str,
}

impl<I: DatasetIterator, U> DatasetIterator for NamedIter<I, I::Item, U> {
    type Item = U;
    type State = I::State;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<U>> {
        while let Some(element) = self.parent.next(cx)? {
            if let Some(element) = run(&*self.function, self.stage, self.name, element, cx)? {
                return Ok(Some(element));
            }
        }
        Ok(None)
    }

    fn state(&self) -> I::State {
        self.parent.state()
    }

    fn restore(&mut self, state: I::State, cx: &mut Cx) -> Result<()> {
        self.parent.restore(state, cx)
    }
}

impl<D, T, U> fmt::Debug for Named<D, T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.params)
    }
}

impl<I, T, U> fmt::Debug for NamedIter<I, T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamedIter({})", self.name)
    }
}
