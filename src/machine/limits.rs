//! Limits of this process, from `/proc/self/limits`.

use super::Machine;

/// Limit of this process; `None` means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Soft limit, which is in effect.
    pub(crate) now: Option<u64>,
    /// Hard limit, up to which the process may raise the soft limit.
    pub(crate) most: Option<u64>,
}

impl Machine {
    /// Returns the limit `name`, such as `Max open files`.
    pub(crate) fn limit(&self, name: &str) -> Option<Limit> {
        let text = self.text("/proc/self/limits")?;
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let mut words = line.split_whitespace();
        let mut next = || match words.next()? {
            "unlimited" => Some(None),
            number => number.parse().ok().map(Some),
        };
        Some(Limit { now: next()?, most: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    #[test]
    fn limits_are_found_by_their_names() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max open files            1024                 unlimited            files     \n\
                    Max locked memory         8388608              8388608              bytes     \n\
                    Max processes             odd                  8388608              processes \n";
        let (_folder, machine) = machine(&[("/proc/self/limits", text)]);
        assert_eq!(machine.limit("Max open files"), Some(Limit { now: Some(1024), most: None }));
        assert_eq!(machine.limit("Max locked memory"), Some(Limit { now: Some(8 << 20), most: Some(8 << 20) }));
        assert_eq!((machine.limit("Max processes"), machine.limit("Max pipes")), (None, None));
    }
}
