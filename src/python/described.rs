//! Methods of sources and stages that are described beside their decoders: signature, docstring and call follow from the description.

use std::ffi::{CStr, CString};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple, PyType};
use pyo3::{IntoPyObjectExt, PyClass};

use super::dataset::Dataset;
use super::iter_dataset::PyIterDataset;
use super::map_dataset::PyMapDataset;
use super::with_options;
use crate::spec::arguments::{About, Arg, Kind};
use crate::spec::entry::SourceEntry;
use crate::spec::registry::{source_entries, stages};

/// Largest number of characters in a line of a docstring.
const WIDTH: usize = 100;
/// Errors of a source of files, and of every source and stage.
const RAISES: [&str; 3] = [
    "ConfigError: An argument is invalid, or a column does not exist.",
    "IoError: A file cannot be opened or read.",
    "DataError: A record is damaged. The error is raised when the record is read.",
];

/// Calls the method of a name.
type Call = fn(&'static str, &Bound<'_, PyTuple>, Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>>;

/// Adds the described methods that no `#[pymethods]` has, and `_docs`: the docstrings of stages by name.
pub(super) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let (maps, streams, docs) = (py.get_type::<PyMapDataset>(), py.get_type::<PyIterDataset>(), PyDict::new(py));
    for entry in source_entries().filter(|entry| reads_files(entry)) {
        // Compressed files are streams, whose lanes are an argument.
        let all = entry.about.all();
        let (lanes, others): (Vec<_>, Vec<_>) = all.iter().copied().partition(|arg| arg.name == "lanes");
        let source = |args: &[&'static Arg]| Method::new(entry.name, entry.doc, entry.about, args, &RAISES);
        source(&others).add(&maps, false, |name, args, kwargs| {
            PyMapDataset::source_named(name, args, kwargs)?.into_py_any(args.py())
        })?;
        if !lanes.is_empty() || entry.lacks().is_some() {
            source(&all).add(&streams, false, |name, args, kwargs| {
                PyIterDataset::source_named(name, args, kwargs)?.into_py_any(args.py())
            })?;
        }
    }
    for entry in stages() {
        let method = Method::new(entry.name, entry.doc, entry.about, &entry.about.all(), &RAISES[..1]);
        docs.set_item(entry.name, &method.docs)?;
        // Streams have a method of their own if the stage makes a stream of random access.
        let is_both = entry.chain.is_some() && !streams.hasattr(entry.name)?;
        if entry.map.is_some() || is_both {
            method.add(&maps, true, |name, args, kwargs| {
                let (dataset, args) = receiver::<PyMapDataset>(name, args)?;
                dataset.get().native(name, &args, kwargs)?.into_py_any(args.py())
            })?;
        }
        if entry.iter.is_some() || is_both {
            method.add(&streams, true, |name, args, kwargs| {
                let (dataset, args) = receiver::<PyIterDataset>(name, args)?;
                dataset.get().native(name, &args, kwargs)?.into_py_any(args.py())
            })?;
        }
    }
    with_options::add_to(module, [&maps, &streams])?;
    module.add("_docs", docs)
}

/// Returns true for a source of files, whose shards may be left out or not, and for a source that this build lacks.
fn reads_files(entry: &SourceEntry) -> bool {
    let has_paths = || entry.about.main_arg().is_some_and(|arg| matches!(arg.kind, Kind::List(Kind::Path)));
    entry.about.outer.is_some() || entry.lacks().is_some() || has_paths()
}

/// Returns the dataset whose method is called, and the other arguments.
fn receiver<'py, T: PyClass>(name: &str, args: &Bound<'py, PyTuple>) -> PyResult<(Bound<'py, T>, Bound<'py, PyTuple>)> {
    let dataset = args.iter().next().and_then(|first| first.cast_into::<T>().ok());
    let dataset = dataset.ok_or_else(|| PyTypeError::new_err(format!("{name}() is a method of a dataset")))?;
    Ok((dataset, args.get_slice(1, args.len())))
}

/// The description of a method in Python's terms.
struct Method {
    name: &'static str,
    /// Parameters as Python parses them, without `self`.
    parameters: String,
    docs: String,
}

impl Method {
    fn new(name: &'static str, doc: &str, about: &About, args: &[&'static Arg], raises: &[&str]) -> Self {
        Self { name, parameters: parameters(about, args), docs: docs(doc, about, args, raises) }
    }

    /// Sets the method on `class`, unless the class has a method of this name.
    fn add(&self, class: &Bound<'_, PyType>, has_self: bool, call: Call) -> PyResult<()> {
        if class.hasattr(self.name)? {
            return Ok(());
        }
        let (py, name) = (class.py(), self.name);
        let own = if has_self { "self, " } else { "" };
        let text = format!("{name}({own}{})\n--\n\n{}", self.parameters, self.docs);
        let function = PyCFunction::new_closure(py, Some(kept(name)?), Some(kept(&text)?), move |args, kwargs| {
            call(name, args, kwargs)
        })?;
        if has_self {
            return class.setattr(name, function);
        }
        class.setattr(name, py.import("builtins")?.getattr("staticmethod")?.call1((function,))?)
    }
}

/// Returns text that lives as long as the process, as the classes do.
pub(super) fn kept(text: &str) -> PyResult<&'static CStr> {
    Ok(Box::leak(CString::new(text)?.into_boxed_c_str()))
}

/// Returns the parameters of a signature. The main argument alone may be given without its name.
fn parameters(about: &About, args: &[&Arg]) -> String {
    if about.free.is_some() {
        return "names=None, /, **more".to_owned();
    }
    let one = |arg: &&Arg| match arg.default {
        Some(default) => format!("{}={}", arg.name, literal(default)),
        None if arg.is_optional => format!("{}=None", arg.name),
        None => arg.name.to_owned(),
    };
    let (main, others): (Vec<_>, Vec<_>) = args.iter().partition(|arg| Some(arg.name) == about.main);
    let star = (!others.is_empty()).then(|| "*".to_owned());
    let all: Vec<_> = main.into_iter().map(one).chain(star).chain(others.into_iter().map(one)).collect();
    all.join(", ")
}

/// Returns a docstring. Of the paragraphs of `doc` those that begin with the name of an error describe errors.
fn docs(doc: &str, about: &About, args: &[&Arg], raises: &[&str]) -> String {
    let mut text = String::new();
    let (errors, paragraphs): (Vec<_>, Vec<_>) = doc.split("\n\n").partition(|part| is_error(part));
    for (i, paragraph) in paragraphs.iter().enumerate() {
        text += if i == 0 { "" } else { "\n" };
        fill(&mut text, "", "", &in_python(paragraph, &[]));
    }
    if let Some(kind) = &about.free {
        let kind = annotation(kind);
        text += "\nArgs:\n";
        let names = format!("names (Mapping[str, {kind}] | None):");
        fill(&mut text, "    ", &names, "Entries whose names cannot be keywords.");
        fill(&mut text, "    ", &format!("more ({kind}):"), "Entries by name.");
    } else if !args.is_empty() {
        text += "\nArgs:\n";
    }
    for arg in args {
        let none = if arg.is_optional { " | None" } else { "" };
        let mut doc = in_python(&arg.doc(), &words(&arg.kind));
        if matches!(arg.kind, Kind::Memory) {
            doc += " In bytes, or as text such as `\"512MiB\"`.";
        }
        fill(&mut text, "    ", &format!("{} ({}{none}):", arg.name, annotation(&arg.kind)), &doc);
    }
    if !args.is_empty() || about.free.is_some() || !errors.is_empty() {
        text += "\nRaises:\n";
    }
    for error in
        raises.iter().filter(|error| !errors.iter().any(|own| own.split(':').next() == error.split(':').next()))
    {
        fill(&mut text, "    ", "", error);
    }
    for error in errors {
        fill(&mut text, "    ", "", &in_python(error, &[]));
    }
    text.trim_end().to_owned()
}

/// Whether a paragraph describes an error: `DataError: …`.
fn is_error(paragraph: &str) -> bool {
    paragraph.split_once("Error: ").is_some_and(|(name, _)| name.chars().all(char::is_alphabetic))
}

/// Appends `head` and the words of `text` in lines of [`WIDTH`]. Lines after the first are indented further if there is an `indent`.
pub(super) fn fill(to: &mut String, indent: &str, head: &str, text: &str) {
    *to += indent;
    *to += head;
    let mut width = indent.len() + head.len();
    for (i, word) in text.split_whitespace().enumerate() {
        let len = word.chars().count();
        if width + 1 + len > WIDTH {
            *to += "\n";
            *to += indent;
            *to += indent;
            width = 2 * indent.len();
        } else if i > 0 || !head.is_empty() {
            *to += " ";
            width += 1;
        }
        *to += word;
        width += len;
    }
    *to += "\n";
}

/// Returns the type of an argument as an annotation.
pub(super) fn annotation(kind: &Kind) -> String {
    any_of([kind])
}

fn any_of<'a>(kinds: impl IntoIterator<Item = &'a Kind>) -> String {
    let mut all = Vec::new();
    kinds.into_iter().for_each(|kind| add_types(kind, &mut all));
    let mut names: Vec<String> = Vec::new();
    for name in all {
        if name == "Any" {
            return name;
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" | ")
}

/// Adds the alternatives of a kind.
fn add_types(kind: &Kind, to: &mut Vec<String>) {
    let plain: &[&str] = match kind {
        Kind::Any | Kind::Source | Kind::Stages | Kind::Part => &["Any"],
        Kind::Bool => &["bool"],
        Kind::Integer { .. } => &["int"],
        Kind::Number | Kind::Seconds => &["float"],
        Kind::Text | Kind::Byte | Kind::Share => &["str"],
        Kind::Memory => &["int", "str"],
        Kind::Path => &["str", "PathLike[str]"],
        Kind::Tokenizer => &["str", "PathLike[str]", "_Tokenizer"],
        Kind::Words(words) => return to.push(format!("Literal[\"{}\"]", words.join("\", \""))),
        Kind::Map(item) => return to.push(format!("Mapping[str, {}]", annotation(item))),
        Kind::Either(kinds) => return kinds.iter().for_each(|kind| add_types(kind, to)),
        Kind::List(item) => {
            add_types(item, to);
            return to.push(format!("Sequence[{}]", annotation(item)));
        }
        Kind::Section(about) => {
            about.main_arg().iter().for_each(|main| add_types(&main.kind, to));
            let values = any_of(about.all().iter().map(|arg| &arg.kind));
            return to.push(format!("Mapping[str, {values}]"));
        }
    };
    to.extend(plain.iter().map(|&name| name.to_owned()));
}

/// Returns the words that a value may be.
pub(super) fn words(kind: &Kind) -> Vec<&'static str> {
    match kind {
        Kind::Words(words) => words.to_vec(),
        Kind::Either(kinds) => kinds.iter().flat_map(words).collect(),
        _ => Vec::new(),
    }
}

/// Returns a description whose code is Python, not YAML: `"drop"`, `{"tokens": 1024}`, `remainder="pad"`.
pub(super) fn in_python(text: &str, words: &[&str]) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for (i, part) in text.split('`').enumerate() {
        if i > 0 {
            out.push('`');
        }
        match part.split_once(": ").filter(|_| !part.starts_with('{')) {
            _ if i % 2 == 0 => out += part,
            Some((name, value)) if name.chars().all(is_of_name) => {
                out += name;
                out.push('=');
                out += &literal(value);
            }
            _ if words.contains(&part) || part.starts_with('{') || matches!(part, "true" | "false" | "null") => {
                out += &literal(part);
            }
            _ => out += part,
        }
    }
    out
}

/// Returns a value of YAML as Python writes it. Bare words become text.
pub(super) fn literal(yaml: &str) -> String {
    let mut out = String::with_capacity(yaml.len() + 8);
    let mut rest = yaml;
    while let Some(first) = rest.chars().next() {
        let len = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            _ if is_of_name(first) => rest.find(|c| !is_of_name(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (word, after) = rest.split_at(len);
        match word {
            "true" => out += "True",
            "false" => out += "False",
            "null" => out += "None",
            _ if is_of_name(first) && (first.is_alphabetic() || word.parse::<f64>().is_err()) => {
                out.extend(["\"", word, "\""]);
            }
            _ => out += word,
        }
        rest = after;
    }
    out
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
