//! Host lookup. An unknown host is an error after a few seconds.

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Mutex;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::clients;
use super::retry::Failure;
use crate::error::ErrorKind;
use crate::sync::Locked;

/// Failed lookup of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no address of the host {host:?} is found: {cause}")]
pub(in crate::store) struct NoHost {
    host: String,
    cause: String,
}

impl NoHost {
    /// Returns the failed lookup among an error and its causes.
    pub(in crate::store) fn in_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        std::iter::successors(Some(error), |&error| error.source()).find_map(|error| error.downcast_ref())
    }

    pub(in crate::store) fn failure(&self) -> Failure {
        let made = clients::any(|facts| facts.host);
        Failure::new(ErrorKind::Io, self.to_string())
            .help(format!("check the spelling of the host, and the network; the host of a bucket is made {made}"))
    }
}

/// Resolver that uses the lookup functions of the system.
pub(in crate::store) struct Lookup {
    /// Whether addresses are returned in random order. Large stores have many servers under a single name.
    pub(in crate::store) shuffled: bool,
}

/// Hosts that this process has resolved.
static FOUND: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

impl Resolve for Lookup {
    fn resolve(&self, name: Name) -> Resolving {
        let (host, shuffled) = (name.as_str().to_owned(), self.shuffled);
        Box::pin(async move {
            let mut search = Search { pauses: &PAUSES, was_found: FOUND.locked().contains(&host) };
            loop {
                let asked = host.clone();
                let found = tokio::task::spawn_blocking(move || {
                    Ok::<Vec<SocketAddr>, io::Error>((asked.as_str(), 0).to_socket_addrs()?.collect())
                });
                match found.await? {
                    Ok(found) => return Ok(ordered(host, found, shuffled)),
                    // The pause before the next attempt.
                    Err(error) => tokio::time::sleep(search.after(&host, error)?).await,
                }
            }
        })
    }
}

fn ordered(host: String, mut found: Vec<SocketAddr>, shuffled: bool) -> Addrs {
    FOUND.locked().insert(host);
    if shuffled {
        let order = std::hash::RandomState::new();
        found.sort_by_cached_key(|address| std::hash::BuildHasher::hash_one(&order, address));
    }
    Box::new(found.into_iter())
}

/// Pauses between lookups of a host that was never resolved. During a lookup, the system may also wait for its servers.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(1500)];

/// Attempts to resolve a host.
struct Search<'a> {
    pauses: &'a [Duration],
    /// Whether this process has resolved the host before.
    was_found: bool,
}

impl Search<'_> {
    /// Returns the pause after a failed lookup.
    ///
    /// # Errors
    /// [`NoHost`] if no attempt is left. Returns `error` unchanged if the host was resolved before: its request is then
    /// retried like all requests.
    fn after(&mut self, host: &str, error: io::Error) -> Result<Duration, Box<dyn StdError + Send + Sync>> {
        if self.was_found {
            return Err(error.into());
        }
        let Some((pause, rest)) = self.pauses.split_first() else {
            return Err(NoHost { host: host.to_owned(), cause: error.to_string() }.into());
        };
        self.pauses = rest;
        Ok(*pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(was_found: bool) -> (usize, Duration, Box<dyn StdError + Send + Sync>) {
        let (mut search, mut paused) = (Search { pauses: &PAUSES, was_found }, Duration::ZERO);
        for made in 1.. {
            match search.after("nohost.invalid", io::Error::other("unknown")) {
                Ok(pause) => paused += pause,
                Err(error) => return (made, paused, error),
            }
        }
        unreachable!()
    }

    #[test]
    fn a_host_that_was_never_found_is_given_up_after_three_attempts() {
        let (made, paused, error) = attempts(false);
        assert_eq!((made, paused), (3, Duration::from_secs(2)));
        let text = NoHost::in_error(&*error).unwrap().failure().error().to_string();
        assert_eq!(text, "no address of the host \"nohost.invalid\" is found: unknown");
    }

    #[test]
    fn a_host_that_was_found_before_is_left_to_the_attempts_of_its_request() {
        let (made, paused, error) = attempts(true);
        assert_eq!((made, paused, NoHost::in_error(&*error)), (1, Duration::ZERO, None));
    }
}
