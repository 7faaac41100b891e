//! Every argument of pipeline files stands in the texts that stages are known by, of which fingerprints are made, or it is listed here as
//! one that changes no data.

use std::collections::BTreeSet;
use std::path::Path;

use gristmill::element::OrderHash;
use gristmill::spec::{Format, Pipeline, schema};
use gristmill::{BoxIter, Element, Load, Stage};
use serde_json::{Value, json};

use super::cases::{Case, SILENT, UNSAID, cases};

/// Elements that are compared.
const MOST: usize = 100;

/// The stages between which a stage is tried, so that it stands in every world that has it.
fn places() -> Vec<(Vec<Value>, Vec<Value>)> {
    vec![
        (vec![], vec![]),
        (vec![], vec![json!("to_iter")]),
        (vec![json!("to_iter")], vec![]),
        (vec![json!("to_iter"), json!({"limit": 50})], vec![]),
    ]
}

impl Case {
    /// The pipelines in which `arguments` stand: one for each place, where it is not refused there.
    fn pipelines(&self, arguments: &Value, folder: &Path) -> Vec<gristmill::Result<BoxIter<Element>>> {
        let build = |file: Value| Pipeline::from_text(file.to_string(), Format::Json, folder)?.build();
        let Some(source) = &self.behind else { return vec![build(json!({"source": {self.name: arguments}}))] };
        let stage = json!({self.name: arguments});
        let in_place = |(before, behind): (Vec<Value>, Vec<Value>)| {
            let stages = [before, self.stages.clone(), vec![stage.clone()], behind].concat();
            build(json!({"source": source, "stages": stages}))
        };
        let lanes = json!({"lanes": {"parts": [source], "count": 2}});
        let stages = [self.stages.clone(), vec![stage.clone()]].concat();
        let mut built: Vec<_> = places().into_iter().map(in_place).collect();
        built.push(build(json!({"source": lanes, "stages": stages})));
        built
    }

    /// The arguments with `value` in place of the one at `path`.
    fn with(&self, path: &str, value: &Value) -> Value {
        if let Some(whole) = value.get("$all") {
            return whole.clone();
        }
        let mut arguments = self.arguments.clone();
        let (around, name) = path.rsplit_once('.').unwrap_or(("", path));
        let inner = around.split('.').filter(|part| !part.is_empty()).fold(&mut arguments, |at, part| &mut at[part]);
        match value {
            Value::Null => drop(inner.as_object_mut().map(|fields| fields.remove(name))),
            value => inner[name] = value.clone(),
        }
        arguments
    }

    /// The arguments that it tries, those inside of values among them.
    fn tried(&self) -> impl Iterator<Item = String> {
        let inside = |(path, values): &(String, Vec<Value>)| {
            let objects = values.iter().filter_map(Value::as_object);
            let inner: Vec<_> = objects.flat_map(|object| object.keys()).map(|key| format!("{path}.{key}")).collect();
            [path.clone()].into_iter().chain(inner)
        };
        self.values.iter().flat_map(inside).map(|path| format!("{}.{path}", self.name))
    }
}

/// What a stage is known by, and what its elements are.
fn texts(ds: &BoxIter<Element>) -> String {
    (ds as &dyn Stage).lines().join("\n")
}

fn elements(ds: &BoxIter<Element>) -> gristmill::Result<String> {
    let mut hash = OrderHash::default();
    for element in ds.clone().loader().build()?.take(MOST) {
        hash.update(&element?);
    }
    Ok(hash.to_string())
}

#[test]
fn every_argument_that_changes_data_is_in_the_fingerprint() {
    let folder = tempfile::tempdir().unwrap();
    super::files::write_all(folder.path());
    super::cases::write_more(folder.path());
    let of_case =
        |case: &Case| case.values.iter().flat_map(|(path, values)| faults(case, path, values, folder.path())).collect();
    let faults: Vec<_> = cases().iter().flat_map(|case| -> Vec<String> { of_case(case) }).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Builds the pipelines of each value, and says what is wrong with them.
fn faults(case: &Case, path: &str, values: &[Value], folder: &Path) -> Vec<String> {
    let name = format!("{}.{path}", case.name);
    let built: Vec<_> = values.iter().map(|value| case.pipelines(&case.with(path, value), folder)).collect();
    let refused = |(value, places): (&Value, &Vec<gristmill::Result<_>>)| match places.first() {
        Some(Err(error)) if places.iter().all(Result::is_err) => Some(format!("{name}: {value} is refused: {error}")),
        _ => None,
    };
    let mut faults: Vec<_> = values.iter().zip(&built).filter_map(refused).collect();
    for place in 0..built[0].len() {
        let there: Vec<_> = built.iter().filter_map(|places| places[place].as_ref().ok()).collect();
        if let Some(fault) = fault(&name, &there) {
            let texts: Vec<_> = there.into_iter().map(texts).collect();
            faults.push(format!("{name} {fault}: {values:?}\n{}", texts.join("\n")));
        }
    }
    faults
}

/// Compares pipelines that differ in one argument.
fn fault(name: &str, pipelines: &[&BoxIter<Element>]) -> Option<&'static str> {
    let known: BTreeSet<_> = pipelines.iter().map(|ds| texts(ds)).collect();
    // A check may refuse what is read without it.
    let made = || pipelines.iter().filter_map(|ds| elements(ds).ok()).collect::<BTreeSet<_>>().len();
    // Shards that are left out are not in the text of the files, and whole shards are read alike.
    let is_silent = name.ends_with(".on_bad_shard") || SILENT.iter().any(|(silent, _)| *silent == name);
    match (is_silent, UNSAID.contains(&name)) {
        (false, false) if known.len() < pipelines.len() => Some("has values with one text"),
        (true, false) if known.len() > 1 => Some("is in the text"),
        (true, false) if made() > 1 => Some("is in no text and changes data"),
        (false, true) if known.len() > 1 => Some("is in the text"),
        (false, true) if made() < 2 => Some("changes no data"),
        _ => None,
    }
}

#[test]
fn every_argument_is_tried() {
    let tried: BTreeSet<_> = cases().iter().flat_map(|case| case.tried().collect::<Vec<_>>()).collect();
    let missing: Vec<_> = arguments().into_iter().filter(|path| !tried.contains(path)).collect();
    assert!(missing.is_empty(), "arguments that no case tries: {}", missing.join(", "));
    let unknown: Vec<_> = SILENT.iter().filter(|(path, _)| !tried.contains(*path)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert!(cases().iter().all(|case| case.values.iter().all(|(_, values)| values.len() > 1)));
}

/// Every argument of every source and stage, by the schema of pipeline files.
fn arguments() -> Vec<String> {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let mut found = Vec::new();
    for named in [&schema["$defs"]["source"], &schema["$defs"]["stage"]["anyOf"][0]] {
        let entries = named["properties"].as_object().unwrap();
        entries.iter().for_each(|(name, entry)| below(entry, name, &mut found));
    }
    assert!(found.len() > 100, "{}", found.len());
    found
}

fn below(schema: &Value, path: &str, found: &mut Vec<String>) {
    schema["anyOf"].as_array().into_iter().flatten().for_each(|one| below(one, path, found));
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        below(inner, &path, found);
        found.push(path);
    }
}
