//! The JSON Schema of pipeline files, by which editors complete names, show their meaning, and underline errors.

use serde_json::{Map, Value, json};

use super::arguments::{About, Arg, Arguments, Kind};
use super::registry::{Described, described_sources, described_stages};
use super::settings::FileArgs;
use super::sources::PartArgs;

/// Pattern of a part of rows, such as `3/64`.
pub(super) const SHARE: &str = "^[0-9]+/[0-9]+$";
/// Pattern of an amount of memory, such as `2GiB`.
pub(super) const MEMORY: &str = "^\\s*[0-9.]+\\s*([kKmMgGtTpP]([iI]?[bB])?|[bB])?\\s*$";

/// Returns the JSON Schema of pipeline files, draft 2020-12, with the sources and stages that this build has.
///
/// A file that it accepts has known names, and values of the right types. Columns, files, and arguments that exclude each other are
/// checked by [`Pipeline::build`](super::Pipeline::build) alone.
///
/// ```
/// let schema = gristmill::spec::schema();
/// assert!(schema.contains("https://json-schema.org/draft/2020-12/schema"));
/// ```
pub fn schema() -> String {
    format!("{:#}\n", tree())
}

pub(super) fn tree() -> Value {
    let mut file = mapping(&FileArgs::ABOUT);
    file.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    file.insert("title".to_owned(), json!("A pipeline file of gristmill"));
    let bare: Vec<_> = described_stages().filter(|stage| needs_nothing(stage.about)).map(|stage| stage.name).collect();
    let definitions = json!({
        "source": named(described_sources()),
        "stage": {"anyOf": [named(described_stages()), {"enum": bare}]},
        "part": {"anyOf": [{"$ref": "#/$defs/source"}, mapping(&PartArgs::ABOUT)]},
    });
    file.insert("$defs".to_owned(), definitions);
    Value::Object(file)
}

/// A mapping with a single entry: a name of `entries`, and its arguments.
fn named(entries: impl Iterator<Item = Described>) -> Value {
    let there = entries.filter(|entry| entry.lacks.is_none());
    let properties: Map<_, _> = there.map(|entry| (entry.name.to_owned(), entry_schema(&entry))).collect();
    json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
        "minProperties": 1,
        "maxProperties": 1,
    })
}

fn entry_schema(entry: &Described) -> Value {
    let section = section(entry.about);
    let section = if needs_nothing(entry.about) { or_null(section) } else { section };
    described(section, entry.doc)
}

/// Whether a name may stand without arguments.
fn needs_nothing(about: &About) -> bool {
    about.free.is_none() && !about.all().iter().any(|arg| arg.is_required())
}

/// Arguments in a mapping, or a bare value of the main argument.
fn section(about: &About) -> Value {
    let mapping = Value::Object(mapping(about));
    match about.main_arg().and_then(|arg| bare(&arg.kind).map(|bare| described(bare, &arg.doc()))) {
        Some(bare) => either(vec![bare, mapping]),
        None => mapping,
    }
}

fn mapping(about: &About) -> Map<String, Value> {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!("object"));
    if let Some(kind) = &about.free {
        schema.insert("additionalProperties".to_owned(), value(kind));
        schema.insert("minProperties".to_owned(), json!(1));
        return schema;
    }
    let args = about.all();
    let properties: Map<_, _> = args.iter().map(|arg| (arg.name.to_owned(), argument(arg))).collect();
    let required: Vec<_> = args.iter().filter(|arg| arg.is_required()).map(|arg| arg.name).collect();
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema
}

pub(super) fn argument(arg: &Arg) -> Value {
    let kind = value(&arg.kind);
    let mut schema = described(if arg.is_required() { kind } else { or_null(kind) }, &arg.doc());
    if let Some(default) = arg.default.and_then(|text| serde_json::from_str(text).ok()) {
        set(&mut schema, "default", default);
    }
    schema
}

fn value(kind: &Kind) -> Value {
    match kind {
        Kind::Any => json!({}),
        Kind::Bool => json!({"type": "boolean"}),
        Kind::Integer { min, max } => integer(*min, *max),
        Kind::Number => json!({"type": "number"}),
        Kind::Seconds => json!({"type": "number", "minimum": 0}),
        Kind::Text | Kind::Path | Kind::Tokenizer => json!({"type": "string"}),
        Kind::Byte => json!({"type": "string", "maxLength": 1}),
        Kind::Words(words) => json!({"enum": words}),
        Kind::Share => json!({"type": "string", "pattern": SHARE}),
        Kind::Memory => either(vec![json!({"type": "string", "pattern": MEMORY}), integer(0, u64::MAX)]),
        Kind::List(item) => {
            let list = json!({"type": "array", "items": value(item)});
            if let Some(one) = bare(item) { either(vec![one, list]) } else { list }
        }
        Kind::Map(item) => json!({"type": "object", "additionalProperties": value(item)}),
        Kind::Section(about) => section(about),
        Kind::Either(kinds) => either(kinds.iter().map(value).collect()),
        Kind::Source => json!({"$ref": "#/$defs/source"}),
        Kind::Stages => json!({"type": "array", "items": {"$ref": "#/$defs/stage"}}),
        Kind::Part => json!({"$ref": "#/$defs/part"}),
    }
}

/// Values of this kind that may replace a list or a mapping, if they are no mapping.
fn bare(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::Any | Kind::Map(_) | Kind::Section(_) | Kind::Source | Kind::Part => None,
        Kind::Either(kinds) => Some(either(kinds.iter().filter_map(bare).collect())),
        kind => Some(value(kind)),
    }
}

fn integer(min: i64, max: u64) -> Value {
    let mut schema = json!({"type": "integer"});
    if min > i64::MIN {
        set(&mut schema, "minimum", json!(min));
    }
    // No file can hold a number of more than 64 bits.
    if max < i64::MAX as u64 {
        set(&mut schema, "maximum", json!(max));
    }
    schema
}

/// Any of these schemas. Schemas that are alternatives themselves are flattened.
fn either(schemas: Vec<Value>) -> Value {
    let open = |schema: Value| match schema.get("anyOf") {
        Some(Value::Array(inner)) if schema.get("description").is_none() => inner.clone(),
        _ => vec![schema],
    };
    let mut all: Vec<Value> = schemas.into_iter().flat_map(open).collect();
    if all.len() == 1 { all.remove(0) } else { json!({"anyOf": all}) }
}

/// Accepts null besides `schema`.
fn or_null(mut schema: Value) -> Value {
    if let Some(Value::String(kind)) = schema.get("type") {
        let kinds = json!([kind, "null"]);
        set(&mut schema, "type", kinds);
        return schema;
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.push(Value::Null);
        return schema;
    }
    let takes_all = schema.as_object().is_some_and(Map::is_empty);
    if takes_all { schema } else { either(vec![schema, json!({"type": "null"})]) }
}

fn described(mut schema: Value, text: &str) -> Value {
    set(&mut schema, "description", json!(text));
    schema
}

fn set(schema: &mut Value, key: &str, value: Value) {
    if let Value::Object(fields) = schema {
        fields.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
pub(super) mod tests;
