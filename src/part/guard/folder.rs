//! An exchange over a folder that all hosts see.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::exchange::{Exchange, place};
use crate::error::{Error, Result};
use crate::part::Part;
use crate::temporary::{Readers, Temporary, random};

const FOLDER: &str = "the guard needs a folder that all hosts may write to";

/// The folder of a series, in front of its number.
const BEGIN: &str = "begin-";

/// An exchange over a folder that all hosts see, such as one of a cluster's file system.
///
/// What lies there of an earlier run is not taken for this one's: at the start each host draws a number, and a host counts as there when it has
/// read this host's. A series has `begin-N/host-I.json` of each host, and what is said later lies in a folder that is
/// named by all of the numbers. A run of four hosts keeps some ten files of a few KiB.
///
/// Series are counted in the folder: a host begins the last one that is there, or where it has begun that already the one behind it. So one that was started again
/// begins the series behind that of the others, who find it there when they miss it.
#[derive(Clone, Debug)]
pub struct SharedFolder {
    folder: PathBuf,
    said: Option<(usize, usize)>,
    host: usize,
    count: usize,
    /// The number of the present series of so many hosts.
    series: u64,
    hello: Hello,
    /// The folder of later rounds, once all are there.
    rounds: Option<PathBuf>,
}

/// The first word of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    /// The number that it has drawn.
    number: String,
    /// The numbers of others, as far as it has read them.
    seen: Vec<Option<String>>,
    statement: String,
}

impl SharedFolder {
    /// An exchange over `folder`, which is made if it is not there, of hosts whose parts say which they are.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { folder, said: None, host: 0, count: 1, series: 0, hello: Hello::default(), rounds: None }
    }

    /// The same for host `index` of `count`: where several have one part, and where parts are listed.
    #[must_use]
    pub fn host(mut self, index: usize, count: usize) -> Self {
        self.said = Some((index, count));
        self
    }

    /// The folder of hosts of this number.
    fn group(&self) -> PathBuf {
        self.folder.join(format!("of-{}", self.count))
    }

    /// The file of the first word of a host in a series.
    fn hello_in(&self, series: u64, host: usize) -> PathBuf {
        self.group().join(format!("{BEGIN}{series}")).join(format!("host-{host}.json"))
    }

    /// The number of the last series that a host of so many has begun.
    fn last_series(&self) -> Result<Option<u64>> {
        let series = |name: &OsStr| name.to_str()?.strip_prefix(BEGIN)?.parse().ok();
        match fs::read_dir(self.group()) {
            Ok(entries) => Ok(entries.flatten().filter_map(|entry| series(&entry.file_name())).max()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(e, self.group()).help(FOLDER)),
        }
    }

    /// The last series, if it is a later one, and the hosts that have begun it.
    fn later(&self) -> Result<(u64, Vec<usize>)> {
        let last = self.last_series()?.unwrap_or(0);
        let hosts = if last > self.series { 0..self.count } else { 0..0 };
        Ok((last, hosts.filter(|&host| self.hello_in(last, host).exists()).collect()))
    }

    /// Whether another has read the word of this one.
    fn knows_this(&self, other: &Hello) -> bool {
        other.seen.get(self.host) == Some(&Some(self.hello.number.clone()))
    }

    fn said_in(rounds: &Path, round: u64, host: usize) -> PathBuf {
        rounds.join(format!("{round}-host-{host}.json"))
    }

    /// Reads the first words, and lets each host know that it was read.
    fn greet(&mut self) -> Result<Vec<Option<String>>> {
        let mut hellos = Vec::new();
        let before = self.hello.seen.clone();
        for host in 0..self.count {
            let hello = if host == self.host { Some(self.hello.clone()) } else { self.read_hello(host)? };
            self.hello.seen[host] = hello.as_ref().map(|hello| hello.number.clone());
            hellos.push(hello);
        }
        if self.hello.seen != before {
            self.say_hello()?;
        }
        let knows = |hello: Option<Hello>| hello.filter(|hello| self.knows_this(hello)).map(|hello| hello.statement);
        let said: Vec<Option<String>> = hellos.into_iter().map(knows).collect();
        match said.iter().all(Option::is_some) {
            true => self.open_rounds()?,
            false => self.follow()?,
        }
        Ok(said)
    }

    /// Goes to the last series, where hosts have begun it without having met this one here, and so never will.
    fn follow(&mut self) -> Result<()> {
        let (last, hosts) = self.later()?;
        for host in hosts {
            // Those that have met it here have said so before they began another.
            if !self.read_hello(host)?.is_some_and(|hello| self.knows_this(&hello)) {
                self.series = last;
                self.hello.seen.fill(None);
                return self.say_hello();
            }
        }
        Ok(())
    }

    fn read_hello(&self, host: usize) -> Result<Option<Hello>> {
        let path = self.hello_in(self.series, host);
        let Some(text) = read(&path)? else { return Ok(None) };
        serde_json::from_str(&text).map(Some).map_err(|e| {
            Error::state(format!("not the first word of a host: {e}"))
                .path(&path)
                .help("give the guard a folder of its own")
        })
    }

    fn say_hello(&self) -> Result<()> {
        write(&self.hello_in(self.series, self.host), &serde_json::to_string(&self.hello).expect("texts serialise"))
    }

    /// Makes the folder of later rounds; one host takes away what earlier series have left, which all hosts have behind them.
    fn open_rounds(&mut self) -> Result<()> {
        let numbers: Vec<String> = self.hello.seen.iter().flatten().cloned().collect();
        let name = format!("rounds-{:016x}", xxh3_64(numbers.join(" ").as_bytes()));
        let is_old = |entry: &str| match entry.strip_prefix(BEGIN) {
            Some(series) => series.parse().is_ok_and(|series: u64| series < self.series),
            None => entry.starts_with("rounds-") && entry != name,
        };
        if self.host == 0 {
            for entry in fs::read_dir(self.group()).map_err(|e| Error::io(e, self.group()))?.flatten() {
                if entry.file_name().to_str().is_some_and(is_old) {
                    // Nobody reads it any more; it may lie there all the same.
                    let _ = fs::remove_dir_all(entry.path());
                }
            }
        }
        self.rounds = Some(self.group().join(name));
        Ok(())
    }
}

impl Exchange for SharedFolder {
    fn begin(&mut self, part: &Part) -> Result<()> {
        (self.host, self.count) = place(self.said, part)?;
        let last = self.last_series()?.unwrap_or(0);
        self.series = last + u64::from(self.hello_in(last, self.host).exists());
        self.hello = Hello { number: format!("{:016x}", random()), seen: vec![None; self.count], ..Hello::default() };
        self.rounds = None;
        Ok(())
    }

    fn post(&mut self, round: u64, statement: &str) -> Result<()> {
        match &self.rounds {
            Some(rounds) if round > 0 => write(&Self::said_in(rounds, round, self.host), statement),
            // All have met in round 0 when they come to another.
            _ => {
                statement.clone_into(&mut self.hello.statement);
                self.say_hello()
            }
        }
    }

    fn read(&mut self, round: u64) -> Result<Vec<Option<String>>> {
        let rounds = match &self.rounds {
            Some(rounds) if round > 0 => rounds,
            _ => return self.greet(),
        };
        let said: Vec<Option<String>> =
            (0..self.count).map(|host| read(&Self::said_in(rounds, round, host))).collect::<Result<_>>()?;
        if said.iter().all(Option::is_some) {
            // All have read the round before when they speak in this one.
            let _ = fs::remove_file(Self::said_in(rounds, round - 1, self.host));
        }
        Ok(said)
    }

    fn has_begun_anew(&mut self, round: u64) -> Result<bool> {
        let Some(rounds) = self.rounds.as_ref().filter(|_| round > 0) else { return Ok(false) };
        // In this order: one that goes on to another series has spoken in the rounds of this one before.
        let (_, hosts) = self.later()?;
        Ok(hosts.into_iter().any(|host| !Self::said_in(rounds, round, host).exists()))
    }
}

/// Reads a file that appears whole.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(e, path)),
    }
}

/// Writes a file that appears whole, in a folder that is made for it.
fn write(path: &Path, text: &str) -> Result<()> {
    let written = || {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let (mut file, temporary) = Temporary::create(path, Readers::AsUsual)?;
        file.write_all(text.as_bytes())?;
        drop(file);
        temporary.publish(path)
    };
    written().map_err(|e| Error::io(e, path).help(FOLDER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(said: Vec<Option<String>>) -> Vec<String> {
        said.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// A host begins, and says `word`.
    fn begins(folder: &Path, index: usize, word: &str) -> SharedFolder {
        let mut host = SharedFolder::new(folder);
        host.begin(&Part::of(index, 2)).unwrap();
        host.post(0, word).unwrap();
        host
    }

    #[test]
    fn hosts_meet_and_go_on() {
        let dir = tempfile::tempdir().unwrap();
        let mut first = begins(dir.path(), 0, "a");
        assert_eq!(texts(first.read(0).unwrap()), ["", ""], "not even itself: nobody has read it");
        let mut second = begins(dir.path(), 1, "b");
        second.read(0).unwrap();
        assert_eq!(texts(first.read(0).unwrap()), ["a", "b"]);
        assert_eq!(texts(second.read(0).unwrap()), ["a", "b"]);
        for round in 1..4 {
            first.post(round, "c").unwrap();
            assert_eq!(texts(first.read(round).unwrap()), ["c", ""]);
            second.post(round, "d").unwrap();
            assert_eq!(texts(second.read(round).unwrap()), ["c", "d"]);
            assert_eq!(texts(first.read(round).unwrap()), ["c", "d"]);
        }
        let left = fs::read_dir(first.rounds.as_ref().unwrap()).unwrap().count();
        assert_eq!(left, 2, "a file of each host is kept");
    }

    #[test]
    fn what_an_earlier_run_has_left_is_not_taken_for_this_one() {
        let dir = tempfile::tempdir().unwrap();
        for word in ["a", "b", "c"] {
            let mut first = begins(dir.path(), 0, word);
            // The other host's word of the run before lies there.
            assert_eq!(texts(first.read(0).unwrap())[1], "");
            let mut second = begins(dir.path(), 1, word);
            (0..2).for_each(|_| drop((second.read(0).unwrap(), first.read(0).unwrap())));
            assert_eq!(texts(first.read(0).unwrap()), [word, word]);
            first.post(1, word).unwrap();
        }
        let kept = fs::read_dir(dir.path().join("of-2")).unwrap().count();
        assert_eq!(kept, 2, "the words of the start, and the last rounds");
    }

    #[test]
    fn another_series_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (begins(dir.path(), 0, "a"), begins(dir.path(), 1, "b"));
        (0..2).for_each(|_| drop((first.read(0).unwrap(), second.read(0).unwrap())));
        assert!(second.rounds.is_some());
        // It has not looked since the other has read it.
        second.begin(&Part::of(1, 2)).unwrap();
        second.post(0, "d").unwrap();
        assert_eq!(texts(first.read(0).unwrap()), ["a", "b"]);
    }

    /// A host had begun, and nobody came to meet it; when all are started again, another is the first.
    #[test]
    fn a_series_in_which_nobody_was_met_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        drop(begins(dir.path(), 0, "old"));
        let mut second = begins(dir.path(), 1, "b");
        assert_eq!(texts(second.read(0).unwrap()), ["", ""]);
        let mut first = begins(dir.path(), 0, "a");
        assert_ne!(first.series, second.series);
        (0..3).for_each(|_| drop((first.read(0).unwrap(), second.read(0).unwrap())));
        for host in [&mut first, &mut second] {
            assert_eq!((texts(host.read(0).unwrap()), host.series), (vec!["a".to_owned(), "b".to_owned()], 1));
        }
    }

    /// The others see it in a round in which it is silent, and in no other.
    #[test]
    fn one_that_was_started_again_is_seen_by_those_that_miss_it() {
        let dir = tempfile::tempdir().unwrap();
        let (mut first, mut second) = (begins(dir.path(), 0, "a"), begins(dir.path(), 1, "b"));
        (0..2).for_each(|_| drop((first.read(0).unwrap(), second.read(0).unwrap())));
        for round in 1..3 {
            first.post(round, "c").unwrap();
            assert!(!first.has_begun_anew(round).unwrap());
            if round == 1 {
                second.post(1, "d").unwrap();
            }
        }
        let mut second = begins(dir.path(), 1, "e");
        assert!(!first.has_begun_anew(1).unwrap() && first.has_begun_anew(2).unwrap());
        first.begin(&Part::of(0, 2)).unwrap();
        first.post(0, "f").unwrap();
        (0..2).for_each(|_| drop((first.read(0).unwrap(), second.read(0).unwrap())));
        assert_eq!(texts(second.read(0).unwrap()), ["f", "e"]);
        assert_eq!(first.rounds, second.rounds);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let listed = Part::listed([0], 4).unwrap();
        let error = SharedFolder::new(dir.path()).begin(&listed).unwrap_err();
        assert!(error.message().contains("do not say which host"), "{error}");
        SharedFolder::new(dir.path()).host(0, 2).begin(&listed).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let mut host = SharedFolder::new(&file);
        assert!(host.begin(&Part::of(0, 2)).unwrap_err().help_text().unwrap().contains("may write to"));
    }
}
