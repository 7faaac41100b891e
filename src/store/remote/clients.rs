//! Clients of the stores.

use std::sync::Arc;

use object_store::{ObjectStore, RetryConfig};

use super::retry::root_cause;
use crate::error::{Error, ErrorKind, Result};
use crate::store::stores::{Facts, STORES};

/// Client of a store.
pub(in crate::store) type Client = Arc<dyn ObjectStore>;

/// Returns the client for the bucket of a URL.
pub(in crate::store) type Build = fn(&str, RetryConfig) -> Result<Client>;

/// Returns a client that was built, or the error that its configuration is wrong.
pub(in crate::store) fn built<S: ObjectStore>(client: object_store::Result<S>) -> Result<Client> {
    match client {
        Ok(client) => Ok(Arc::new(client)),
        Err(e) => Err(Error::new(ErrorKind::Config, format!("the store cannot be set up: {}", root_cause(&e)))),
    }
}

/// Joins a text of each store that has one: `a, b, or c`.
pub(super) fn any(text: impl Fn(&Facts) -> Option<&'static str>) -> String {
    let texts: Vec<&str> = STORES.iter().filter_map(|store| text(store.facts)).collect();
    match &*texts {
        [first @ .., last] if !first.is_empty() => format!("{}, or {last}", first.join(", ")),
        texts => texts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_name_the_variables_of_every_store() {
        assert_eq!(any(|facts| facts.key).matches("`, or `").count(), 1);
        let last = STORES.iter().rev().find_map(|store| store.facts.host).unwrap();
        assert!(any(|facts| facts.host).ends_with(&format!(", or {last}")));
    }
}
