//! Google Cloud Storage.

use super::stores::Facts;

pub(super) const FACTS: Facts =
    Facts { variables: "GOOGLE_", key: Some("`GOOGLE_SERVICE_ACCOUNT`"), ..Facts::of(&["gs"]) };

#[cfg(feature = "gcs")]
super::stores::signed_client!(object_store::gcp::GoogleCloudStorageBuilder);
