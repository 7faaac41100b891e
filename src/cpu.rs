//! Processor time of this process and of all other programs, read from `/proc`. Unknown on systems without `/proc`.

use std::fs::read_to_string;

/// Clock ticks per second in `/proc`. Linux fixes the unit at 100, independent of the kernel timer.
const TICKS_PER_S: f64 = 100.0;

/// Clock ticks since boot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cpu {
    /// Ticks of all cores, including idle time.
    all: u64,
    /// Ticks of all cores, without idle time.
    busy: u64,
    /// Ticks of this process and of its children that have ended.
    ours: u64,
}

impl Cpu {
    /// Reads the present ticks. Children that are still running are not included.
    pub(crate) fn now() -> Option<Self> {
        let (all, busy) = machine(&read_to_string("/proc/stat").ok()?)?;
        Some(Self { all, busy, ours: own(&read_to_string("/proc/self/stat").ok()?)? })
    }

    /// Adds `seconds` of children that are still running.
    pub(crate) fn with(self, seconds: f64) -> Self {
        Self { ours: self.ours + (seconds * TICKS_PER_S) as u64, ..self }
    }

    /// Returns the share of all cores that other programs used since `before`, 0 to 1.
    pub(crate) fn others_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|&all| all > 0)?;
        let ours = self.ours.saturating_sub(before.ours);
        Some((self.busy.saturating_sub(before.busy).saturating_sub(ours)) as f64 / all as f64)
    }
}

/// Parses the ticks of all cores: the total, and the busy ticks without idle and disk waits. User time includes guests.
fn machine(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
    let all = ticks.iter().sum::<u64>();
    let idle = ticks.get(3)? + ticks.get(4).copied().unwrap_or(0);
    Some((all, all - idle))
}

/// Parses the user and system time of the process and of its awaited children.
fn own(stat: &str) -> Option<u64> {
    let ticks: Vec<u64> = fields(stat).skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum())
}

/// Returns the fields of a `stat` file after the process name: state, parent, …. The name may contain spaces and
/// parentheses.
pub(crate) fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rfind(')').map_or("", |end| &stat[end + 1..]).split_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_understood() {
        assert_eq!(machine("cpu  10 1 5 80 4 0 0 0 9 0\ncpu0 1"), Some((100, 16)));
        let stat = "7 (a (b) c) S 3 7 7 0 -1 0 0 0 0 0 11 12 13 14 20 0";
        assert_eq!((fields(stat).nth(1), own(stat)), (Some("3"), Some(50)));
        assert_eq!((machine(""), own("7 (x) S 1")), (None, None));
        let cpu = |all, busy, ours| Cpu { all, busy, ours };
        assert_eq!(cpu(300, 150, 90).others_since(cpu(100, 50, 20)), Some(0.15));
        assert_eq!(cpu(300, 150, 90).with(0.1).others_since(cpu(100, 50, 20)), Some(0.1));
        assert_eq!(cpu(100, 50, 20).others_since(cpu(100, 50, 20)), None);
        assert_eq!(Cpu::now().is_some(), cfg!(target_os = "linux"));
    }
}
