//! Points of a sweep: every combination of the values of its settings.

use crate::{Error, Result};

use crate::cli::how::{option, picks_rows};

/// Setting with the values to try.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sweep {
    key: String,
    values: Vec<String>,
}

impl Sweep {
    /// Parses an argument such as `workers=0,1,2`.
    pub(crate) fn parse(text: &str) -> std::result::Result<Self, String> {
        let needed = || "a setting and its values are needed, such as workers=0,1,2".to_owned();
        let (key, values) = text.split_once('=').ok_or_else(needed)?;
        let values = split(values);
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(needed());
        }
        Ok(Self { key: key.trim().to_owned(), values })
    }
}

/// Splits a list at the commas outside brackets.
fn split(text: &str) -> Vec<String> {
    let (mut parts, mut depth) = (vec![String::new()], 0i32);
    for c in text.chars() {
        depth += i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'));
        match parts.last_mut() {
            Some(part) if c != ',' || depth > 0 => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// Point of a sweep: a value for each of its settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point(pub(crate) Vec<(String, String)>);

impl Point {
    /// Returns every combination; the last setting varies fastest.
    ///
    /// # Errors
    /// If a setting is swept twice.
    pub(crate) fn all(sweeps: &[Sweep]) -> Result<Vec<Self>> {
        for (i, sweep) in sweeps.iter().enumerate() {
            if sweeps[..i].iter().any(|before| before.key == sweep.key) {
                return Err(Error::config(format!("`{}` is swept twice", sweep.key))
                    .help(format!("give all its values at once: --sweep {}=A,B,C", sweep.key)));
            }
        }
        let mut points = vec![Self(Vec::new())];
        for sweep in sweeps {
            let with = |point: &Self, value: &String| {
                Self(point.0.iter().cloned().chain([(sweep.key.clone(), value.clone())]).collect())
            };
            points = points.iter().flat_map(|point| sweep.values.iter().map(|value| with(point, value))).collect();
        }
        Ok(points)
    }

    /// Returns the settings that change the data: parameters, and options that pick rows.
    /// Points that agree in these settings must deliver the same batches.
    pub(crate) fn data(&self) -> Vec<(String, String)> {
        self.0.iter().filter(|(key, _)| option(key).is_none() || picks_rows(key)).cloned().collect()
    }

    /// Returns the settings that are parameters of the pipeline.
    pub(crate) fn parameters(&self) -> Vec<(String, String)> {
        self.0.iter().filter(|(key, _)| option(key).is_none()).cloned().collect()
    }
}

/// Formats settings as `workers=1 batch=16`.
pub(crate) fn label(settings: &[(String, String)]) -> String {
    settings.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(sweeps: &[&str]) -> Vec<String> {
        let sweeps: Vec<_> = sweeps.iter().map(|text| Sweep::parse(text).unwrap()).collect();
        Point::all(&sweeps).unwrap().iter().map(|point| label(&point.0)).collect()
    }

    #[test]
    fn points_are_all_combinations() {
        assert_eq!(labels(&[]), [""]);
        assert_eq!(labels(&["workers=0,1"]), ["workers=0", "workers=1"]);
        assert_eq!(
            labels(&["workers=0,1", "batch=8, 16"]),
            ["workers=0 batch=8", "workers=0 batch=16", "workers=1 batch=8", "workers=1 batch=16"]
        );
        assert_eq!(labels(&["length={tokens: 8, ids: 9},{tokens: 1}"]).len(), 2);
        let point = Point(vec![("workers".into(), "1".into()), ("batch".into(), "8".into())]);
        assert_eq!(label(&point.data()), "batch=8");
        let point = Point(["part", "deal", "buffer", "batch"].map(|key| (key.into(), "1".into())).into());
        assert_eq!(
            (label(&point.data()), label(&point.parameters())),
            ("part=1 deal=1 batch=1".into(), "batch=1".into())
        );
    }

    #[test]
    fn what_is_no_sweep_is_refused() {
        for text in ["workers", "=1", "workers=", "workers=1,,2"] {
            assert!(Sweep::parse(text).is_err(), "{text}");
        }
        let sweep = Sweep::parse("workers=1").unwrap();
        assert!(Point::all(&[sweep.clone(), sweep]).is_err());
    }
}
