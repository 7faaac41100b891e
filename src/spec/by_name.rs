//! Sources and stages named by a program instead of a file, with the same arguments, defaults and errors.

use std::path::PathBuf;

#[cfg(feature = "python")]
use super::chain::Border;
use super::chain::{Chain, Context};
use super::node::{Field, Node, Tree};
use super::registry;
use crate::dataset::iter::BadRecords;
use crate::error::Result;

/// The source `name` with its context. Shards that cannot be opened are left out if `bad` is to skip.
pub(crate) fn source(name: &str, arguments: Tree, bad: BadRecords) -> Result<(Chain, Context)> {
    let mut context = Context::new(PathBuf::new());
    context.bad = bad;
    let chain = registry::source(&call(name, arguments), &mut context)?;
    Ok((chain, context))
}

/// Appends the stage `name` to `chain`. A dataset of random access stays a dataset of random access if the stage exists in both worlds.
#[cfg(any(feature = "cli", feature = "python"))]
pub(crate) fn stage(chain: Chain, name: &str, arguments: Tree, context: &Context) -> Result<(Chain, Context)> {
    let mut context = context.clone();
    let chain = registry::stage(chain, &call(name, arguments), true, &mut context)?;
    Ok((chain, context))
}

/// Reads the arguments of `to_iter`.
#[cfg(feature = "python")]
pub(crate) fn border(arguments: Tree) -> Result<Border> {
    registry::border(&argument("to_iter", arguments))
}

/// Returns the argument of the source or stage `name` that takes a bare value.
pub(crate) fn main_argument(name: &str) -> Option<&'static str> {
    registry::main_argument(name)
}

/// `{name: arguments}`, as a file would have it.
fn call(name: &str, arguments: Tree) -> Node {
    let field = Field { key: name.to_owned(), line: 0, value: argument(name, arguments) };
    Node::new(Tree::Map(vec![field]), 0, 0)
}

fn argument(name: &str, arguments: Tree) -> Node {
    let mut node = Node::new(arguments, 0, 0);
    node.set_paths(name.to_owned());
    node
}
