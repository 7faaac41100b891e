//! Ownership of the results of user functions and sources.
//!
//! A function may return one array at each call, or a view of it, or a dict that it keeps. The next call must not
//! change an element that is still in the pipeline. So mutable parts with other references are copied before the next
//! call. Parts without other references, and read-only arrays, are not copied.

use std::collections::HashMap;

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::buffer;
use super::item::Item;

/// Trees that are nested deeper are not inspected.
const MOST_DEEP: usize = 256;

/// Returns `object`, with copies of mutable parts that have other references. The caller must hold the only
/// reference.
pub(super) fn owned(object: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let look = Look { arrays: buffer::has_arrays(object.py()) };
    if look.is_alone(&object, Some(1), 0) { Ok(object) } else { Graph::of(look, object).owned() }
}

/// Returns the items of an iterable. No item changes when the next is requested.
pub(super) fn owned_all(many: Bound<'_, PyAny>) -> PyResult<Vec<Item>> {
    let look = Look { arrays: buffer::has_arrays(many.py()) };
    // Views of one array are checked together.
    let together = match look.kind(&many) {
        Kind::List(_) | Kind::Tuple(_) => owned(many)?,
        Kind::Array(_) => {
            let rows = PyList::new(many.py(), many.try_iter()?.collect::<PyResult<Vec<_>>>()?)?;
            drop(many);
            owned(rows.into_any())?
        }
        _ => return many.try_iter()?.map(|one| Item::of_result(one?)).collect(),
    };
    together.try_iter()?.map(|one| one.map(Item::from_python)).collect()
}

/// Role of an object in the search for shared parts.
enum Kind<'a, 'py> {
    /// Immutable, or not inspected.
    Leaf,
    Array(&'a Bound<'py, PyUntypedArray>),
    Bytes,
    Dict(&'a Bound<'py, PyDict>),
    List(&'a Bound<'py, PyList>),
    Tuple(&'a Bound<'py, PyTuple>),
}

#[derive(Clone, Copy)]
struct Look {
    /// Whether NumPy is imported, so that arrays exist.
    arrays: bool,
}

impl Look {
    fn kind<'a, 'py>(self, value: &'a Bound<'py, PyAny>) -> Kind<'a, 'py> {
        if value.is_exact_instance_of::<PyString>() || value.is_exact_instance_of::<PyInt>() {
            return Kind::Leaf;
        }
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            return Kind::Dict(dict);
        }
        if self.arrays
            && let Ok(array) = value.cast_exact::<PyUntypedArray>()
        {
            return Kind::Array(array);
        }
        if let Ok(list) = value.cast::<PyList>() {
            return Kind::List(list);
        }
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return Kind::Tuple(tuple);
        }
        let plain = value.is_exact_instance_of::<PyFloat>()
            || value.is_exact_instance_of::<PyBytes>()
            || value.is_exact_instance_of::<PyBool>()
            || value.is_none();
        if plain {
            return Kind::Leaf;
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            return Kind::Dict(dict);
        }
        if value.is_instance_of::<PyByteArray>() {
            return Kind::Bytes;
        }
        match value.cast::<PyUntypedArray>() {
            Ok(array) if self.arrays => Kind::Array(array),
            _ => Kind::Leaf,
        }
    }

    /// Whether a value with `holders` known references has no part that other references may change; `holders` is
    /// `None` if its container is shared. Values whose check would need counting are reported as shared.
    fn is_alone(self, value: &Bound<'_, PyAny>, holders: Option<isize>, depth: usize) -> bool {
        let alone = || holders == Some(buffer::references(value));
        // The reference of the container, and the local reference.
        let inside = |value: Bound<'_, PyAny>, holders| self.is_alone(&value, holders, depth + 1);
        match self.kind(value) {
            Kind::Leaf => true,
            Kind::Array(array) => buffer::is_alone(array, alone()),
            Kind::Bytes => alone(),
            Kind::Dict(dict) => alone() && depth < MOST_DEEP && dict.iter().all(|(_, value)| inside(value, Some(2))),
            Kind::List(list) => alone() && depth < MOST_DEEP && list.iter().all(|value| inside(value, Some(2))),
            Kind::Tuple(tuple) => {
                let holders = alone().then_some(2);
                depth < MOST_DEEP && tuple.iter().all(|value| inside(value, holders))
            }
        }
    }
}

/// An object of a [`Graph`].
struct Node<'py> {
    /// The only local reference.
    value: Bound<'py, PyAny>,
    /// References to it from within the graph.
    inside: isize,
    /// Nodes that it refers to.
    to: Vec<usize>,
    /// Whether other objects refer to it.
    outside: bool,
    /// Object that replaces it.
    made: Option<Bound<'py, PyAny>>,
}

/// Mutable parts of a result, and the arrays that own the memory of views. As in a garbage collector, references
/// within the graph are counted. A node with more references is shared, with all nodes that it refers to.
struct Graph<'py> {
    look: Look,
    nodes: Vec<Node<'py>>,
    places: HashMap<usize, usize>,
}

impl<'py> Graph<'py> {
    fn of(look: Look, root: Bound<'py, PyAny>) -> Self {
        let mut graph = Self { look, nodes: Vec::new(), places: HashMap::new() };
        graph.add(root, 0);
        let mut at = 0;
        while at < graph.nodes.len() {
            graph.follow(at);
            at += 1;
        }
        let mut reached: Vec<usize> = (0..at).filter(|&at| graph.nodes[at].outside || graph.has_others(at)).collect();
        reached.iter().for_each(|&at| graph.nodes[at].outside = true);
        while let Some(at) = reached.pop() {
            for to in graph.nodes[at].to.clone() {
                if !std::mem::replace(&mut graph.nodes[to].outside, true) {
                    reached.push(to);
                }
            }
        }
        graph
    }

    fn has_others(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        buffer::references(&node.value) != node.inside + 1
    }

    fn add(&mut self, value: Bound<'py, PyAny>, inside: isize) -> usize {
        let next = self.nodes.len();
        let at = *self.places.entry(value.as_ptr() as usize).or_insert(next);
        if at == next {
            self.nodes.push(Node { value, inside: 0, to: Vec::new(), outside: false, made: None });
        }
        self.nodes[at].inside += inside;
        at
    }

    /// Adds the references of a node.
    fn follow(&mut self, at: usize) {
        let value = self.nodes[at].value.clone();
        let mut values: Vec<_> = match self.look.kind(&value) {
            Kind::Leaf | Kind::Bytes => return,
            Kind::Array(array) => {
                let Some(base) = buffer::base_of(array) else { return };
                let known = matches!(self.look.kind(&base), Kind::Array(_) | Kind::Bytes) || buffer::is_memory(&base);
                let base = self.add(base, 1);
                // A memory map may have unknown users.
                self.nodes[base].outside |= !known;
                self.nodes[at].to.push(base);
                return;
            }
            Kind::Dict(dict) => dict.iter().map(|(_, value)| value).collect(),
            Kind::List(list) => list.iter().collect(),
            Kind::Tuple(tuple) => tuple.iter().collect(),
        };
        values.retain(|value| !matches!(self.look.kind(value), Kind::Leaf));
        for value in values {
            let to = self.add(value, 1);
            self.nodes[at].to.push(to);
        }
    }

    fn owned(mut self) -> PyResult<Bound<'py, PyAny>> {
        self.made(0, 0)
    }

    /// Whether other references may write to the memory of an array.
    fn is_written(&self, mut at: usize) -> bool {
        let (mut writable, mut outside) = (false, false);
        loop {
            let node = &self.nodes[at];
            outside |= node.outside;
            if let Kind::Array(array) = self.look.kind(&node.value) {
                writable |= buffer::is_writable(array);
            }
            match node.to.first() {
                Some(&base) if matches!(self.look.kind(&node.value), Kind::Array(_)) => at = base,
                _ => return writable && outside,
            }
        }
    }

    /// Makes the replacement of a node.
    fn made(&mut self, at: usize, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        if let Some(made) = &self.nodes[at].made {
            return Ok(made.clone());
        }
        let (value, outside) = (self.nodes[at].value.clone(), self.nodes[at].outside);
        if depth > MOST_DEEP {
            return Ok(value);
        }
        let made = match self.look.kind(&value) {
            Kind::Array(array) if self.is_written(at) => buffer::copy_of(array)?,
            Kind::Bytes if outside => copied(&value)?,
            Kind::Leaf | Kind::Array(_) | Kind::Bytes => value.clone(),
            Kind::Dict(_) | Kind::List(_) => {
                let to = if outside { copied(&value)? } else { value.clone() };
                // The node may contain itself.
                self.nodes[at].made = Some(to.clone());
                self.fill(&to, depth)?;
                to
            }
            Kind::Tuple(tuple) => {
                let mut same = true;
                let mut items = Vec::with_capacity(tuple.len());
                for item in tuple.iter() {
                    let made = self.in_place_of(&item, depth)?;
                    same &= made.is(&item);
                    items.push(made);
                }
                if same { value.clone() } else { tuple_of(&value, items)? }
            }
        };
        self.nodes[at].made = Some(made.clone());
        Ok(made)
    }

    /// Fills a dict or list with the replacements of its values.
    fn fill(&mut self, to: &Bound<'py, PyAny>, depth: usize) -> PyResult<()> {
        match self.look.kind(to) {
            Kind::Dict(dict) => {
                for (key, value) in dict.iter().collect::<Vec<_>>() {
                    let made = self.in_place_of(&value, depth)?;
                    if !made.is(&value) {
                        dict.set_item(key, made)?;
                    }
                }
            }
            Kind::List(list) => {
                for (place, value) in list.iter().collect::<Vec<_>>().into_iter().enumerate() {
                    let made = self.in_place_of(&value, depth)?;
                    if !made.is(&value) {
                        list.set_item(place, made)?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn in_place_of(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<Bound<'py, PyAny>> {
        match self.places.get(&(value.as_ptr() as usize)) {
            Some(&at) => self.made(at, depth + 1),
            None => Ok(value.clone()),
        }
    }
}

/// A shallow copy, of the same type.
fn copied<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    value.py().import("copy")?.call_method1("copy", (value,))
}

/// Makes a tuple with the type of `like`, also if that is a named tuple.
fn tuple_of<'py>(like: &Bound<'py, PyAny>, items: Vec<Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
    let tuple = PyTuple::new(like.py(), items)?.into_any();
    if like.is_exact_instance_of::<PyTuple>() {
        return Ok(tuple);
    }
    if let Some(make) = like.get_type().getattr_opt("_make")? { make.call1((tuple,)) } else { Ok(like.clone()) }
}
