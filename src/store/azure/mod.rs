//! Azure Blob Storage.

#[cfg(feature = "azure")]
use object_store::azure::MicrosoftAzureBuilder;

use super::stores::Facts;

pub(super) const FACTS: Facts = Facts {
    aliases: &["adl", "azure", "abfs"],
    variables: "AZURE_",
    key: Some("`AZURE_STORAGE_ACCOUNT_KEY`"),
    host: Some("of `AZURE_STORAGE_ACCOUNT_NAME`"),
    ..Facts::of(&["az", "abfss"])
};

#[cfg(feature = "azure")]
pub(super) fn client(root: &str, retry: object_store::RetryConfig) -> crate::error::Result<super::stores::Client> {
    use super::client::Redirects;
    use super::service::Connector;
    let builder = MicrosoftAzureBuilder::from_env().with_url(root).with_retry(retry);
    super::stores::built(builder.with_http_connector(Connector(Redirects::Refused)).build())
}
