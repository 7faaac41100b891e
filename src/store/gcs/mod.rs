//! Google Cloud Storage.

#[cfg(feature = "gcs")]
use object_store::gcp::GoogleCloudStorageBuilder;

use super::stores::Facts;

pub(super) const FACTS: Facts =
    Facts { variables: "GOOGLE_", key: Some("`GOOGLE_SERVICE_ACCOUNT`"), ..Facts::of(&["gs"]) };

#[cfg(feature = "gcs")]
pub(super) fn client(root: &str, retry: object_store::RetryConfig) -> crate::error::Result<super::stores::Client> {
    use super::client::Redirects;
    use super::service::Connector;
    let builder = GoogleCloudStorageBuilder::from_env().with_url(root).with_retry(retry);
    super::stores::built(builder.with_http_connector(Connector(Redirects::Refused)).build())
}
