//! S3 and compatible stores.

use super::stores::Facts;

pub(super) const FACTS: Facts = Facts {
    aliases: &["s3a"],
    variables: "AWS_",
    key: Some("`AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`"),
    host: Some("of its name, `AWS_REGION` and `AWS_ENDPOINT_URL`"),
    ..Facts::of(&["s3"])
};

#[cfg(feature = "s3")]
super::stores::signed_client!(object_store::aws::AmazonS3Builder);
