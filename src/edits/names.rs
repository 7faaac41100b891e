//! Texts that name records: lists of files and numbers, and the output of `which` and `when`.

use std::path::PathBuf;

use serde_json::{Deserializer, Value as Json};

use crate::error::{Error, Result};

/// Returns the records that `text` names, as file and number in the file. A source without files has its name in place of a
/// file.
///
/// The text has a record in each line: its file, a space or tab, and its number. Or it is the output of `which` or `when`:
/// the table, or JSON.
///
/// # Errors
/// [`ErrorKind::Config`](crate::ErrorKind::Config) with the first line that names no record.
pub(crate) fn records_in(text: &str) -> Result<Vec<(PathBuf, u64)>> {
    let mut records = Vec::new();
    if text.trim_start().starts_with(['{', '[']) {
        for value in Deserializer::from_str(text).into_iter::<Json>() {
            let value = value.map_err(|e| Error::config(format!("the records are no JSON: {e}")))?;
            collect(&value, &mut records);
        }
        return Ok(records);
    }
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).peekable();
    let columns = lines.peek().and_then(|(_, line)| columns(line));
    if columns.is_some() {
        lines.next();
    }
    for (number, line) in lines {
        let of_line = columns.map_or(Some(line.to_owned()), |(from, to)| {
            Some(line.chars().skip(from).take(to - from).collect::<String>()).filter(|part| !part.is_empty())
        });
        let record = of_line.and_then(|part| {
            let (file, record) = part.trim().rsplit_once(char::is_whitespace)?;
            Some((PathBuf::from(file.trim()), record.parse().ok()?))
        });
        let wrong = || Error::config(format!("line {number} is no file and record: {line:?}"));
        records.push(record.ok_or_else(wrong)?);
    }
    Ok(records)
}

/// Returns the characters of the columns `file` and `record`, if `line` is the head of a table.
fn columns(line: &str) -> Option<(usize, usize)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "file")?;
    if words.get(at + 1) != Some(&"record") || words.get(at.checked_sub(1)?) != Some(&"row") {
        return None;
    }
    Some((line.find("file")?, line.find("record")? + "record".len()))
}

/// Adds the records that a value names.
fn collect(value: &Json, records: &mut Vec<(PathBuf, u64)>) {
    match value {
        Json::Object(fields) => {
            let file = ["file", "source"].iter().find_map(|name| fields.get(*name)?.as_str());
            match file.zip(fields.get("record").and_then(Json::as_u64)) {
                Some((file, record)) => records.push((file.into(), record)),
                None => fields.values().for_each(|value| collect(value, records)),
            }
        }
        Json::Array(values) => values.iter().for_each(|value| collect(value, records)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(String, u64)> {
        let records = records_in(text).unwrap();
        records.into_iter().map(|(file, record)| (file.display().to_string(), record)).collect()
    }

    #[test]
    fn lists_tables_and_json_name_records() {
        let expected = [("a b.jsonl".to_owned(), 7), ("range".to_owned(), 12)];
        assert_eq!(found("a b.jsonl 7\n\nrange\t12\n"), expected);
        let table = " row  file       record  bytes  epoch  tokens  cells  text\n\
                     \x200    a b.jsonl       7   1..9      0   0..3   0..3  some file 9\n\
                     \x201    range          12      -      0      -      -  -\n";
        assert_eq!(found(table), expected);
        let json = r#"{"step": 4, "rows": [{"row": 0, "segments": [
            {"source": "jsonl", "file": "a b.jsonl", "record": 7, "index": 7},
            {"source": "range", "file": null, "record": 12, "index": 12}]}]}"#;
        assert_eq!(found(json), expected);
        assert_eq!(found(&format!("{json}\n{json}")).len(), 4);
        assert_eq!(found(""), []);
    }

    #[test]
    fn a_line_without_a_record_is_named() {
        let error = |text: &str| records_in(text).unwrap_err().message().to_owned();
        assert_eq!(error("a.jsonl 7\nb.jsonl seven"), "line 2 is no file and record: \"b.jsonl seven\"");
        assert!(error("{\"file\": ").starts_with("the records are no JSON: "));
    }
}
