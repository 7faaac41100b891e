//! The object stores. Each has a folder with its facts and its client, and a line in one list.

#[cfg(feature = "store")]
use super::remote::clients::Build;
use super::{azure, gcs, http, s3};
use crate::error::Error;

/// Facts of a store, whether this build reads it or not.
pub(super) struct Facts {
    /// Schemes of its URLs that messages recommend.
    pub(super) schemes: &'static [&'static str],
    /// Other schemes of its URLs.
    pub(super) aliases: &'static [&'static str],
    /// Prefix of the variables that configure a client; empty if there are none.
    pub(super) variables: &'static str,
    /// Variables of the credentials, for messages.
    pub(super) key: Option<&'static str>,
    /// Parts of the name of a bucket's host, for messages.
    pub(super) host: Option<&'static str>,
}

impl Facts {
    /// Store with these schemes and without variables.
    pub(super) const fn of(schemes: &'static [&'static str]) -> Self {
        Self { schemes, aliases: &[], variables: "", key: None, host: None }
    }
}

/// A line of the list.
pub(super) struct Store {
    pub(super) facts: &'static Facts,
    feature: &'static str,
    /// Returns the client for the bucket of a URL; `None` if the feature is off.
    #[cfg(feature = "store")]
    pub(super) client: Option<Build>,
}

/// Makes a [`Store`] of each line: facts, function that returns a client, and feature.
macro_rules! stores {
    ($($facts:path, $client:path, if $feature:literal;)*) => {
        /// All stores.
        pub(super) const STORES: &[Store] = &[$(Store {
            facts: &$facts,
            feature: $feature,
            #[cfg(all(feature = "store", feature = $feature))]
            client: Some($client),
            #[cfg(all(feature = "store", not(feature = $feature)))]
            client: None,
        }),*];

        /// Features of the stores, and whether this build has them.
        pub(crate) const FEATURES: &[(&str, bool)] = &[$(($feature, cfg!(feature = $feature))),*];
    };
}

stores! {
    s3::FACTS, s3::client, if "s3";
    gcs::FACTS, gcs::client, if "gcs";
    azure::FACTS, azure::client, if "azure";
    http::HUB, super::remote::hub::client, if "http";
    http::FACTS, http::client, if "http";
}

/// Returns the store of a scheme.
pub(super) fn of(scheme: &str) -> Option<&'static Store> {
    STORES.iter().find(|store| store.facts.schemes.contains(&scheme) || store.facts.aliases.contains(&scheme))
}

/// Returns the error for a scheme that does not exist, or whose feature is off.
#[cold]
pub(super) fn lacking(scheme: &str) -> Error {
    let Some(store) = of(scheme) else {
        let known = STORES.iter().flat_map(|store| store.facts.schemes).map(|scheme| format!("{scheme}://"));
        let known = known.collect::<Vec<_>>().join(", ");
        return Error::unsupported(format!("{scheme}:// is not a known store"))
            .help(format!("known are {known} and file://"));
    };
    Error::unsupported(format!("this build does not read {scheme}://"))
        .help(format!("build gristmill with the feature `{}`", store.feature))
}

/// Defines `client` from the builder of a store with signed requests, which permit no redirects.
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
macro_rules! signed_client {
    ($builder:ty) => {
        pub(super) fn client(
            root: &str,
            retry: object_store::RetryConfig,
        ) -> crate::error::Result<crate::store::remote::clients::Client> {
            let builder = <$builder>::from_env().with_url(root).with_retry(retry);
            let connector = crate::store::remote::service::Connector(crate::store::remote::client::Redirects::Refused);
            crate::store::remote::clients::built(builder.with_http_connector(connector).build())
        }
    };
}
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
pub(super) use signed_client;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_that_is_no_store_names_those_that_are() {
        let error = lacking("ftp");
        assert_eq!(error.message(), "ftp:// is not a known store");
        assert_eq!(error.help_text(), Some("known are s3://, gs://, az://, abfss://, hf://, https:// and file://"));
        assert_eq!(lacking("abfs").help_text(), Some("build gristmill with the feature `azure`"));
    }
}
