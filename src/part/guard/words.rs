//! Descriptions of hosts in error messages.

use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// Maximum number of groups, or of runs of hosts, in a message.
const MOST: usize = 6;

/// Groups hosts by value, the largest group first. Groups of equal size are in the order of their first hosts.
pub(super) fn groups<T: PartialEq>(said: impl IntoIterator<Item = T>) -> Vec<(T, Vec<usize>)> {
    let mut groups: Vec<(T, Vec<usize>)> = Vec::new();
    for (host, said) in said.into_iter().enumerate() {
        match groups.iter_mut().find(|(other, _)| *other == said) {
            Some((_, hosts)) => hosts.push(host),
            None => groups.push((said, vec![host])),
        }
    }
    // Stable sort: groups of equal size stay in the order of their first hosts.
    groups.sort_by_key(|(_, hosts)| std::cmp::Reverse(hosts.len()));
    groups
}

/// Formats hosts in ascending order: `host 3`, `hosts 0 to 2 and 5`.
pub(super) fn named(hosts: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &host in hosts {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == host => *last = host,
            _ => runs.push((host, host)),
        }
    }
    let left = runs.len().saturating_sub(MOST);
    let mut texts: Vec<String> = runs.iter().take(MOST).flat_map(|&run| texts_of(run)).collect();
    if left > 0 {
        let more: usize = runs[MOST..].iter().map(|(first, last)| last - first + 1).sum();
        texts.push(format!("{more} more"));
    }
    let plural = if hosts.len() == 1 { "host" } else { "hosts" };
    format!("{plural} {}", list(&texts))
}

fn texts_of((first, last): (usize, usize)) -> Vec<String> {
    match last - first {
        0 => vec![first.to_string()],
        1 => vec![first.to_string(), last.to_string()],
        _ => vec![format!("{first} to {last}")],
    }
}

/// Joins texts with commas, and with `and` before the last.
pub(super) fn list(texts: &[String]) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Formats the value of each group of hosts: `` `a` on hosts 0 to 2 and `b` on host 3``.
pub(super) fn sides(groups: &[(String, Vec<usize>)]) -> String {
    let mut texts: Vec<String> =
        groups.iter().take(MOST).map(|(said, hosts)| format!("{said} on {}", named(hosts))).collect();
    if groups.len() > MOST {
        texts.push(format!(
            "other values on {} more hosts",
            groups[MOST..].iter().map(|(_, hosts)| hosts.len()).sum::<usize>()
        ));
    }
    list(&texts)
}

/// Returns the error for hosts that have posted nothing within the timeout. `closed` names hosts that have closed their loaders.
#[cold]
pub(crate) fn silent(hosts: &[usize], of: usize, batch: u64, waited: Duration, closed: &str) -> Error {
    let have = if hosts.len() == 1 { "has" } else { "have" };
    let mut text = format!(
        "{} of {of} {have} sent nothing for {:.0} s: the other hosts are after batch {batch}",
        named(hosts),
        waited.as_secs_f64()
    );
    if !closed.is_empty() {
        text += &format!("; {closed}");
    }
    Error::new(ErrorKind::Worker, text).help(
        "check whether it failed, hangs, has not started, or reads fewer batches than the others; if steps or the start take \
         longer, raise the guard's timeout; a host can be restarted alone only if the guard uses a folder: otherwise restart \
         all hosts from one state",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_by_runs() {
        assert_eq!(named(&[3]), "host 3");
        assert_eq!(named(&[0, 1, 2, 5]), "hosts 0 to 2 and 5");
        assert_eq!(named(&[1, 2]), "hosts 1 and 2");
        let odd: Vec<usize> = (0..20).map(|at| 2 * at + 1).collect();
        assert_eq!(named(&odd), "hosts 1, 3, 5, 7, 9, 11 and 14 more");
    }

    #[test]
    fn the_largest_group_comes_first() {
        let found = groups(["b", "a", "c", "a"].map(str::to_owned));
        assert_eq!(sides(&found), "a on hosts 1 and 3, b on host 0 and c on host 2");
        let many = groups((0..40).map(|at| at.to_string()));
        assert!(sides(&many).ends_with("5 on host 5 and other values on 34 more hosts"), "{}", sides(&many));
    }
}
