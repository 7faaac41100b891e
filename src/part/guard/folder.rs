//! Exchange over a folder that all hosts share.

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

/// Prefix of a series folder's name, before its number.
const BEGIN: &str = "begin-";

/// Exchange over a folder that all hosts share, for example on a cluster file system.
///
/// Files of an earlier run are not mistaken for files of this run. At the start, each host draws a random number. A host counts as present
/// once it has read this host's number. A series has a file `begin-N/host-I.json` for each host. Later statements are in a folder
/// whose name is derived from all of the numbers. A run of four hosts keeps about ten files of a few KiB.
///
/// Series are numbered in the folder. A host joins the last existing series, or begins the next if it has already begun the last. A
/// restarted host therefore begins the series after the current series. The other hosts find it once its statement is missing.
#[derive(Clone, Debug)]
pub struct SharedFolder {
    folder: PathBuf,
    said: Option<(usize, usize)>,
    host: usize,
    count: usize,
    /// Number of the current series for this number of hosts.
    series: u64,
    hello: Hello,
    /// Folder of later rounds, once all hosts are present.
    rounds: Option<PathBuf>,
}

/// First message of a host in a series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    /// Random number of the host.
    number: String,
    /// Numbers of the hosts that it has read.
    seen: Vec<Option<String>>,
    statement: String,
}

impl SharedFolder {
    /// Creates an exchange over `folder` for hosts whose parts give their index. The folder is created if it is missing.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { folder, said: None, host: 0, count: 1, series: 0, hello: Hello::default(), rounds: None }
    }

    /// Sets the index of this host and the number of hosts. Required if several hosts have equal parts, or if parts are listed.
    #[must_use]
    pub fn host(mut self, index: usize, count: usize) -> Self {
        self.said = Some((index, count));
        self
    }

    /// Returns the folder for this number of hosts.
    fn group(&self) -> PathBuf {
        self.folder.join(format!("of-{}", self.count))
    }

    /// Returns the path of a host's first message in a series.
    fn hello_in(&self, series: u64, host: usize) -> PathBuf {
        self.group().join(format!("{BEGIN}{series}")).join(format!("host-{host}.json"))
    }

    /// Returns the number of the last series for this number of hosts.
    fn last_series(&self) -> Result<Option<u64>> {
        let series = |name: &OsStr| name.to_str()?.strip_prefix(BEGIN)?.parse().ok();
        match fs::read_dir(self.group()) {
            Ok(entries) => Ok(entries.flatten().filter_map(|entry| series(&entry.file_name())).max()),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(Error::io(e, self.group()).help(FOLDER)),
        }
    }

    /// Returns the last series, and its hosts if it is later than the current series.
    fn later(&self) -> Result<(u64, Vec<usize>)> {
        let last = self.last_series()?.unwrap_or(0);
        let hosts = if last > self.series { 0..self.count } else { 0..0 };
        Ok((last, hosts.filter(|&host| self.hello_in(last, host).exists()).collect()))
    }

    /// Returns true if the other host has read the first message of this host.
    fn knows_this(&self, other: &Hello) -> bool {
        other.seen.get(self.host) == Some(&Some(self.hello.number.clone()))
    }

    fn said_in(rounds: &Path, round: u64, host: usize) -> PathBuf {
        rounds.join(format!("{round}-host-{host}.json"))
    }

    /// Reads the first messages, and records for each host that its message was read.
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

    /// Moves to the last series if a host has begun it without meeting this host here. Such a host never returns here.
    fn follow(&mut self) -> Result<()> {
        let (last, hosts) = self.later()?;
        for host in hosts {
            // A host that has met this host here recorded that before it began another series.
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
            Error::state(format!("not the hello of a host: {e}")).path(&path).help("give the guard a separate folder")
        })
    }

    fn say_hello(&self) -> Result<()> {
        write(&self.hello_in(self.series, self.host), &serde_json::to_string(&self.hello).expect("texts serialise"))
    }

    /// Sets the folder of later rounds. Host 0 deletes the files of earlier series, which all hosts have left.
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
                    // No host reads it any more, so a failure to delete it is harmless.
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
            // Hosts reach later rounds only after all have met in round 0.
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
            // All hosts have read the previous round before they post in this round.
            let _ = fs::remove_file(Self::said_in(rounds, round - 1, self.host));
        }
        Ok(said)
    }

    fn has_begun_anew(&mut self, round: u64) -> Result<bool> {
        let Some(rounds) = self.rounds.as_ref().filter(|_| round > 0) else { return Ok(false) };
        // The order matters: a host posts in the rounds of this series before it begins another series.
        let (_, hosts) = self.later()?;
        Ok(hosts.into_iter().any(|host| !Self::said_in(rounds, round, host).exists()))
    }
}

/// Reads a file that is written atomically. Returns `None` if the file is missing.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io(e, path)),
    }
}

/// Writes a file atomically, and creates its folder if needed.
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

    /// Begins a series as host `index`, and posts `word`.
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
            // The other host's message of the previous run is still in the folder.
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
        // The first host has not read since the second host read its message.
        second.begin(&Part::of(1, 2)).unwrap();
        second.post(0, "d").unwrap();
        assert_eq!(texts(first.read(0).unwrap()), ["a", "b"]);
    }

    /// A host had begun alone. After all hosts are restarted, another host is the first.
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

    /// The other hosts detect the restart in a round in which the host is missing, and in no other round.
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
        assert!(error.message().contains("does not determine the index of this host"), "{error}");
        SharedFolder::new(dir.path()).host(0, 2).begin(&listed).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let mut host = SharedFolder::new(&file);
        assert!(host.begin(&Part::of(0, 2)).unwrap_err().help_text().unwrap().contains("may write to"));
    }
}
