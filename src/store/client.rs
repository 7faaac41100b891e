//! The HTTP client of stores: set up as `object_store` would do it, but for what becomes of redirects.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::client::HttpClient;
use object_store::{ClientConfigKey as Key, ClientOptions};
use reqwest::redirect::{Attempt, Policy};
use reqwest::tls::Certificate;
use rustls::crypto::{CryptoProvider, ring};

use super::hosts::Lookup;

/// The answers of a server that point elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "a build may have only stores that follow them, or only stores that do not")]
pub(super) enum Redirects {
    /// Such an answer is an error: requests carry what they are signed with, in headers or in the URL.
    Refused,
    /// Requests carry nothing but a range and an ETag, and go on to wherever they are sent, though never from `https` to `http`.
    Followed,
}

/// As many follow each other as browsers allow.
const REDIRECTS: usize = 10;

/// Makes a client. The URL that led to a redirect is told to nobody: it may be signed.
pub(super) fn client(options: &ClientOptions, redirects: Redirects) -> object_store::Result<HttpClient> {
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
        // The size of an answer is that of the object.
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
    if let Some(time) = settings.time(Key::ConnectTimeout)? {
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

/// Sets what this process encrypts with, if it has chosen nothing yet.
fn provide_encryption() {
    if CryptoProvider::get_default().is_none() {
        // Whoever was quicker has set something, too.
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

/// The settings of a client, most of which come out of the environment.
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

    fn proxy(&self) -> object_store::Result<Option<reqwest::Proxy>> {
        let Some(url) = self.text(Key::ProxyUrl) else { return Ok(None) };
        let excluded = self.text(Key::ProxyExcludes).and_then(|hosts| reqwest::NoProxy::from_string(&hosts));
        // What is wrong with it is not quoted: a proxy has users, too.
        let proxy =
            reqwest::Proxy::all(url).map_err(|_| wrong(std::io::Error::other("the URL of the proxy is none")))?;
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
