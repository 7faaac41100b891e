//! Azure Blob Storage.

use super::stores::Facts;

pub(super) const FACTS: Facts = Facts {
    aliases: &["adl", "azure", "abfs"],
    variables: "AZURE_",
    key: Some("`AZURE_STORAGE_ACCOUNT_KEY`"),
    host: Some("of `AZURE_STORAGE_ACCOUNT_NAME`"),
    ..Facts::of(&["az", "abfss"])
};

#[cfg(feature = "azure")]
super::stores::signed_client!(object_store::azure::MicrosoftAzureBuilder);
