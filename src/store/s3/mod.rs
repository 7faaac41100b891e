//! S3 and compatible stores.

#[cfg(feature = "s3")]
use object_store::aws::AmazonS3Builder;

use super::stores::Facts;

pub(super) const FACTS: Facts = Facts {
    aliases: &["s3a"],
    variables: "AWS_",
    key: Some("`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"),
    host: Some("of its name, `AWS_REGION` and `AWS_ENDPOINT_URL`"),
    ..Facts::of(&["s3"])
};

#[cfg(feature = "s3")]
pub(super) fn client(root: &str, retry: object_store::RetryConfig) -> crate::error::Result<super::stores::Client> {
    use super::client::Redirects;
    use super::service::Connector;
    let builder = AmazonS3Builder::from_env().with_url(root).with_retry(retry);
    super::stores::built(builder.with_http_connector(Connector(Redirects::Refused)).build())
}
