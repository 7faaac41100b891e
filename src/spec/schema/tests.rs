use super::*;
use crate::spec::node::{Node, Tree};
use crate::spec::{Format, Pipeline, arguments, yaml};
use crate::units::parse_bytes;

/// Whether `schema` accepts `value`: the words that schemas of pipeline files are made of.
fn accepts(schema: &Value, value: &Value, root: &Value) -> bool {
    let Value::Object(words) = schema else { return schema != &json!(false) };
    words.iter().all(|(word, told)| match (word.as_str(), told) {
        ("$schema" | "$defs" | "title" | "description" | "default", _) => true,
        ("$ref", Value::String(path)) => accepts(root.pointer(&path[1..]).expect("a definition"), value, root),
        ("anyOf", Value::Array(schemas)) => schemas.iter().any(|schema| accepts(schema, value, root)),
        ("enum", Value::Array(words)) => words.contains(value),
        ("type", Value::Array(kinds)) => kinds.iter().any(|kind| is_of(value, kind)),
        ("type", kind) => is_of(value, kind),
        ("minimum", least) => value.as_f64().is_none_or(|number| number >= least.as_f64().unwrap()),
        ("maximum", most) => value.as_f64().is_none_or(|number| number <= most.as_f64().unwrap()),
        ("maxLength", most) => value.as_str().is_none_or(|text| text.chars().count() as u64 <= most.as_u64().unwrap()),
        ("pattern", Value::String(pattern)) if pattern == MEMORY => {
            value.as_str().is_none_or(|text| parse_bytes(text).is_some())
        }
        ("pattern", Value::String(pattern)) if pattern == SHARE => {
            value.as_str().is_none_or(|text| text.parse::<crate::part::Part>().is_ok())
        }
        ("items", items) => value.as_array().is_none_or(|list| list.iter().all(|item| accepts(items, item, root))),
        ("minProperties", least) => value.as_object().is_none_or(|map| map.len() as u64 >= least.as_u64().unwrap()),
        ("maxProperties", most) => value.as_object().is_none_or(|map| map.len() as u64 <= most.as_u64().unwrap()),
        ("required", Value::Array(names)) => {
            value.as_object().is_none_or(|map| names.iter().all(|name| map.contains_key(name.as_str().unwrap())))
        }
        ("properties", Value::Object(properties)) => value.as_object().is_none_or(|map| {
            map.iter().all(|(name, value)| properties.get(name).is_none_or(|schema| accepts(schema, value, root)))
        }),
        ("additionalProperties", schema) => value.as_object().is_none_or(|map| {
            let known = |name: &String| words.get("properties").is_some_and(|known| known.get(name).is_some());
            map.iter().all(|(name, value)| known(name) || accepts(schema, value, root))
        }),
        (word, told) => panic!("no rule for {word}: {told}"),
    })
}

fn is_of(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        kind => panic!("no type {kind}"),
    }
}

fn value_of(node: &Node) -> Value {
    match &node.value {
        Tree::Null => Value::Null,
        Tree::Bool(truth) => json!(truth),
        Tree::Int(number) => json!(number),
        Tree::Float(number) => json!(number),
        Tree::Str(text) => json!(text),
        Tree::List(items) => items.iter().map(value_of).collect(),
        Tree::Map(fields) => {
            Value::Object(fields.iter().map(|field| (field.key.clone(), value_of(&field.value))).collect())
        }
    }
}

/// Whether the schema accepts a pipeline file.
pub(in crate::spec) fn accepts_file(root: &Node) -> bool {
    let schema = tree();
    accepts(&schema, &value_of(root), &schema)
}

/// Every argument, with where it stands.
fn every_argument() -> Vec<(String, &'static arguments::Arg)> {
    fn below(path: &str, about: &'static About, found: &mut Vec<(String, &'static arguments::Arg)>) {
        for arg in about.all() {
            let path = format!("{path}.{}", arg.name);
            arg.kind.sections().into_iter().for_each(|about| below(&path, about, found));
            found.push((path, arg));
        }
    }
    let mut found = Vec::new();
    below("file", &FileArgs::ABOUT, &mut found);
    for entry in described_sources().chain(described_stages()) {
        below(entry.name, entry.about, &mut found);
    }
    found
}

#[test]
fn every_argument_is_read_from_what_its_description_says() {
    let samples = [
        "null",
        "true",
        "-1",
        "1",
        "3000000000",
        "1099511627776",
        "1.5",
        "-1.5",
        "''",
        "a",
        "keep",
        "error",
        "int64",
        "auto",
        "inline",
        "2GiB",
        "[]",
        "[1]",
        "[-1]",
        "[1.5]",
        "[a]",
        "[a, 1]",
        "[null]",
        "[[]]",
        "{}",
        "{a: 1}",
        "{a: b}",
        "{a: 1.5}",
        "{a: null}",
        "{a: int64}",
        "{a: {dtype: int64}}",
        "{a: {dtype: int64, shape: [2], alow_missing: true}}",
        "{column: a, min: 1}",
        "{column: 1, min: 1}",
        "{fixed: 1}",
        "{tokens: 1, fixd: 2}",
        "{context: {a: str}}",
        "{threads: auto}",
        "{threads: 2, bufer: 1}",
        "{folder: a}",
        "{every: 1}",
        "{folder: a, every: x}",
        "{cache_dir: a, timeout: 1.5}",
        "{timeout: -1}",
        "[{a: 1}]",
    ];
    let root = tree();
    let arguments = every_argument();
    assert!(arguments.len() > 100, "{}", arguments.len());
    let mut judged = 0;
    for (path, arg) in &arguments {
        let schema = argument(arg);
        for sample in samples {
            let node = yaml::parse(sample).unwrap();
            let is_read = match node.value {
                Tree::Null if arg.is_required() => Err(node.error("missing")),
                Tree::Null => Ok(()),
                _ => (arg.check)(&node),
            };
            // A source or a stage is judged by its own decoder; a budget has a least amount; a declaration has a feature, and a
            // batch one of its sizes; a deal says which and what rows cost; a file of excluded records must exist.
            let is_more = matches!(
                (arg.name, sample),
                ("ram_budget", "1") | ("examples" | "features" | "batch" | "deal" | "balanced" | "shadow", "{}")
            );
            let is_file = arg.name == "exclude" && matches!(node.value, Tree::Str(_));
            if is_more || is_file || schema.to_string().contains("$ref") {
                continue;
            }
            judged += 1;
            let accepted = accepts(&schema, &value_of(&node), &root);
            assert_eq!(is_read.is_ok(), accepted, "{path}: {sample}: {is_read:?}\n{schema}");
        }
    }
    assert!(judged > 4000, "{judged}");
}

#[test]
fn every_default_is_a_value_of_its_argument() {
    for (path, arg) in every_argument() {
        if let Some(default) = arg.default {
            (arg.check)(&yaml::parse(default).unwrap()).unwrap_or_else(|e| panic!("{path}: {e}"));
            assert!(argument(arg).get("default").is_some(), "{path}: {default} is no JSON");
        }
    }
}

#[test]
fn every_description_is_a_sentence() {
    for (path, arg) in every_argument() {
        let doc = arg.doc();
        assert!(doc.ends_with('.') && doc.len() > 12, "{path}: {doc}");
        assert!(!doc.contains("  "), "{path}: {doc}");
    }
    for entry in described_sources().chain(described_stages()) {
        assert!(entry.doc.ends_with('.') && !entry.doc.contains("  "), "{}: {}", entry.name, entry.doc);
    }
}

/// Every pipeline that stands in the repository as a whole text.
#[cfg(feature = "formats")]
mod repository {
    use super::*;

    /// The files between ```` ```yaml ```` and ```` ``` ````.
    fn files_in(page: &str) -> Vec<String> {
        let blocks = page.split("```yaml\n").skip(1).map(|text| text.split("```").next().unwrap_or_default());
        blocks.filter(|text| text.contains("source:")).map(str::to_owned).collect()
    }

    /// The texts of pipelines among the literals of a file in Rust.
    fn texts_in(code: &str) -> Vec<String> {
        let literals = code.split("\"source: ").skip(1).map(|rest| {
            let end =
                rest.match_indices('"').find(|(at, _)| !rest[..*at].ends_with('\\')).map_or(rest.len(), |(at, _)| at);
            format!("source: {}", &rest[..end])
        });
        literals.map(|text| text.replace("\\n", "\n").replace("\\\"", "\"").replace("\\\\", "\\")).collect()
    }

    #[test]
    fn every_pipeline_in_the_repository_is_accepted() {
        let at = |path: &str| std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
        let mut texts = Vec::new();
        let root = env!("CARGO_MANIFEST_DIR");
        let pages = [format!("{root}/*.md"), format!("{root}/python/docs/**/*.md"), format!("{root}/src/**/*.md")];
        for page in pages.iter().flat_map(|pages| glob::glob(pages).unwrap()) {
            texts.extend(files_in(&std::fs::read_to_string(page.unwrap()).unwrap()));
        }
        texts.extend(files_in(&include_str!("../mod.rs").replace("//! ", "")));
        texts.extend(texts_in(&at("tests/it/pins/pipelines.rs").unwrap_or_default()));
        assert!(texts.len() > 3, "{}", texts.len());
        for text in texts {
            let parsed =
                Pipeline::from_text(text.as_str(), Format::Yaml, ".").unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert!(accepts_file(&parsed.root), "{text}");
        }
    }
}

#[test]
fn wrong_files_are_refused_by_both() {
    let stages = [
        "limit: 0",
        "limit: many",
        "limit: {count: 1, cout: 2}",
        "limit: {}",
        "limit",
        "limit:",
        "shuffle: {seed: -1}",
        "shuffle: {seed: 4294967296}",
        "shuffl: 1",
        "rename: {}",
        "rename: {index: 1}",
        "batch: {batch_size: 2, remainder: kep}",
        "batch: {batch_size: '2'}",
        "batch: {batch_size: 2, remainder: 1}",
        "filter: {min: 1}",
        "filter: {column: index, min: x}",
        "to_iter: {on_bad_record: skp}",
        "to_iter: 3",
        "select_columns: {columns: {}}",
        "enumerate: {column: 1}",
        "cache: 1",
        "{limit: 1, skip: 1}",
        "tokenise: {column: text}",
        "window_pack: {length: {index: a}}",
        "window_pack: {window: 4}",
        "length_buckets: {features: index, boundaries: [4], batch: {fixd: 2}}",
        "slice: {step: 1.5}",
        "3",
        "[]",
    ];
    let sources = [
        "{}",
        "3",
        "range",
        "{range: {}}",
        "{range: x}",
        "{range: {stop: 1, stp: 2}}",
        "{rnge: 3}",
        "{mix: {weights: [1]}}",
        "{concatenate: [{range: 3, rnge: 4}]}",
        "{memory: [1]}",
        "{jsonl: {}}",
        "{jsonl: {paths: 3}}",
    ];
    let sections = [
        "executor: outline",
        "executor: {threads: 0}",
        "executor: {thread: 1}",
        "executor: {workers: -1}",
        "executor: {deal: odd}",
        "executor: {deal: {balanced: {d_modl: 4}}}",
        "executor: {deal: {balanced: {column: a, micro_steps: 0}}}",
        "executor: 3",
        "checkpoint: {every: 3}",
        "checkpoint: {folder: a, every: 0}",
        "checkpoint: 3",
        "store: {memory: much}",
        "store: {timeout: -1}",
        "name: 3",
        "nam: a",
        "stages: 3",
        "stages: {}",
    ];
    let mut texts: Vec<String> = Vec::new();
    texts.extend(stages.map(|stage| format!("source: {{range: 5}}\nstages:\n  - {stage}\n")));
    texts.extend(sources.map(|source| format!("source: {source}\n")));
    texts.extend(sections.map(|section| format!("source: {{range: 5}}\n{section}\n")));
    texts.push("stages: [cache]\n".to_owned());
    for text in texts {
        let built = Pipeline::from_text(text.as_str(), Format::Yaml, ".").and_then(|pipeline| pipeline.build());
        assert!(built.is_err(), "built: {text}");
        assert!(!accepts_file(&yaml::parse(&text).unwrap()), "accepted: {text}");
    }
}

#[test]
fn short_forms_and_nothing_are_accepted() {
    for stage in [
        "limit: 3",
        "limit: {count: 3}",
        "to_iter",
        "to_iter:",
        "cache",
        "cache: {}",
        "repeat",
        "repeat: null",
        "repeat: 2",
        "rename: {index: n}",
        "select_columns: index",
        "select_columns: [index]",
        "shuffle: {seed: null}",
        "batch: 2",
        "skip_bad_records",
        "enumerate: n",
        "length_buckets: {features: index, boundaries: 4, batch: {per_bucket: [1, 2]}}",
    ] {
        let text = format!("source: {{range: 5}}\nstages:\n  - {stage}\n");
        assert!(accepts_file(&yaml::parse(&text).unwrap()), "{text}");
    }
}
