//! TOML, by the spanned tree of the `toml` crate.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::node::{Budget, Field, Lines, Node, Tree, push_field};
use crate::error::{Error, Result};

/// Parses a document.
pub(crate) fn parse(text: &str) -> Result<Node> {
    let lines = Lines::new(text);
    let table = DeTable::parse(text).map_err(|e| {
        let line = lines.position(e.span().map_or(0, |s| s.start)).0;
        Error::config(format!("not TOML: {}", e.message())).line(line as u64)
    })?;
    let mut reader = Reader { lines, budget: Budget::default() };
    Ok(Node::new(reader.map(table.get_ref(), 0, 1)?, 1, 1))
}

struct Reader<'a> {
    lines: Lines<'a>,
    budget: Budget,
}

impl Reader<'_> {
    fn node(&mut self, value: &Spanned<DeValue<'_>>, depth: usize) -> Result<Node> {
        let (line, column) = self.lines.position(value.span().start);
        self.budget.take(1, depth, line)?;
        let refuse = |what: String| Err(Error::config(what).line(line as u64));
        let value = match value.get_ref() {
            DeValue::String(text) => Tree::Str(text.to_string()),
            DeValue::Boolean(truth) => Tree::Bool(*truth),
            DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
                Ok(number) => Tree::Int(number),
                Err(_) => return refuse(format!("the number {} does not fit in 64 bits", number.as_str())),
            },
            DeValue::Float(number) => match number.as_str().parse() {
                Ok(number) => Tree::Float(number),
                Err(_) => return refuse(format!("{} is not a number", number.as_str())),
            },
            DeValue::Datetime(time) => return refuse(format!("a date ({time}) is not supported here")),
            DeValue::Array(items) => {
                Tree::List(items.iter().map(|item| self.node(item, depth + 1)).collect::<Result<_>>()?)
            }
            DeValue::Table(table) => self.map(table, depth, line)?,
        };
        Ok(Node::new(value, line, column))
    }

    fn map(&mut self, table: &DeTable<'_>, depth: usize, line: usize) -> Result<Tree> {
        self.budget.take(0, depth, line)?;
        // The crate sorts by key; a pipeline is read in the order in which it is written.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut fields = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let (line, _) = self.lines.position(key.span().start);
            let value = self.node(value, depth + 1)?;
            push_field(&mut fields, Field { key: key.get_ref().to_string(), line, value })?;
        }
        Ok(Tree::Map(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_lines_and_values_are_kept() {
        let text =
            "name = 'lm'\nbig = 1_000\nhex = 0x1f\n\n[[stages]]\nshuffle = {seed = 1}\n[[stages]]\nbatch.n = 2.5\n";
        let Tree::Map(fields) = parse(text).unwrap().value else { panic!("a map") };
        assert_eq!(fields.iter().map(|f| f.key.as_str()).collect::<Vec<_>>(), ["name", "big", "hex", "stages"]);
        assert_eq!((&fields[1].value.value, fields[1].line), (&Tree::Int(1000), 2));
        assert_eq!(fields[2].value.value, Tree::Int(31));
        let Tree::List(stages) = &fields[3].value.value else { panic!("a list") };
        let Tree::Map(batch) = &stages[1].value else { panic!("a map") };
        assert_eq!(batch[0].line, 8);
    }

    #[test]
    fn errors_name_the_line() {
        let line = |text: &str| parse(text).unwrap_err().to_string();
        assert!(line("a = 1\nb = \n").starts_with("line 2: not TOML: "), "{}", line("a = 1\nb = \n"));
        assert!(line("a = 1\na = 2\n").starts_with("line 2: not TOML: duplicate key"), "{}", line("a = 1\na = 2\n"));
        assert!(line("a = 1979-05-27").contains("a date"));
        assert!(line(&format!("a = {}1{}", "[".repeat(50), "]".repeat(50))).contains("nested deeper"));
    }
}
