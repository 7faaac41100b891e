//! Conditions on the figures of a plan, for tests of training repositories.

use std::fmt;
use std::str::FromStr;

use super::figures::{Figures, Source};
use crate::spec::nearest;
use crate::{Error, Result};

/// A figure of a `T` with its name.
type Named<T> = (&'static str, fn(&T) -> Option<f64>);

/// Figures of the whole run.
const OF_RUN: [Named<Figures>; 11] = [
    ("batches", |run| Some(run.amounts.batches as f64)),
    ("bytes_per_host", |run| run.reads.bytes_per_host.map(|bytes| bytes as f64)),
    ("documents", |run| Some(run.amounts.documents as f64)),
    ("longest_run", |run| run.longest_run.as_ref().map(|run| run.rows as f64)),
    ("padding", |run| run.amounts.padding_share),
    ("price", |run| run.reads.price),
    ("requests_per_host", |run| run.reads.requests_per_host.map(|requests| requests as f64)),
    ("split", |run| Some(run.amounts.split_share)),
    ("straggler_balanced", |run| run.straggler.map(|straggler| straggler.balanced)),
    ("straggler_even", |run| run.straggler.map(|straggler| straggler.even)),
    ("tokens", |run| run.amounts.tokens.map(|tokens| tokens as f64)),
];

/// Figures of a source.
const OF_SOURCE: [Named<Source>; 7] = [
    ("documents", |source| Some(source.documents as f64)),
    ("end", |source| source.end.map(|batch| batch as f64)),
    ("epochs", |source| Some(source.epochs)),
    ("first_repeat", |source| source.first_repeat.map(|batch| batch as f64)),
    ("share", |source| Some(source.share)),
    ("token_share", |source| source.token_share),
    ("tokens", |source| source.tokens.map(|tokens| tokens as f64)),
];

/// A condition such as `epochs.books > 4`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    text: String,
    name: String,
    /// Name of a source; `None` for the whole run, or for every source.
    source: Option<String>,
    compare: Compare,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compare {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
    Other,
}

/// Comparisons by their signs. A longer sign comes before its beginning.
const SIGNS: [(&str, Compare); 6] = [
    (">=", Compare::AtLeast),
    ("<=", Compare::AtMost),
    ("==", Compare::Equal),
    ("!=", Compare::Other),
    (">", Compare::Above),
    ("<", Compare::Below),
];

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let form = || "a condition is `name > number`, as in `epochs.books > 4` or `padding > 1%`".to_owned();
        let at = text.find(['<', '>', '=', '!']).ok_or_else(form)?;
        let (left, right) = text.split_at(at);
        let signed = SIGNS.into_iter().find_map(|(sign, compare)| Some((right.strip_prefix(sign)?, compare)));
        let (number, compare) = signed.ok_or_else(form)?;
        let (number, factor) = match number.trim().strip_suffix('%') {
            Some(number) => (number.trim(), 0.01),
            None => (number.trim(), 1.0),
        };
        let limit: f64 = number.parse().map_err(|_| format!("`{number}` is not a number; {}", form()))?;
        let (name, source) = match left.trim().split_once('.') {
            Some((name, source)) => (name, Some(source.to_owned())),
            None => (left.trim(), None),
        };
        let names = || OF_RUN.iter().map(|(name, _)| *name).chain(OF_SOURCE.iter().map(|(name, _)| *name));
        if !names().any(|known| known == name) {
            let near = nearest(name, names()).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            return Err(format!("no figure is named `{name}`{near}"));
        }
        if source.is_some() && !OF_SOURCE.iter().any(|(known, _)| *known == name) {
            return Err(format!("`{name}` is a figure of the whole run, not of a source"));
        }
        let text = text.trim().to_owned();
        Ok(Self { text, name: name.to_owned(), source, compare, limit: limit * factor })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Condition {
    /// Returns the figures that meet the condition, each with its name. A figure that does not exist meets none.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if no source has the name.
    pub(super) fn met_by(&self, run: &Figures) -> Result<Vec<(String, f64)>> {
        let of_run = OF_RUN.iter().find(|(name, _)| *name == self.name && self.source.is_none());
        if let Some((name, figure)) = of_run {
            return Ok(figure(run)
                .filter(|figure| self.holds(*figure))
                .map(|figure| ((*name).to_owned(), figure))
                .into_iter()
                .collect());
        }
        let is_named = |source: &&Source| self.source.as_ref().is_none_or(|name| *name == source.name);
        let sources: Vec<&Source> = run.sources.iter().filter(is_named).collect();
        if let (Some(name), true) = (&self.source, sources.is_empty()) {
            let names: Vec<&str> = run.sources.iter().map(|source| source.name.as_str()).collect();
            let error = Error::config(format!("`{self}`: no source is named `{name}`"));
            return Err(error.help(format!("the sources are {}", names.join(", "))));
        }
        let figure = OF_SOURCE.iter().find(|(name, _)| *name == self.name).map(|(_, figure)| figure);
        let met = sources.into_iter().filter_map(|source| {
            let figure = figure?(source).filter(|figure| self.holds(*figure))?;
            Some((format!("{}.{}", self.name, source.name), figure))
        });
        Ok(met.collect())
    }

    fn holds(&self, figure: f64) -> bool {
        match self.compare {
            Compare::Above => figure > self.limit,
            Compare::AtLeast => figure >= self.limit,
            Compare::Below => figure < self.limit,
            Compare::AtMost => figure <= self.limit,
            Compare::Equal => figure == self.limit,
            Compare::Other => figure != self.limit,
        }
    }
}
