//! Web servers, and Hugging Face's hub, whose client lies in `hub`.

use super::stores::Facts;

pub(super) const FACTS: Facts = Facts { aliases: &["http"], ..Facts::of(&["https"]) };

pub(super) const HUB: Facts = Facts { variables: "HF_", ..Facts::of(&["hf"]) };

#[cfg(feature = "http")]
pub(super) fn client(
    root: &str,
    retry: object_store::RetryConfig,
) -> crate::error::Result<super::remote::clients::Client> {
    use super::remote::client::Redirects;
    use super::remote::service::Connector;
    let options = object_store::ClientOptions::new().with_allow_http(root.starts_with("http:"));
    let builder = object_store::http::HttpBuilder::new().with_url(root).with_retry(retry).with_client_options(options);
    super::remote::clients::built(builder.with_http_connector(Connector(Redirects::Followed)).build())
}
