//! From the tree to the arguments of a stage. Errors have a place and the nearest valid name.

use std::cell::{Cell, RefCell};

use super::arguments::About;
use super::node::{Field, Node, Tree, at, join};
use super::suggest::{nearest, suggest};
use super::values::{Decode, wrong};
use crate::error::{Error, Result};

/// The arguments of a stage or section. Each name that a decoder reads is valid; [`finish`](Self::finish) refuses all others.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    path: String,
    line: usize,
    fields: &'a [Field],
    /// Given without a mapping: `limit: 100`.
    short: Option<&'a Node>,
    asked: RefCell<Vec<&'static str>>,
    /// Whether the keys are the user's own names.
    free: Cell<bool>,
}

impl<'a> Fields<'a> {
    /// The arguments in `node`: a mapping, or nothing.
    pub(crate) fn new(node: &'a Node) -> Result<Self> {
        Self::of(node, &About::NONE)
    }

    /// Returns the arguments in `node`. A value that is no mapping is the main argument of `about`.
    pub(crate) fn of(node: &'a Node, about: &About) -> Result<Self> {
        let main = about.main;
        let (fields, short) = match (&node.value, main) {
            (Tree::Map(fields), _) => (fields.as_slice(), None),
            (Tree::Null, _) => (&[][..], None),
            (_, Some(_)) => (&[][..], Some(node)),
            _ => return Err(wrong(node, "a mapping of arguments")),
        };
        let asked = RefCell::new(Vec::from_iter(main));
        Ok(Self { path: node.path.clone(), line: node.line, fields, short, asked, free: Cell::new(false) })
    }

    fn find(&self, name: &'static str) -> Option<&'a Node> {
        let mut asked = self.asked.borrow_mut();
        let main = asked.first() == Some(&name);
        if !asked.contains(&name) {
            asked.push(name);
        }
        let field = self.fields.iter().find(|f| f.key == name).map(|f| &f.value);
        field.or(self.short.filter(|_| main))
    }

    /// The value of `name`, if it is given.
    pub(crate) fn node(&self, name: &'static str) -> Option<&'a Node> {
        self.find(name).filter(|node| node.value != Tree::Null)
    }

    /// Reads an argument of type `T`, by default `default` in the syntax of a file.
    pub(crate) fn get<T: Decode>(&self, name: &'static str, default: Option<&str>) -> Result<T> {
        let left_out;
        let node = if let Some(node) = self.node(name) {
            node
        } else {
            left_out = self.left_out(name, default, T::IS_OPTIONAL)?;
            &left_out
        };
        T::decode(node)
    }

    /// Makes the value of an argument that is left out.
    fn left_out(&self, name: &'static str, default: Option<&str>, is_optional: bool) -> Result<Node> {
        match default {
            Some(default) => Ok(Node::new(literal(default), 0, 0)),
            None if is_optional => Ok(Node::new(Tree::Null, 0, 0)),
            None => Err(self.missing(name)),
        }
    }

    /// The error of an argument that must be there.
    #[cold]
    pub(crate) fn missing(&self, name: &'static str) -> Error {
        // A key with a similar name is more likely a slip than a missing key.
        let slip = self.fields.iter().find(|f| !self.is_asked(&f.key) && nearest(&f.key, [name]).is_some());
        if let Some(field) = slip { self.unknown(field) } else { at(&self.path, self.line, format!("needs `{name}`")) }
    }

    /// Returns the whole mapping, whose keys are names of the user's choice.
    pub(crate) fn free_entries(&self) -> &'a [Field] {
        self.free.set(true);
        self.fields
    }

    /// An error about the whole of it.
    #[cold]
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> Error {
        at(&self.path, self.line, message)
    }

    /// The names that were asked for.
    #[cfg(test)]
    pub(crate) fn asked(&self) -> Vec<&'static str> {
        self.asked.borrow().clone()
    }

    /// Refuses every key that no decoder has read.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.fields.iter().find(|f| !self.is_asked(&f.key)) {
            Some(field) if !self.free.get() => Err(self.unknown(field)),
            _ => Ok(()),
        }
    }

    fn is_asked(&self, key: &str) -> bool {
        self.asked.borrow().contains(&key)
    }

    fn unknown(&self, field: &Field) -> Error {
        let asked = self.asked.borrow();
        let error = at(&self.path, field.line, format!("unknown key `{}`", field.key));
        suggest(error, &field.key, asked.iter().copied())
    }
}

/// Returns the value of a literal: a word in quotes, a truth value or a number.
fn literal(text: &str) -> Tree {
    match text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
        Some(text) => Tree::Str(text.to_owned()),
        None => (text.parse().map(Tree::Bool))
            .or_else(|_| text.parse().map(Tree::Int))
            .unwrap_or_else(|_| text.parse().map_or(Tree::Null, Tree::Float)),
    }
}

/// A choice between named variants: a mapping of exactly one key, or just the name.
pub(crate) fn variant(node: &Node) -> Result<(String, usize, Node)> {
    match &node.value {
        Tree::Str(name) => {
            let empty = Node { value: Tree::Null, path: join(&node.path, name), ..node.clone() };
            Ok((name.clone(), node.line, empty))
        }
        Tree::Map(fields) => match fields.as_slice() {
            [one] => Ok((one.key.clone(), one.line, one.value.clone())),
            [_, second, ..] => {
                let error =
                    at(&node.path, second.line, format!("one name is needed here, and `{}` is a second", second.key));
                Err(error
                    .help("indent the arguments below the name, or put them in braces: `- batch: {batch_size: 8}`"))
            }
            [] => Err(node.error("a name is needed here, and the mapping is empty")),
        },
        _ => Err(wrong(node, "a name with its arguments")),
    }
}

#[cfg(all(test, feature = "spec"))]
mod tests {
    use super::*;
    use crate::declare::arguments::{Arguments, arguments};
    use crate::declare::values::Amount;
    use crate::spec::yaml;

    fn node(text: &str) -> Node {
        let mut node = yaml::parse(text).unwrap();
        node.set_paths(String::new());
        node
    }

    fn text(error: &Error) -> String {
        format!("{error} | {}", error.help_text().unwrap_or("-"))
    }

    arguments! {
        struct BatchArgs(batch_size) {
            /// Elements in a batch.
            batch_size: u64,
            /// Whether it stays.
            keep: Option<bool>,
        }
    }

    fn batch(yaml: &str) -> Result<(u64, Option<bool>)> {
        let node = node(yaml);
        let fields = Fields::of(&node, &BatchArgs::ABOUT)?;
        let BatchArgs { batch_size, keep } = BatchArgs::read(&fields)?;
        fields.finish()?;
        Ok((batch_size, keep))
    }

    #[test]
    fn arguments_decode() {
        assert_eq!(batch("{batch_size: 3, keep: true}").unwrap(), (3, Some(true)));
        assert_eq!(batch("4").unwrap(), (4, None));
    }

    #[test]
    fn amounts_of_memory_are_bytes_or_text() {
        let bytes = |yaml: &str| {
            let node = node(yaml);
            let amount: Option<Amount> = Fields::new(&node)?.get("cache_bytes", None)?;
            Ok::<_, Error>(amount.map(u64::from))
        };
        assert_eq!(bytes("{}").unwrap(), None);
        assert_eq!(bytes("cache_bytes: 20").unwrap(), Some(20));
        assert_eq!(bytes("cache_bytes: 20MiB").unwrap(), Some(20 << 20));
        let refused = |yaml| text(&bytes(yaml).unwrap_err());
        assert_eq!(
            refused("cache_bytes: much"),
            "line 1: cache_bytes: `much` is no amount of memory | such as 512MiB or 2GiB"
        );
        assert_eq!(refused("cache_bytes: true"), "line 1: cache_bytes: needs a whole number, got true | -");
    }

    #[test]
    fn slips_are_named_with_the_nearest_name() {
        let error = |yaml| text(&batch(yaml).unwrap_err());
        assert_eq!(error("batch_size: 3\nkep: true"), "line 2: unknown key `kep` | did you mean `keep`?");
        assert_eq!(error("batchsize: 3"), "line 1: unknown key `batchsize` | did you mean `batch_size`?");
        assert_eq!(error("batch_size: 1\nzzz: 3"), "line 2: unknown key `zzz` | valid here: batch_size, keep");
        assert_eq!(error("{}"), "line 1: needs `batch_size` | -");
        assert_eq!(error("batch_size: -1"), "line 1: batch_size: -1 is less than 0 | -");
        assert_eq!(
            error("batch_size: '8'"),
            "line 1: batch_size: needs a whole number, got the text \"8\" | remove the quotes"
        );
        assert!(error("{batch_size: 1, keep: yes}").contains("YAML 1.2"));
    }

    #[test]
    fn a_variant_is_one_name() {
        let (name, line, args) = variant(&node("batch: {n: 1}")).unwrap();
        assert_eq!((name.as_str(), line, args.path.as_str()), ("batch", 1, "batch"));
        assert_eq!(variant(&node("to_iter")).unwrap().0, "to_iter");
        let error = variant(&node("batch:\nbatch_size: 1")).unwrap_err();
        assert!(text(&error).starts_with("line 2: one name is needed here, and `batch_size` is a second"));
    }
}
