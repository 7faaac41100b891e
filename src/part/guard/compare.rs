//! Comparison of statements, which finds the first difference and its hosts.

use serde_json::Value as Json;

use super::statement::{Mark, Statement};
use super::words::{groups, list, named, sides};
use crate::error::{Error, ErrorKind, Result};
use crate::part::Part;

/// Compares the statements of all hosts, in host order. The result depends only on the statements, so it is equal on all hosts.
///
/// # Errors
/// - [`ErrorKind::Config`] if the version, a stage, a source or the deal differs, or if the parts conflict or omit rows.
/// - [`ErrorKind::Data`] with the first batch that differs.
/// - [`ErrorKind::State`] if hosts are at different batches or have different states.
/// - [`ErrorKind::Worker`] if a host has failed.
///
/// Errors name the difference and the hosts.
pub fn compare(statements: &[String]) -> Result<()> {
    let statements = read(statements)?;
    pipelines(&statements)?;
    let deals = groups(statements.iter().map(|s| format!("`{}`", s.deal)));
    if deals.len() > 1 {
        return Err(disagree(ErrorKind::Config, &format!("rows are dealt as {}", sides(&deals)))
            .help("give all hosts one `deal`"));
    }
    parts(&statements)?;
    batches(&statements)?;
    failures(statements.iter().enumerate())?;
    positions(&statements)
}

/// Returns true if the statements differ and details would locate the difference, in a stage or in a batch.
pub(crate) fn wants_details(statements: &[String]) -> bool {
    let Ok(statements) = read(statements) else { return false };
    let short = statements.iter().any(|s| s.trail().is_none()) && statements.iter().all(|s| s.failed.is_none());
    short && groups(statements.iter().map(|s| (&s.fingerprint, s.digest()))).len() > 1
}

#[cold]
fn disagree(kind: ErrorKind, how: &str) -> Error {
    Error::new(kind, format!("hosts disagree: {how}"))
}

/// Parses statements and requires equal versions, since other versions may have another format.
fn read(statements: &[String]) -> Result<Vec<Statement>> {
    let broken =
        |host: usize, e: serde_json::Error| Error::state(format!("the statement of host {host} cannot be read: {e}"));
    let json = |(host, text): (usize, &String)| serde_json::from_str::<Json>(text).map_err(|e| broken(host, e));
    let all = statements.iter().enumerate().map(json).collect::<Result<Vec<_>>>()?;
    let version = |json: &Json| json["version"].as_str().unwrap_or("none").to_owned();
    let versions = groups(all.iter().map(version));
    if versions.len() > 1 {
        return Err(disagree(ErrorKind::Config, &format!("gristmill is {}", sides(&versions)))
            .help("install one version on all hosts"));
    }
    all.into_iter().enumerate().map(|(host, json)| serde_json::from_value(json).map_err(|e| broken(host, e))).collect()
}

/// Compares pipelines, stage by stage.
fn pipelines(statements: &[Statement]) -> Result<()> {
    if groups(statements.iter().map(|s| &s.fingerprint)).len() < 2 {
        return Ok(());
    }
    let most = statements.iter().map(|s| s.pipeline.len()).max().unwrap_or(0);
    for stage in 0..most {
        let line =
            |s: &Statement| s.pipeline.get(stage).map_or_else(|| "nothing".to_owned(), |line| format!("`{line}`"));
        let lines = groups(statements.iter().map(line));
        if lines.len() < 2 {
            continue;
        }
        let sources =
            |s: &Statement| s.sources.iter().find(|(source, _)| *source == stage).map(|(_, files)| files.clone());
        let (what, help) = if let Some(files) = statements.iter().map(sources).collect::<Option<Vec<_>>>() {
            other_file(stage, &files)?;
            ("source", FILES)
        } else {
            ("stage", "give all hosts one pipeline, with the same arguments and seeds")
        };
        return Err(disagree(ErrorKind::Config, &format!("{what} {stage} is {}", sides(&lines))).help(help));
    }
    let prints = groups(statements.iter().map(|s| s.fingerprint.clone()));
    Err(disagree(ErrorKind::Config, &format!("the fingerprint of the pipeline is {}", sides(&prints))))
}

const FILES: &str = "give all hosts the same files: a name, a size or a hash of the contents differs";

/// Returns an error for the first file that differs, if all hosts list files and a host lists several.
fn other_file(source: usize, files: &[Vec<String>]) -> Result<()> {
    let most = files.iter().map(Vec::len).max().unwrap_or(0);
    if most < 2 || files.iter().any(Vec::is_empty) {
        return Ok(());
    }
    let file =
        |files: &Vec<String>, at: usize| files.get(at).map_or_else(|| "nothing".to_owned(), |file| format!("`{file}`"));
    for at in 0..most {
        let named = groups(files.iter().map(|files| file(files, at)));
        if named.len() > 1 {
            let text = format!("file {at} of source {source} is {}", sides(&named));
            return Err(disagree(ErrorKind::Config, &text).help(FILES));
        }
    }
    Ok(())
}

/// Checks that the parts cover all rows. Several hosts may have equal parts.
fn parts(statements: &[Statement]) -> Result<()> {
    let told = |(host, s): (usize, &Statement)| s.part().map_err(|e| e.of(&format!("the part of host {host}")));
    let parts = statements.iter().enumerate().map(told).collect::<Result<Vec<_>>>()?;
    let counts = groups(parts.iter().map(|part| part.as_share().map(|(_, count)| count)));
    match counts.as_slice() {
        [(Some(count), _)] => shares(&parts, *count),
        _ if counts.iter().all(|(count, _)| count.is_some()) => {
            let counts: Vec<_> =
                counts.into_iter().map(|(n, hosts)| (n.unwrap_or_default().to_string(), hosts)).collect();
            Err(disagree(ErrorKind::Config, &format!("the number of parts is {}", sides(&counts))).help(HELP))
        }
        _ => rows(&parts),
    }
}

const HELP: &str =
    "give each host a different part, from 0/N to the last; hosts that compute on the same rows share a part";

/// Checks that each of `count` shares has a host.
fn shares(parts: &[Part], count: usize) -> Result<()> {
    let index = |part: &Part| part.as_share().map_or(0, |(index, _)| index);
    let missing: Vec<usize> = (0..count).filter(|&wanted| parts.iter().all(|part| index(part) != wanted)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = missing.iter().take(4).map(|index| format!("{index}/{count}")).collect();
    let more =
        if missing.len() > names.len() { format!(" and {} more", missing.len() - names.len()) } else { String::new() };
    let plural = if missing.len() == 1 { "part" } else { "parts" };
    let several = groups(parts.iter().map(index)).into_iter().filter(|(_, hosts)| hosts.len() > 1);
    let twice: Vec<String> =
        several.take(4).map(|(index, hosts)| format!("{index}/{count} is the part of {}", named(&hosts))).collect();
    let twice = if twice.is_empty() { format!("there are {} hosts", parts.len()) } else { list(&twice) };
    Err(Error::config(format!("no host has {plural} {}{more}, and {twice}", list(&names))).help(HELP))
}

/// Checks that each row of a batch has a host, if parts are listed.
fn rows(parts: &[Part]) -> Result<()> {
    let batches = groups(parts.iter().filter_map(|part| part.as_listed().map(|(_, batch)| batch)));
    let &[(batch, _)] = &batches.as_slice() else {
        let batches: Vec<String> = batches.iter().map(|(batch, _)| batch.to_string()).collect();
        return Err(disagree(ErrorKind::Config, &format!("parts are of batches of {} rows", list(&batches))));
    };
    let mut taken = vec![false; *batch];
    for (host, part) in parts.iter().enumerate() {
        let rows = part.rows(*batch).map_err(|e| e.of(&format!("the part of host {host}")))?;
        rows.iter().for_each(|row| taken[row] = true);
    }
    let left: Vec<usize> = (0..*batch).filter(|&row| !taken[row]).collect();
    match left.as_slice() {
        [] => Ok(()),
        [first, ..] => {
            let text =
                format!("{} of {batch} rows of every batch belong to no host, the first is row {first}", left.len());
            Err(Error::config(text).help(HELP))
        }
    }
}

/// Compares the batches that several hosts report, then the digests of earlier batches.
fn batches(statements: &[Statement]) -> Result<()> {
    let Some(all) = statements.iter().map(Statement::trail).collect::<Option<Vec<_>>>() else {
        return digests(statements, statements.first().map_or(0, |s| s.batches));
    };
    let first = all.iter().map(|trail| trail.numbers().start).max().unwrap_or(0);
    let mut numbers: Vec<u64> = all.iter().flat_map(|trail| trail.numbers()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let mut comparable = true;
    for number in numbers {
        // A restarted host has no marks of earlier batches.
        let had = |mut found: Vec<(Option<Mark>, Vec<usize>)>| {
            found.retain(|(mark, _)| mark.is_some());
            found
        };
        let found = had(groups(all.iter().map(|trail| trail.mark(number))));
        if groups(found.iter().map(|(mark, _)| mark.map(Mark::kind))).len() > 1 {
            // One host has evaluated only its own rows, another all rows.
            comparable = false;
        } else if found.len() > 1 {
            return Err(other_batch(number, &found));
        }
    }
    if comparable { digests(statements, first) } else { Ok(()) }
}

/// Compares the digests of hosts with equal batch ranges. A difference lies before batch `end`.
fn digests(statements: &[Statement], end: u64) -> Result<()> {
    let whole = groups(statements.iter().map(|s| (s.batches, s.digest().0))).len() == 1;
    let digests = groups(statements.iter().map(|s| s.digest().1));
    if whole && digests.len() > 1 {
        let hosts: Vec<(String, Vec<usize>)> =
            digests.into_iter().map(|(digest, hosts)| (format!("`{digest}`"), hosts)).collect();
        let text = format!("the digest of the batches before batch {end} is {}", sides(&hosts));
        return Err(disagree(ErrorKind::Data, &text).help(OTHER));
    }
    Ok(())
}

const OTHER: &str = "functions must return the same values on every host: no random numbers except from `random_map` \
    or from a seed and the element, no clock, no host name, no state kept between calls";

#[cold]
fn other_batch(number: u64, found: &[(Option<Mark>, Vec<usize>)]) -> Error {
    let sides: Vec<String> = found.iter().take(4).map(|(_, hosts)| named(hosts)).collect();
    let more = if found.len() > sides.len() { ", and more" } else { "" };
    let text = format!("batch {number} is the first that differs between {}{more}", list(&sides));
    disagree(ErrorKind::Data, &text).help(OTHER)
}

/// Reads the last statements of hosts, in host order. Returns the hosts that have closed their loaders, with the number of batches before the close.
///
/// Statements of other versions are ignored.
///
/// # Errors
/// [`ErrorKind::Worker`] for the first host that has failed.
pub(crate) fn last_words(said: &[Option<String>]) -> Result<Vec<(usize, u64)>> {
    let said = said.iter().enumerate();
    let said: Vec<_> =
        said.filter_map(|(host, text)| Some((host, serde_json::from_str(text.as_deref()?).ok()?))).collect();
    failures(said.iter().map(|(host, statement)| (*host, statement)))?;
    Ok(said.iter().filter(|(_, s)| s.closed).map(|(host, s)| (*host, s.batches)).collect())
}

/// Returns an error for the first host that has failed.
fn failures<'a>(mut statements: impl Iterator<Item = (usize, &'a Statement)>) -> Result<()> {
    let failed = statements.find_map(|(host, s)| Some((host, s.batches, s.failed.as_deref()?)));
    if let Some((host, batch, error)) = failed {
        let text = format!("host {host} has failed at batch {batch}: {error}");
        Err(Error::new(ErrorKind::Worker, text)
            .help("fix the error on the named host; the other hosts stopped because of it"))
    } else {
        Ok(())
    }
}

/// Returns the batch after which all hosts meet next, if some hosts wait for restarted hosts at earlier batches.
///
/// The batch is the position of the waiting hosts. If their stream has ended, the result is one higher, and no host reaches it.
pub(crate) fn meeting(statements: &[String]) -> Option<u64> {
    let statements = read(statements).ok()?;
    waiting(&statements).map(|s| s.batches + u64::from(s.ended))
}

/// Returns the first host that waits for restarted hosts.
fn waiting(statements: &[Statement]) -> Option<&Statement> {
    statements.iter().find(|s| s.waits)
}

/// Compares the positions and states of hosts. Hosts for which others wait may be at earlier batches.
fn positions(statements: &[Statement]) -> Result<()> {
    let waits = waiting(statements);
    let is_early = |s: &&Statement| {
        waits.is_some_and(|at| !s.waits && (s.batches < at.batches || (s.batches == at.batches && at.ended)))
    };
    let said = |say: &dyn Fn(&Statement) -> String| {
        let mut said = groups(statements.iter().map(|s| Some(s).filter(|s| !is_early(s)).map(say)));
        said.retain(|(said, _)| said.is_some());
        said.into_iter().map(|(said, hosts)| (said.unwrap_or_default(), hosts)).collect::<Vec<_>>()
    };
    let places = said(&|s| {
        let ended = if s.ended { "at the end after" } else { "after" };
        format!("{ended} batch {}", s.batches)
    });
    if places.len() > 1 {
        let help = match waits {
            None => "start all hosts from one state, and read equally many batches on each".to_owned(),
            Some(at) => format!(
                "resume a host that is restarted alone from a state of this run, after batch {} or earlier: the other hosts wait there",
                at.batches
            ),
        };
        return Err(disagree(ErrorKind::State, &format!("they are {}", sides(&places))).help(help));
    }
    let states = said(&|s| format!("`{}`", s.state));
    if states.len() > 1 {
        let batches = waits.or(statements.first()).map_or(0, |s| s.batches);
        return Err(disagree(
            ErrorKind::State,
            &format!("the hash of the state after batch {batches} is {}", sides(&states)),
        )
        .help("resume all hosts from a single state"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Fed, Guard};
    use super::*;

    fn statement(part: Part) -> Statement {
        let mut guard = Guard::new(0);
        (0..300).for_each(|number| guard.feed(number, Fed::Content(u128::from(number) << 80)));
        Statement { fingerprint: "f".into(), deal: "Even".into(), ..in_detail(&part, &guard) }
    }

    fn in_detail(part: &Part, guard: &Guard) -> Statement {
        let pipeline = ["range(0, 9, 1)", "shuffle(seed=1)", "to_iter"].map(str::to_owned).to_vec();
        Statement::new(part, guard).detailed(guard, pipeline, vec![(0, Vec::new())])
    }

    /// Returns the error message for these statements.
    fn told(statements: &[Statement]) -> String {
        let texts: Vec<String> = statements.iter().map(Statement::to_json).collect();
        compare(&texts).err().map_or_else(String::new, |error| error.message().to_owned())
    }

    /// Compares three hosts, of which the last has a changed statement.
    fn odd(change: impl FnOnce(&mut Statement)) -> String {
        let mut all = [0, 1, 2].map(|index| statement(Part::of(index, 3)));
        change(&mut all[2]);
        told(&all)
    }

    #[test]
    fn hosts_that_say_the_same_agree() {
        assert_eq!(odd(|_| ()), "");
        assert_eq!(told(&[statement(Part::whole())]), "");
    }

    #[test]
    fn the_first_that_differs_is_named() {
        assert_eq!(
            odd(|s| s.version = "9".into()),
            "hosts disagree: gristmill is 0.1.0 on hosts 0 and 1 and 9 on host 2"
        );
        let source = odd(|s| (s.fingerprint, s.pipeline[0]) = ("g".into(), "range(0, 8, 1)".into()));
        assert_eq!(
            source,
            "hosts disagree: source 0 is `range(0, 9, 1)` on hosts 0 and 1 and `range(0, 8, 1)` on host 2"
        );
        let stage = odd(|s| (s.fingerprint, s.pipeline[1]) = ("g".into(), "shuffle(seed=2)".into()));
        assert!(stage.starts_with("hosts disagree: stage 1 is `shuffle(seed=1)` on hosts 0 and 1"), "{stage}");
        let shorter = odd(|s| (s.fingerprint, _) = ("g".into(), s.pipeline.pop()));
        assert!(shorter.ends_with("`to_iter` on hosts 0 and 1 and nothing on host 2"), "{shorter}");
        assert!(odd(|s| s.fingerprint = "g".into()).contains("the fingerprint of the pipeline is"));
        assert!(
            odd(|s| s.deal = "Odd".into()).contains("rows are dealt as `Even` on hosts 0 and 1 and `Odd` on host 2")
        );
        assert!(odd(|s| s.state = "2".into()).contains("the hash of the state after batch 300 is"));
        assert!(
            odd(|s| s.ended = true)
                .contains("they are after batch 300 on hosts 0 and 1 and at the end after batch 300 on host 2")
        );
        assert_eq!(odd(|s| s.failed = Some("bad".into())), "host 2 has failed at batch 300: bad");
    }

    #[test]
    fn of_many_files_the_first_that_differs_is_named() {
        let differ = |files: [&[&str]; 2]| {
            told(&[0, 1].map(|index| {
                let mut one = statement(Part::of(index, 2));
                one.fingerprint = index.to_string();
                one.pipeline[0] = format!("jsonl({index})");
                one.sources[0].1 = files[index].iter().map(|&file| file.to_owned()).collect();
                one
            }))
        };
        assert_eq!(
            differ([&["a", "b", "c"], &["a", "x", "y"]]),
            "hosts disagree: file 1 of source 0 is `b` on host 0 and `x` on host 1"
        );
        assert_eq!(
            differ([&["a", "b"], &["a"]]),
            "hosts disagree: file 1 of source 0 is `b` on host 0 and nothing on host 1"
        );
        // The stage line names a single file, and equal files are not a difference.
        for files in [[&["a"][..], &["b"]], [&["a", "b"], &["a", "b"]], [&["a", "b"], &[]]] {
            assert!(differ(files).starts_with("hosts disagree: source 0 is `jsonl(0)` on host 0"));
        }
    }

    #[test]
    fn the_first_batch_that_differs_is_named() {
        for (at, fed, expected) in [
            (250, Fed::Content(1), "batch 250 is the first that differs between hosts 0 and 1 and host 2"),
            (20, Fed::Content(1), "the digest of the batches before batch 44 is"),
            // Not comparable: the host has only its own rows.
            (250, Fed::Index(1), ""),
        ] {
            let mut guard = Guard::new(0);
            for number in 0..300 {
                let same = Fed::Content(u128::from(number) << 80);
                guard.feed(number, if number == at { fed } else { same });
            }
            let part = Part::of(2, 3);
            let text = odd(|s| {
                *s = Statement { fingerprint: s.fingerprint.clone(), deal: s.deal.clone(), ..in_detail(&part, &guard) };
            });
            assert!(text.contains(expected) && text.is_empty() == expected.is_empty(), "{text}");
        }
    }

    /// Two hosts wait, and the last continues from an earlier batch or from a later batch.
    #[test]
    fn one_that_others_wait_for_may_be_at_an_earlier_batch() {
        let told = |ended: bool, batches: u64| {
            let mut all = [0, 1, 2].map(|index| Statement { waits: index < 2, ..statement(Part::of(index, 3)) });
            all[..2].iter_mut().for_each(|s| s.ended = ended);
            let guard = Guard::new(batches);
            all[2] = Statement { fingerprint: "f".into(), ..in_detail(&Part::of(2, 3), &guard) };
            all[2].deal = "Even".into();
            let texts: Vec<String> = all.iter().map(Statement::to_json).collect();
            (meeting(&texts), super::tests::told(&all))
        };
        for batches in [0, 299, 300] {
            assert_eq!(told(false, batches), (Some(300), String::new()));
            assert_eq!(told(true, batches), (Some(301), String::new()));
        }
        let text = "hosts disagree: they are after batch 300 on hosts 0 and 1 and after batch 301 on host 2";
        assert_eq!(told(false, 301), (Some(300), text.to_owned()));
        assert!(told(true, 301).1.contains("at the end after batch 300 on hosts 0 and 1"));
        assert_eq!(meeting(&[statement(Part::whole()).to_json()]), None);
    }

    #[test]
    fn every_row_is_somebodys() {
        let shares = |indices: &[(usize, usize)]| {
            told(&indices.iter().map(|&(index, count)| statement(Part::of(index, count))).collect::<Vec<_>>())
        };
        assert_eq!(
            shares(&[(0, 4), (1, 4), (1, 4), (2, 4)]),
            "no host has part 3/4, and 1/4 is the part of hosts 1 and 2"
        );
        assert_eq!(shares(&[(0, 3), (1, 3)]), "no host has part 2/3, and there are 2 hosts");
        // Tensor-parallel peers.
        assert_eq!(shares(&[(0, 2), (0, 2), (1, 2), (1, 2)]), "");
        assert_eq!(
            shares(&[(0, 3), (1, 3), (1, 2)]),
            "hosts disagree: the number of parts is 3 on hosts 0 and 1 and 2 on host 2"
        );
        let listed = |rows: &[&[usize]]| {
            let part = |rows: &&[usize]| statement(Part::listed(rows.iter().copied(), 6).unwrap());
            told(&rows.iter().map(part).collect::<Vec<_>>())
        };
        assert_eq!(listed(&[&[0, 1, 5], &[2, 3, 4]]), "");
        assert_eq!(listed(&[&[0, 1], &[2, 3]]), "2 of 6 rows of every batch belong to no host, the first is row 4");
        let mixed = [statement(Part::of(0, 2)), statement(Part::listed([3, 4, 5], 6).unwrap())];
        assert_eq!(told(&mixed), "");
    }

    #[test]
    fn what_is_no_statement_is_refused() {
        let good = statement(Part::whole()).to_json();
        for bad in ["{", "{\"version\": \"0.1.0\"}", "[]"] {
            assert!(compare(&[good.clone(), bad.to_owned()]).is_err(), "{bad}");
        }
    }
}
