//! Changes of single parameters of a parsed file, for sweeps over settings.

use super::node::{Field, Node, Tree};
use super::registry::main_argument;
use super::suggest::nearest;
use super::yaml;
use crate::error::{Error, Result};

/// A parameter and its new value, as text.
pub(super) type Change = (String, String);

/// Makes `change` in the tree.
///
/// The key is a path (`stages[1].tokenise.max_len`, `executor.buffer`), a stage and its parameter (`tokenise.max_len`), or a
/// parameter alone, which is that of the last stage that has it, else of the source. The value is YAML.
pub(super) fn apply(root: &mut Node, (key, value): &Change) -> Result<()> {
    let value = yaml::parse(value)
        .map_err(|e| Error::config(format!("`{value}` is no value for `{key}`: {}", e.message())))?
        .value;
    let head = key.split(['.', '[']).next().unwrap_or_default();
    if key != head && root.field(head).is_some() || head == "executor" {
        return set_path(root, key, value);
    }
    if let Some((stage, parameter)) = key.split_once('.') {
        if let Some((name, arguments)) = arguments(root).into_iter().rev().find(|(name, _)| name == stage) {
            set_argument(arguments, main_argument(&name), parameter, value);
            return Ok(());
        }
        Err(unknown(root, key))
    } else {
        set_bare(root, key, value)
    }
}

fn set_bare(root: &mut Node, key: &str, value: Tree) -> Result<()> {
    let has = |(name, arguments): &(String, &mut Node)| match &arguments.value {
        Tree::Map(fields) => fields.iter().any(|field| field.key == key),
        Tree::Null => false,
        _ => main_argument(name) == Some(key),
    };
    if let Some((name, arguments)) = arguments(root).into_iter().rev().find(has) {
        set_argument(arguments, main_argument(&name), key, value);
        return Ok(());
    }
    // `batch` for `batch_size` of `batch`: the main argument.
    let named = arguments(root).into_iter().rev().find(|(name, _)| name == key);
    if let Some((name, arguments)) = named
        && let Some(main) = main_argument(&name)
    {
        set_argument(arguments, Some(main), main, value);
        return Ok(());
    }
    Err(unknown(root, key))
}

/// The source and the stages with their arguments, in order.
fn arguments(root: &mut Node) -> Vec<(String, &mut Node)> {
    let Tree::Map(fields) = &mut root.value else { return Vec::new() };
    let mut found: Vec<(bool, &mut Node)> = Vec::new();
    for field in fields {
        match (field.key.as_str(), &mut field.value) {
            ("source", node) => found.push((false, node)),
            ("stages", Node { value: Tree::List(stages), .. }) => found.extend(stages.iter_mut().map(|s| (true, s))),
            _ => {}
        }
    }
    // The file may have them in any order.
    found.sort_by_key(|(is_stage, _)| *is_stage);
    found.into_iter().filter_map(|(_, node)| with_arguments(node)).collect()
}

/// A name and its arguments; a name alone has none yet.
fn with_arguments(node: &mut Node) -> Option<(String, &mut Node)> {
    if let Tree::Str(name) = &node.value {
        let (key, value) = (name.clone(), Node::new(Tree::Null, node.line, node.column));
        node.value = Tree::Map(vec![Field { key, line: node.line, value }]);
    }
    match &mut node.value {
        Tree::Map(fields) if fields.len() == 1 => fields.first_mut().map(|f| (f.key.clone(), &mut f.value)),
        _ => None,
    }
}

/// Sets an argument of `arguments`. A bare value is the value of `main`.
fn set_argument(arguments: &mut Node, main: Option<&str>, key: &str, value: Tree) {
    if !matches!(arguments.value, Tree::Map(_)) {
        let short = std::mem::replace(&mut arguments.value, Tree::Map(Vec::new()));
        if let Some(main) = main.filter(|&main| main != key && short != Tree::Null) {
            put(arguments, main, short);
        }
    }
    put(arguments, key, value);
}

/// Sets a field of a mapping.
fn put(node: &mut Node, key: &str, value: Tree) {
    let line = node.line;
    let Tree::Map(fields) = &mut node.value else { return };
    match fields.iter_mut().find(|field| field.key == key) {
        Some(field) => field.value.value = value,
        None => fields.push(Field { key: key.to_owned(), line, value: Node::new(value, line, node.column) }),
    }
}

/// Walks `key` from the root; only its last name may be new.
fn set_path(root: &mut Node, key: &str, value: Tree) -> Result<()> {
    let nothing = || Error::config(format!("there is no `{key}` in the pipeline file"));
    let plain = key.replace('[', ".").replace(']', "");
    let mut steps: Vec<&str> = plain.split('.').collect();
    let last = steps.pop().ok_or_else(nothing)?;
    if steps == ["executor"] && root.field("executor").is_none() {
        put(root, "executor", Tree::Map(Vec::new()));
    }
    let mut node = root;
    for step in steps {
        node = node.step(step).ok_or_else(nothing)?;
    }
    if let Some(there) = node.step(last) {
        there.value = value;
        return Ok(());
    }
    if !matches!(node.value, Tree::Map(_)) {
        return Err(nothing());
    }
    put(node, last, value);
    Ok(())
}

impl Node {
    fn field(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Tree::Map(fields) => fields.iter().find(|field| field.key == key).map(|field| &field.value),
            _ => None,
        }
    }

    /// One step down: by key, or by index.
    fn step(&mut self, name: &str) -> Option<&mut Self> {
        match &mut self.value {
            Tree::Map(fields) => fields.iter_mut().find(|field| field.key == name).map(|field| &mut field.value),
            Tree::List(items) => items.get_mut(name.parse::<usize>().ok()?),
            _ => None,
        }
    }
}

#[cold]
fn unknown(root: &mut Node, key: &str) -> Error {
    let mut known = Vec::new();
    for (name, arguments) in arguments(root) {
        if let Tree::Map(fields) = &arguments.value {
            known.extend(fields.iter().flat_map(|f| [f.key.clone(), format!("{name}.{}", f.key)]));
        } else {
            known.extend(main_argument(&name).map(str::to_owned))
        }
    }
    let error = Error::config(format!("no stage has a parameter `{key}`"));
    if let Some(name) = nearest(key, known.iter().map(String::as_str)) {
        error.help(format!("did you mean `{name}`?"))
    } else {
        error.help("name a parameter in the file, STAGE.PARAMETER, or a path such as stages[1].tokenise.max_len")
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Pipeline};
    use crate::dataset::IterDatasetExt;

    const TEXT: &str = "source: {range: 100}\nstages:\n  - batch: 2\n  - rebatch: {batch_size: 4}\n  - limit: 3\n";

    fn sizes(pipeline: &Pipeline) -> Vec<usize> {
        let batches = pipeline.build().unwrap().collect().unwrap();
        batches.iter().map(|batch| batch.array("index").unwrap().shape()[0]).collect()
    }

    fn changed(key: &str, value: &str) -> Vec<usize> {
        let pipeline = Pipeline::from_text(TEXT, Format::Yaml, ".").unwrap();
        let changed = pipeline.with(key, value).unwrap();
        let json = serde_json::to_string(&changed).unwrap();
        let sent: Pipeline = serde_json::from_str(&json).unwrap();
        assert_eq!(sizes(&sent), sizes(&changed), "{key} is lost on the way to a worker");
        sizes(&changed)
    }

    #[test]
    fn a_parameter_is_that_of_the_last_stage_that_has_it() {
        assert_eq!(changed("batch_size", "5"), [5, 5, 5]);
        assert_eq!(changed("count", "2"), [4, 4]);
        assert_eq!(changed("limit", "1"), [4]);
        assert_eq!(changed("rebatch.batch_size", "8"), [8, 8, 8]);
        assert_eq!(changed("stages[1].rebatch.batch_size", "6"), [6, 6, 6]);
        assert_eq!(changed("stages.2.limit", "2"), [4, 4]);
        assert_eq!(changed("batch.remainder", "drop"), [4, 4, 4]);
        assert_eq!(changed("stop", "7"), [4, 3]);
    }

    #[test]
    fn executors_are_changed_too() {
        let pipeline = Pipeline::from_text(TEXT, Format::Yaml, ".").unwrap();
        let changed = pipeline.with("executor.buffer", "7").unwrap().with("executor.threads", "3").unwrap();
        assert_eq!(changed.run_options().buffer(), Some(7));
        assert_eq!(changed.text(), pipeline.text());
    }

    #[test]
    fn what_is_not_there_is_an_error_with_the_nearest_name() {
        let pipeline = Pipeline::from_text(TEXT, Format::Yaml, ".").unwrap();
        let error = pipeline.with("bach_size", "5").unwrap_err();
        assert_eq!(error.message(), "no stage has a parameter `bach_size`");
        assert_eq!(error.help_text(), Some("did you mean `batch_size`?"));
        assert!(pipeline.with("stages[7].limit", "5").is_err());
        assert!(pipeline.with("batch_size", "{").unwrap_err().message().contains("no value for"));
        // A new name is taken for an optional argument, and refused with its place when the pipeline is built.
        let error = pipeline.with("rebatch.bach_size", "5").unwrap().build().unwrap_err().to_string();
        assert!(error.contains("line 4") && error.contains("unknown key `bach_size`"), "{error}");
    }
}
