//! HTTP client of the stores. Uses the settings of `object_store`, with a different policy for redirects.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::client::HttpClient;
use object_store::{ClientConfigKey as Key, ClientOptions};
use reqwest::redirect::{Attempt, Policy};
use reqwest::tls::Certificate;
use rustls::crypto::{CryptoProvider, ring};

use super::hosts::Lookup;
use crate::store::options::StoreOptions;

/// Policy for redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Redirects {
    /// A redirect is an error, because the headers or the URL of a request contain a signature.
    Refused,
    /// A redirect is followed, but never from `https` to `http`. Requests contain only a range and an ETag.
    Followed,
}

/// Maximum number of consecutive redirects, as in browsers.
const REDIRECTS: usize = 10;

/// Creates a client. Sends no `Referer` after a redirect, because the previous URL may be signed.
pub(in crate::store) fn client(options: &ClientOptions, redirects: Redirects) -> object_store::Result<HttpClient> {
    provide_encryption();
    let settings = Settings(options);
    let policy = match redirects {
        Redirects::Refused => Policy::none(),
        Redirects::Followed => Policy::custom(follow),
    };
    let mut builder = reqwest::Client::builder()
        .redirect(policy)
        .referer(false)
        .user_agent(
            settings.text(Key::UserAgent).unwrap_or_else(|| concat!("gristmill/", env!("CARGO_PKG_VERSION")).into()),
        )
        .https_only(!settings.flag(Key::AllowHttp)?)
        // No compression: the size of the response must be the size of the object.
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate();
    if let Some(headers) = options.get_default_headers() {
        builder = builder.default_headers(headers.clone());
    }
    if let Some(proxy) = settings.proxy()? {
        builder = builder.proxy(proxy);
    }
    if let Some(certificate) = settings.text(Key::ProxyCaCertificate).filter(|_| settings.text(Key::ProxyUrl).is_some())
    {
        let certificate = Certificate::from_pem(certificate.as_bytes()).map_err(wrong)?;
        builder = builder.tls_certs_merge(std::iter::once(certificate));
    }
    if settings.flag(Key::NoSystemCertificates)? {
        builder = builder.tls_certs_only(std::iter::empty());
    }
    if settings.flag(Key::AllowInvalidCertificates)? {
        builder = builder.danger_accept_invalid_certs(true);
    }
    if let Some(time) = settings.connect_timeout(&StoreOptions::current())? {
        builder = builder.connect_timeout(time);
    }
    if let Some(time) = settings.time(Key::ReadTimeout)? {
        builder = builder.read_timeout(time);
    }
    if let Some(time) = settings.time(Key::PoolIdleTimeout)? {
        builder = builder.pool_idle_timeout(time);
    }
    if let Some(count) = settings.number(Key::PoolMaxIdlePerHost)? {
        builder = builder.pool_max_idle_per_host(count);
    }
    if settings.flag(Key::Http1Only)? {
        builder = builder.http1_only();
    }
    builder = builder.dns_resolver(Arc::new(Lookup { shuffled: settings.flag(Key::RandomizeAddresses)? }));
    settings.http2(builder)?.build().map(HttpClient::new).map_err(wrong)
}

/// Installs `ring` as the cryptography provider, unless the process has installed another.
fn provide_encryption() {
    if CryptoProvider::get_default().is_none() {
        // Fails only if another thread has installed a provider meanwhile.
        let _ = ring::default_provider().install_default();
    }
}

fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let from_https = attempt.previous().iter().any(|url| url.scheme() == "https");
    match () {
        () if attempt.previous().len() > REDIRECTS => attempt.error(format!("more than {REDIRECTS} redirects")),
        () if from_https && attempt.url().scheme() != "https" => {
            attempt.error("a redirect from https to another scheme")
        }
        () => attempt.follow(),
    }
}

/// Settings of a client, mostly from the environment.
struct Settings<'a>(&'a ClientOptions);

impl Settings<'_> {
    fn text(&self, key: Key) -> Option<String> {
        self.0.get_config_value(&key)
    }

    fn flag(&self, key: Key) -> object_store::Result<bool> {
        let Some(text) = self.text(key) else { return Ok(false) };
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "on" | "yes" | "y" => Ok(true),
            "0" | "false" | "off" | "no" | "n" => Ok(false),
            _ => Err(not_understood(key, &text, "true or false")),
        }
    }

    fn number<T: FromStr>(&self, key: Key) -> object_store::Result<Option<T>> {
        let number = |text: String| text.parse().map_err(|_| not_understood(key, &text, "a number"));
        self.text(key).map(number).transpose()
    }

    fn time(&self, key: Key) -> object_store::Result<Option<Duration>> {
        let time =
            |text: String| humantime::parse_duration(&text).map_err(|_| not_understood(key, &text, "a time: 5s"));
        self.text(key).map(time).transpose()
    }

    /// Returns the time limit of a connection: that of `options` if it is not the default, else that of the store.
    fn connect_timeout(&self, options: &StoreOptions) -> object_store::Result<Option<Duration>> {
        match options.connect_timeout == StoreOptions::default().connect_timeout {
            true => self.time(Key::ConnectTimeout),
            false => Ok(Some(options.connect_timeout)),
        }
    }

    fn proxy(&self) -> object_store::Result<Option<reqwest::Proxy>> {
        let Some(url) = self.text(Key::ProxyUrl) else { return Ok(None) };
        let excluded = self.text(Key::ProxyExcludes).and_then(|hosts| reqwest::NoProxy::from_string(&hosts));
        // The cause is omitted, because the URL of a proxy may contain a password.
        let proxy =
            reqwest::Proxy::all(url).map_err(|_| wrong(std::io::Error::other("the URL of the proxy is invalid")))?;
        Ok(Some(proxy.no_proxy(excluded)))
    }

    fn http2(&self, mut builder: reqwest::ClientBuilder) -> object_store::Result<reqwest::ClientBuilder> {
        if let Some(time) = self.time(Key::Http2KeepAliveInterval)? {
            builder = builder.http2_keep_alive_interval(time);
        }
        if let Some(time) = self.time(Key::Http2KeepAliveTimeout)? {
            builder = builder.http2_keep_alive_timeout(time);
        }
        if self.flag(Key::Http2KeepAliveWhileIdle)? {
            builder = builder.http2_keep_alive_while_idle(true);
        }
        if let Some(size) = self.number(Key::Http2MaxFrameSize)? {
            builder = builder.http2_max_frame_size(Some(size));
        }
        Ok(if self.flag(Key::Http2Only)? { builder.http2_prior_knowledge() } else { builder })
    }
}

fn wrong(error: impl std::error::Error + Send + Sync + 'static) -> object_store::Error {
    object_store::Error::Generic { store: "HTTP client", source: Box::new(error) }
}

fn not_understood(key: Key, text: &str, wanted: &str) -> object_store::Error {
    wrong(std::io::Error::other(format!("{} is {text:?}, and not {wanted}", key.as_ref())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_of_the_program_overrides_the_connect_timeout_of_a_store() {
        let of_store = ClientOptions::new().with_connect_timeout(Duration::from_secs(9));
        let limit = |options: &StoreOptions| Settings(&of_store).connect_timeout(options).unwrap();
        assert_eq!(limit(&StoreOptions::default()), Some(Duration::from_secs(9)));
        let options = StoreOptions::default().connect_timeout(Duration::from_secs(2));
        assert_eq!(limit(&options), Some(Duration::from_secs(2)));
    }
}
