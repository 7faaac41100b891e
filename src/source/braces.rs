//! Expansion of braces in names: ranges of shards (`train-{00000..00127}.tar`) and lists (`{a,b}`).

use std::path::Path;

use crate::error::{Error, Result};
use crate::place;

/// Maximum number of names per pattern.
const MOST: usize = 1 << 20;

/// Returns all names of a pattern with braces, in order. A pattern without braces yields itself. Numbers with leading
/// zeros keep their written width. Braces that contain neither a range nor a list are literal.
pub(super) fn expand(pattern: &str) -> Result<Vec<String>> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, inside, behind)) = next(rest) {
        let words = words(inside).unwrap_or_else(|| vec![format!("{{{inside}}}")]);
        if names.len().saturating_mul(words.len()) > MOST {
            let shown = place::shown(Path::new(pattern)).display().to_string();
            return Err(Error::config(format!("the pattern {shown:?} stands for more than {MOST} names")));
        }
        let longer = |name: &String| words.iter().map(|word| format!("{name}{before}{word}")).collect::<Vec<_>>();
        names = names.iter().flat_map(longer).collect();
        rest = behind;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// Splits text into the parts before, inside and after the first pair of braces.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (inside, behind) = rest.split_once('}')?;
    Some((before, inside, behind))
}

fn words(inside: &str) -> Option<Vec<String>> {
    if let Some((first, last)) = inside.split_once("..") {
        return range(first, last);
    }
    inside.contains(',').then(|| inside.split(',').map(str::to_owned).collect())
}

fn range(first: &str, last: &str) -> Option<Vec<String>> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) || !is_number(last) {
        return None;
    }
    let (from, to): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let is_wide = [first, last].iter().any(|text| text.len() > 1 && text.starts_with('0'));
    let width = if is_wide { first.len().max(last.len()) } else { 0 };
    let name = |number: u64| format!("{number:0width$}");
    // One name beyond the maximum is enough for the caller to reject the pattern.
    let most = MOST + 1;
    Some(match from <= to {
        true => (from..=to).take(most).map(name).collect(),
        false => (to..=from).rev().take(most).map(name).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lists_are_names() {
        for (pattern, names) in [
            ("a", vec!["a"]),
            ("a-{008..010}.tar", vec!["a-008.tar", "a-009.tar", "a-010.tar"]),
            ("{9..11}", vec!["9", "10", "11"]),
            ("{2..0}", vec!["2", "1", "0"]),
            ("{a,b}-{0..1}", vec!["a-0", "a-1", "b-0", "b-1"]),
            ("{,x}y", vec!["y", "xy"]),
            ("{a}{b..c}{", vec!["{a}{b..c}{"]),
        ] {
            assert_eq!(expand(pattern).unwrap(), names, "{pattern}");
        }
        for pattern in ["{0..18446744073709551615}", "{0..99999}{0..99999}"] {
            assert!(expand(pattern).unwrap_err().message().contains("more than"), "{pattern}");
        }
    }
}
