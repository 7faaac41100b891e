//! Type erasure of datasets. All of it is in this module.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use super::iter::{DatasetIterator, Dealt, IterDataset, NextStacked, PartPassOf};
use super::map::{MapDataset, same_dataset};
use super::memory::Sample;
use super::node::{Node, Sampled};
use super::plan::{Plan, PlanOf, Planning};
use super::sample;
use super::stage::Stage;
use crate::cx::{Cx, StageId};
use crate::element::{Name, Ragged, Stack};
use crate::error::{Error, Result};
use crate::exec::Runtime;
use crate::part::Part;

/// A [`MapDataset`] whose type is hidden. Cloning shares it.
#[must_use = "datasets are lazy and do nothing until read"]
pub struct BoxMap<T>(Arc<dyn ErasedMap<T>>);

trait ErasedMap<T>: MapDataset<Item = T> {
    fn erased_for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<BoxMap<T>>>;
}

impl<D: MapDataset + 'static> ErasedMap<D::Item> for D {
    fn erased_for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<BoxMap<D::Item>>> {
        Some(self.for_pass(run, border)?.map(BoxMap::new))
    }
}

impl<T> BoxMap<T> {
    /// Hides the type of `dataset`.
    pub fn new(dataset: impl MapDataset<Item = T> + 'static) -> Self {
        Self(Arc::new(dataset))
    }
}

clone_as!(<T> BoxMap<T>, |self| Self(self.0.clone()));

impl<T: 'static> MapDataset for BoxMap<T> {
    type Item = T;

    same_dataset!(.0);

    fn for_pass(&self, run: &Runtime, border: StageId) -> Option<Result<Self>> {
        // Calls the method of the inner dataset. The pointer is a dataset, too.
        (*self.0).erased_for_pass(run, border)
    }
}

/// An [`IterDataset`] whose type is hidden. Cloning shares it.
#[must_use = "datasets are lazy and do nothing until read"]
pub struct BoxIter<T>(Arc<dyn ErasedDataset<T>>);

impl<T: Send + 'static> BoxIter<T> {
    /// Hides the type of `dataset`.
    pub fn new(dataset: impl IterDataset<Item = T> + 'static) -> Self {
        Self(Arc::new(dataset))
    }
}

clone_as!(<T> BoxIter<T>, |self| Self(self.0.clone()));

impl<T: Send + 'static> IterDataset for BoxIter<T> {
    type Item = T;
    type Iter = BoxIterator<T>;

    fn iter(&self, run: &Runtime) -> Result<BoxIterator<T>> {
        Ok(BoxIterator(self.0.erased_iter(run)?))
    }

    fn iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<PartPassOf<Self>>> {
        let pass = self.0.erased_iter_part(run, part)?;
        Ok(pass.map(|pass| Box::new(BoxIterator(pass)) as _))
    }

    fn plan(&self, planning: &Planning<'_>) -> Result<Option<PlanOf<Self>>> {
        self.0.erased_plan(planning)
    }
}

macro_rules! forward_stage {
    ($name:ident, [$($bound:tt)+], $sample:path) => {
        impl<T: $($bound)+> Stage for $name<T> {
            fn node(&self) -> Node<'_> {
                Node { sample: Some(self), ..self.0.node() }
            }
            fn parents(&self) -> Vec<&dyn Stage> {
                self.0.parents()
            }
        }

        impl<T: $($bound)+> Sampled for $name<T> {
            fn sample(&self) -> Option<Sample> {
                $sample(self)
            }
        }

        impl<T: $($bound)+> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), super::label(self))
            }
        }
    };
}
forward_stage!(BoxMap, ['static], sample::of_map);
forward_stage!(BoxIter, [Send + 'static], sample::of_stream);

trait ErasedDataset<T>: Stage + Send + Sync {
    fn erased_iter(&self, run: &Runtime) -> Result<Box<dyn ErasedIterator<T>>>;
    fn erased_iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<Box<dyn ErasedIterator<Dealt<T>>>>>;
    fn erased_plan(&self, planning: &Planning<'_>) -> Result<Option<Plan<T, AnyState>>>;
}

impl<D: IterDataset + 'static> ErasedDataset<D::Item> for D {
    fn erased_iter(&self, run: &Runtime) -> Result<Box<dyn ErasedIterator<D::Item>>> {
        Ok(Box::new(self.iter(run)?))
    }

    fn erased_iter_part(&self, run: &Runtime, part: &Part) -> Result<Option<Box<dyn ErasedIterator<Dealt<D::Item>>>>> {
        Ok(self.iter_part(run, part)?.map(|pass| Box::new(pass) as _))
    }

    fn erased_plan(&self, planning: &Planning<'_>) -> Result<Option<Plan<D::Item, AnyState>>> {
        let Some(Plan { pass, make, single, chains }) = self.plan(planning)? else { return Ok(None) };
        Ok(Some(Plan { pass: Box::new(BoxIterator(Box::new(pass))), make, single, chains }))
    }
}

trait ErasedIterator<T>: Send {
    fn erased_next(&mut self, cx: &mut Cx) -> Result<Option<T>>;
    fn erased_next_stacked(&mut self, count: usize, cx: &mut Cx) -> NextStacked<T>
    where
        T: Stack;
    fn erased_next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged>;
    fn erased_pass_ragged(&mut self, rows: usize);
    fn erased_state(&self) -> AnyState;
    fn erased_restore(&mut self, state: AnyState, cx: &mut Cx) -> Result<()>;
}

impl<I: DatasetIterator> ErasedIterator<I::Item> for I {
    fn erased_next(&mut self, cx: &mut Cx) -> Result<Option<I::Item>> {
        self.next(cx)
    }

    fn erased_next_stacked(&mut self, count: usize, cx: &mut Cx) -> NextStacked<I::Item>
    where
        I::Item: Stack,
    {
        self.next_stacked(count, cx)
    }

    fn erased_next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        self.next_ragged(names, cx)
    }

    fn erased_pass_ragged(&mut self, rows: usize) {
        self.pass_ragged(rows);
    }

    fn erased_state(&self) -> AnyState {
        AnyState::new(self.state())
    }

    fn erased_restore(&mut self, state: AnyState, cx: &mut Cx) -> Result<()> {
        self.restore(state.downcast()?, cx)
    }
}

/// A pass over a [`BoxIter`].
pub struct BoxIterator<T>(Box<dyn ErasedIterator<T>>);

impl<T> DatasetIterator for BoxIterator<T> {
    type Item = T;
    type State = AnyState;

    fn next(&mut self, cx: &mut Cx) -> Result<Option<T>> {
        self.0.erased_next(cx)
    }

    fn next_stacked(&mut self, count: usize, cx: &mut Cx) -> NextStacked<T>
    where
        T: Stack,
    {
        self.0.erased_next_stacked(count, cx)
    }

    fn next_ragged(&mut self, names: &[Name], cx: &mut Cx) -> Option<Ragged> {
        self.0.erased_next_ragged(names, cx)
    }

    fn pass_ragged(&mut self, rows: usize) {
        self.0.erased_pass_ragged(rows);
    }

    fn state(&self) -> AnyState {
        self.0.erased_state()
    }

    fn restore(&mut self, state: AnyState, cx: &mut Cx) -> Result<()> {
        self.0.erased_restore(state, cx)
    }
}

debug_as!(<T> BoxIterator<T>, |self, f| f.write_str("BoxIterator"));

/// The state of a [`BoxIterator`]: a typed state within the process, JSON after it was read from a file.
///
/// Taking a state allocates once and serialises nothing, so an executor can take a state for every batch.
#[derive(Clone)]
pub struct AnyState(Inner);

#[derive(Clone)]
enum Inner {
    Live(Arc<dyn LiveState>),
    Json(Json),
}

trait LiveState: Any + Send + Sync {
    fn to_json(&self) -> serde_json::Result<Json>;
}

impl<S: Serialize + Send + Sync + 'static> LiveState for S {
    fn to_json(&self) -> serde_json::Result<Json> {
        serde_json::to_value(self)
    }
}

impl AnyState {
    fn new<S: Serialize + Send + Sync + 'static>(state: S) -> Self {
        Self(Inner::Live(Arc::new(state)))
    }

    fn downcast<S: Clone + DeserializeOwned + 'static>(self) -> Result<S> {
        let json = match self.0 {
            Inner::Json(json) => json,
            Inner::Live(live) => {
                if let Some(state) = (&*live as &dyn Any).downcast_ref::<S>() {
                    return Ok(state.clone());
                }
                live.to_json().map_err(|e| foreign(&e))?
            }
        };
        serde_json::from_value(json).map_err(|e| foreign(&e))
    }
}

fn foreign(error: &serde_json::Error) -> Error {
    Error::state(format!("the state does not have the shape of this pipeline's state: {error}"))
}

impl Serialize for AnyState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Inner::Live(live) => live.to_json().map_err(serde::ser::Error::custom)?.serialize(serializer),
            Inner::Json(json) => json.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AnyState {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Inner::Json(Json::deserialize(deserializer)?)))
    }
}

debug_as!(AnyState, |self, f| {
    let json = match &self.0 {
        Inner::Live(live) => live.to_json().unwrap_or_default(),
        Inner::Json(json) => json.clone(),
    };
    write!(f, "AnyState({json})")
});
