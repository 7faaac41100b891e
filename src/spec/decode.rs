//! From the tree to typed arguments, with errors that say where and what was probably meant.

use std::cell::{Cell, RefCell};

use super::node::{Field, Node, Tree, at, join};
use crate::error::{Error, Result};

/// A type that an argument can have.
pub(crate) trait Decode: Sized {
    /// Reads it.
    fn decode(node: &Node) -> Result<Self>;
}

fn wrong(node: &Node, want: &str) -> Error {
    let error = node.error(format!("needs {want}, got {}", node.kind()));
    match &node.value {
        Tree::Str(text) if want == "true or false" && matches!(text.as_str(), "yes" | "on" | "no" | "off") => {
            error.help("in YAML 1.2 yes, no, on and off are text: write true or false")
        }
        Tree::Str(text) if want.contains("number") && text.contains('_') => {
            error.help("YAML and JSON numbers are written without underscores")
        }
        Tree::Str(text) if want.contains("number") && text.parse::<f64>().is_ok() => error.help("remove the quotes"),
        _ => error,
    }
}

impl Decode for bool {
    fn decode(node: &Node) -> Result<Self> {
        match node.value {
            Tree::Bool(value) => Ok(value),
            _ => Err(wrong(node, "true or false")),
        }
    }
}

impl Decode for String {
    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Tree::Str(text) => Ok(text.clone()),
            _ => Err(wrong(node, "text")),
        }
    }
}

impl Decode for f64 {
    fn decode(node: &Node) -> Result<Self> {
        match node.value {
            Tree::Float(number) if number.is_finite() => Ok(number),
            Tree::Int(number) => Ok(number as Self),
            _ => Err(wrong(node, "a number")),
        }
    }
}

macro_rules! decode_integer {
    ($($type:ty),*) => {
        $(impl Decode for $type {
            fn decode(node: &Node) -> Result<Self> {
                let Tree::Int(number) = node.value else { return Err(wrong(node, "a whole number")) };
                Self::try_from(number)
                    .map_err(|_| node.error(format!("{number} is outside {} to {}", <$type>::MIN, <$type>::MAX)))
            }
        })*
    };
}
decode_integer!(u32, u64, usize, i32, i64);

/// A list; a single value stands for a list of one.
impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node) -> Result<Self> {
        match &node.value {
            Tree::List(items) => items.iter().map(T::decode).collect(),
            Tree::Map(_) | Tree::Null => Err(wrong(node, "a list")),
            _ => Ok(vec![T::decode(node)?]),
        }
    }
}

impl Decode for Node {
    fn decode(node: &Node) -> Result<Self> {
        Ok(node.clone())
    }
}

/// The arguments of one stage or section. Every name that is asked for is a valid one; [`finish`](Self::finish) refuses the rest.
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
        Self::with_short(node, None)
    }

    /// The same, where a value that is no mapping stands for the argument `main`.
    pub(crate) fn with_short(node: &'a Node, main: Option<&'static str>) -> Result<Self> {
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

    /// An argument that may be left out.
    pub(crate) fn optional<T: Decode>(&self, name: &'static str) -> Result<Option<T>> {
        self.node(name).map(T::decode).transpose()
    }

    /// An argument with a default.
    pub(crate) fn or<T: Decode>(&self, name: &'static str, default: T) -> Result<T> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    /// An argument that must be there.
    pub(crate) fn required<T: Decode>(&self, name: &'static str) -> Result<T> {
        T::decode(self.required_node(name)?)
    }

    /// The value of an argument that must be there.
    pub(crate) fn required_node(&self, name: &'static str) -> Result<&'a Node> {
        let Some(node) = self.node(name) else {
            // A key nearly of that name is more likely a slip than a key left out.
            let slip = self.fields.iter().find(|f| !self.is_asked(&f.key) && nearest(&f.key, [name]).is_some());
            return Err(match slip {
                Some(field) => self.unknown(field),
                None => at(&self.path, self.line, format!("needs `{name}`")),
            });
        };
        Ok(node)
    }

    /// One of a few words, by its place in `choices`.
    pub(crate) fn choice(&self, name: &'static str, choices: &[&'static str]) -> Result<Option<usize>> {
        let Some(node) = self.node(name) else { return Ok(None) };
        let word = String::decode(node)?;
        match choices.iter().position(|c| *c == word) {
            Some(at) => Ok(Some(at)),
            None => {
                let error = node.error(format!("`{word}` is none of {}", choices.join(", ")));
                Err(suggest(error, &word, choices.iter().copied()))
            }
        }
    }

    /// Refuses a number below `limit`.
    pub(crate) fn at_least(&self, name: &'static str, limit: u64) -> Result<Option<u64>> {
        let Some(node) = self.node(name) else { return Ok(None) };
        let number = u64::decode(node)?;
        if number < limit {
            return Err(node.error(format!("is {number}, and must be at least {limit}")));
        }
        Ok(Some(number))
    }

    /// The whole mapping, where the keys are names that the user chooses.
    pub(crate) fn free_entries(&self) -> &'a [Field] {
        self.free.set(true);
        self.fields
    }

    /// An error about the whole of it.
    #[cold]
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> Error {
        at(&self.path, self.line, message)
    }

    /// Refuses every key that nobody asked for.
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
                Err(error.help("arguments are indented below the name, or stand in braces: `- batch: {batch_size: 8}`"))
            }
            [] => Err(node.error("a name is needed here, and the mapping is empty")),
        },
        _ => Err(wrong(node, "a name with its arguments")),
    }
}

/// Adds the nearest valid name, or all of them.
pub(crate) fn suggest(error: Error, got: &str, valid: impl IntoIterator<Item = &'static str>) -> Error {
    let valid: Vec<_> = valid.into_iter().collect();
    match (nearest(got, valid.iter().copied()), valid.is_empty()) {
        (Some(name), _) => error.help(format!("did you mean `{name}`?")),
        (None, false) => error.help(format!("valid here: {}", valid.join(", "))),
        (None, true) => error,
    }
}

/// The name that `got` is probably a slip of.
pub(crate) fn nearest<'n>(got: &str, valid: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |s: &str| s.to_lowercase().replace(['-', ' '], "_");
    let got = plain(got);
    let near = |name: &str| {
        let name = plain(name);
        let slips = strsim::osa_distance(&got, &name);
        let score = strsim::jaro_winkler(&got, &name);
        // Swapped letters make short words look far apart to the one measure, a missing suffix long ones to the other.
        (score > 0.8 || (got.len() >= 3 && slips <= 1 + got.len() / 5)).then_some(score - slips as f64)
    };
    let candidates = valid.into_iter().filter_map(|name| Some((near(name)?, name)));
    Some(candidates.max_by(|a, b| a.0.total_cmp(&b.0))?.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::yaml;

    fn node(text: &str) -> Node {
        let mut node = yaml::parse(text).unwrap();
        node.set_paths(String::new());
        node
    }

    fn text(error: &Error) -> String {
        format!("{error} | {}", error.help_text().unwrap_or("-"))
    }

    fn batch(yaml: &str) -> Result<(u64, Option<bool>)> {
        let node = node(yaml);
        let fields = Fields::with_short(&node, Some("batch_size"))?;
        let result = (fields.required("batch_size")?, fields.optional("keep")?);
        fields.finish()?;
        Ok(result)
    }

    #[test]
    fn arguments_decode() {
        assert_eq!(batch("{batch_size: 3, keep: true}").unwrap(), (3, Some(true)));
        assert_eq!(batch("4").unwrap(), (4, None));
    }

    #[test]
    fn slips_are_named_with_the_nearest_name() {
        let error = |yaml| text(&batch(yaml).unwrap_err());
        assert_eq!(error("batch_size: 3\nkep: true"), "line 2: unknown key `kep` | did you mean `keep`?");
        assert_eq!(error("batchsize: 3"), "line 1: unknown key `batchsize` | did you mean `batch_size`?");
        assert_eq!(error("batch_size: 1\nzzz: 3"), "line 2: unknown key `zzz` | valid here: batch_size, keep");
        assert_eq!(error("{}"), "line 1: needs `batch_size` | -");
        assert_eq!(error("batch_size: -1"), "line 1: batch_size: -1 is outside 0 to 18446744073709551615 | -");
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
